"""The catalog as one file that loads in a millisecond.

Lines of text: a signature, a head (JSON), the prefilter, one line a rule with what matching needs, one line
a rule with the words for people. Only the head is parsed at once; it says where the lines of a rule lie, and
they are cut out when the rule is asked for. Of the prefilter, literals by a word of theirs, no more is read
than the text has words of. Compiled when a wheel is built, and into the user's cache for a checkout or
``--rules``.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchdoctor import regular_file
from torchdoctor.catalog import cache
from torchdoctor.catalog.ruleset import ENTRY, GROUP, PLACES, word_of

if TYPE_CHECKING:
    from pathlib import Path

    from torchdoctor.catalog.loader import Row

_MATCH_KEYS = ("patterns", "kinds", "types", "where", "shared")
FORMAT = "torchdoctor-catalog/12"
_INDEX_KEYS = (
    "id",
    "family",
    "severity",
    "role",
    "title",
    "leads_to",
    "refines",
    "confirm",
    "rule_out",
    "follows_if",
)
_TEXT_KEYS = ("why", "fixes", "decide_with", "references", "retired", "more", "decide_note", "decide_when")


def signature(directory: str) -> str:
    """Names, sizes and change times of all files of a rules directory: changes when any of them does."""
    entries: list[tuple[str, int, int]] = []
    for folder in os.scandir(directory):
        if regular_file.is_folder(folder):
            for entry in os.scandir(folder.path):
                if entry.name.endswith(".toml"):
                    entries.append((f"{folder.name}/{entry.name}", *_size_and_time(entry)))
        elif folder.name.endswith(".toml"):
            entries.append((folder.name, *_size_and_time(folder)))
    entries.sort()
    # the reader's own change time belongs to it: rows written by an older reader must not be taken
    own = [
        os.stat(os.path.join(os.path.dirname(__file__), name)).st_mtime_ns
        for name in ("loader.py", "reader.py", "template.py", "linear.py")
    ]
    digest = zlib.crc32(repr((own, entries)).encode())
    return f"{FORMAT} {os.path.abspath(directory)} {digest:08x} {len(entries)}"


def _size_and_time(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:  # a link that leads to itself or nowhere; who reads the file says so
        return 0, 0
    return status.st_size, status.st_mtime_ns


def pack(rows: Sequence[Row], stamp: str) -> bytes:
    """The compiled form of checked rules."""
    literals: dict[str, list[str]] = {}
    loose: list[list[Any]] = []
    index: list[list[Any]] = []
    texts: list[list[Any]] = []
    for number, row in enumerate(rows):
        matches: list[list[Any]] = []
        for position, match in enumerate(row["matches"]):
            matches.append([match[key] for key in _MATCH_KEYS])
            if match["literal"]:
                literals.setdefault(match["literal"], []).append(f"{number}.{position}")
            else:
                loose.append([number, position, match["kinds"], match["types"]])
        check = row["check"]
        side = [check["applies_if"], check["fail_if"], check["severity"]] if check else None
        index.append([*(row[key] for key in _INDEX_KEYS), matches, side])
        texts.append([row[key] for key in _TEXT_KEYS])
    lines = [_json(part) for part in (*index, *texts)]
    head = {
        "ids": [row["id"] for row in rows],
        "lengths": [len(line) for line in lines],
        "loose": loose,
        "checks": [row["id"] for row in rows if row["check"]],
        "retired": {row["id"]: row["replaced_by"] for row in rows if row["retired"]},
    }
    groups: dict[str, list[str]] = {}
    for literal, places in literals.items():
        groups.setdefault(word_of(literal), []).append(f"{literal}{PLACES}{' '.join(places)}")
    prefilter = (GROUP.join(groups), GROUP.join(ENTRY.join(entries) for entries in groups.values()))
    # the name of the folder may hold bytes that are no text
    start = stamp.encode("utf-8", "surrogateescape")
    return b"\n".join([start, _json(head), *(part.encode() for part in prefilter), *lines]) + b"\n"


def _json(part: object) -> bytes:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode()


def compile_tree(directory: Path | str) -> bytes:
    """Read, check and pack a rules directory. Raises CatalogError."""
    from torchdoctor.catalog.loader import read_tree

    return pack(read_tree(str(directory)), FORMAT)


def packed(
    directory: str, known_ids: Sequence[str] = (), groups: Callable[[], Mapping[str, list[str]]] | None = None
) -> bytes:
    """The compiled form of a directory, from the cache where it is current, else made and kept.

    ``known_ids`` and ``groups`` are those of the catalog it adds to; the groups are asked for only when the
    form must be made. A cache that cannot be read or written is no error.
    Raises CatalogError for faulty rules.
    """
    try:
        stamp = signature(directory)
    except OSError as error:
        from torchdoctor.catalog.reader import CatalogError

        why = "no such folder" if not os.path.isdir(directory) else error.strerror
        raise CatalogError([f"{directory}: {why}; a rules folder holds FAMILY/ID.toml"]) from error
    if known_ids:
        # what it may name, and must not take, depends on the catalog it adds to
        stamp += f" {zlib.crc32(' '.join(known_ids).encode()):08x}"
    name = f"catalog-{zlib.crc32(os.fsencode(os.path.abspath(directory))):08x}.json"
    data = cache.read(name, stamp)
    if data is None:
        from torchdoctor.catalog.loader import read_tree

        data = pack(read_tree(directory, known_ids, groups() if groups else None), stamp)
        cache.write(name, stamp, data)
    return data
