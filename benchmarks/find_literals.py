"""Where the literals of the catalog's templates come from: searched in programs, kept in rules/literals.tsv.

    python benchmarks/find_literals.py [--fresh] SOURCE…

A SOURCE is a wheel (searched without unpacking), the .dist-info folder of an installed distribution, or
``python`` for the interpreter that runs this. Sources named first are preferred. What is found is recorded as
``NAME VERSION: FILE``; what is not found keeps what is recorded by hand: ``historic: why``,
``other program: which`` or an earlier find. ``--fresh`` forgets earlier finds, but nothing written by hand.
Prints the literals that nothing accounts for; exit code 1 when there are any.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import sysconfig
import warnings
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torchdoctor import catalog
from torchdoctor.engine.literals import (
    BY_HAND,
    PLACE,
    PRINTED,
    UNVERIFIED,
    every_literal,
    read_recorded,
    recorded_text,
)

_TEXT_RUN = re.compile(rb"[\t\n\r\x20-\x7e]{6,}")
_LONGEST_NAME = 80  # runs without a space above it are mangled symbols and tables
_SKIPPED = (
    *(".pyc", ".png", ".jpg", ".gz", ".zip", ".a", ".lib", ".pdb", ".bc", ".cubin"),
    *("RECORD", "METADATA"),
)
_HOLE = "\x01"
_FORMAT = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d.*]*(?:ll|[lhz])?[sdrifgxucp]|\{[^{}\s]{0,60}\}")
_LEAST_SEGMENT = 10
_LEAST_PIECE = 6
_LEAST_JOINED = 24  # the halves of anything shorter stand somewhere in any large program

Member = tuple[str, Callable[[], bytes]]


def fold(text: str) -> str:
    return " ".join(text.split())


def python_texts(source: str) -> Iterator[str]:
    """Every string of a Python source, adjacent pieces joined, values in f-strings as holes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            yield source
            return
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(value) for value in node.values)
            yield "".join(
                str(value.value) if isinstance(value, ast.Constant) else _HOLE for value in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name


def texts_of(name: str, data: bytes) -> Iterator[str]:
    if name.endswith((".py", ".pyi")):
        yield from python_texts(data.decode("utf-8", "replace"))
    elif name.endswith((".h", ".hpp", ".cuh", ".cpp", ".cu", ".txt", ".json", ".yaml", ".jinja")):
        # adjacent literals of C are one
        yield re.sub(r'"\s*\n\s*"', "", data.decode("utf-8", "replace"))
    else:
        for run in _TEXT_RUN.findall(data):
            if b" " in run or (len(run) <= _LONGEST_NAME and not run.startswith(b"_Z")):
                yield run.decode("ascii")


def members(source: str) -> Iterator[tuple[str, list[Member]]]:
    """Name with version of each program in a source, and its files."""
    if source == "python":
        folder = sysconfig.get_path("stdlib")
        paths = [path for path in Path(folder).rglob("*") if "site-packages" not in path.parts]
        library = sysconfig.get_config_var("LDLIBRARY") or ""
        extra = [Path(sys.executable).resolve(), Path(sysconfig.get_config_var("LIBDIR") or "") / library]
        name = f"python {sys.version_info.major}.{sys.version_info.minor}"
        yield name, [_on_disk(path, path.name) for path in [*paths, *extra] if path.is_file()]
    elif source.endswith(".whl"):
        name, version = os.path.basename(source).split("-")[:2]
        archive = zipfile.ZipFile(source)
        yield f"{name} {version}", [_in_archive(archive, item) for item in archive.namelist()]
    else:
        info = Path(source)
        name, _, version = info.name[: -len(".dist-info")].rpartition("-")
        listed = [line.rsplit(",", 2)[0] for line in (info / "RECORD").read_text("utf-8").splitlines()]
        places = [(info.parent / item, item) for item in listed]
        yield f"{name} {version}", [_on_disk(place, item) for place, item in places if place.is_file()]


def _on_disk(path: Path, shown: str) -> Member:
    return shown, path.read_bytes


def _in_archive(archive: zipfile.ZipFile, name: str) -> Member:
    return name, lambda: archive.read(name)


def search(files: Iterable[Member], wanted: set[str]) -> dict[str, str]:
    """literal -> file, for those that stand in one of the files."""
    names: list[str] = []
    starts: list[int] = []
    pieces: list[str] = []
    length = 0
    for name, read in files:
        if name.endswith(_SKIPPED):
            continue
        # by file: the runs of a library of a gigabyte hold the same few texts over and over
        text = "\n".join(dict.fromkeys(fold(item) for item in texts_of(name, read())))
        names.append(name)
        starts.append(length)
        pieces.append(text)
        length += len(text) + 1
    whole = "\n".join(pieces)
    found: dict[str, str] = {}
    for literal in wanted:
        # a hole's neighbour may be a space
        position = whole.find(literal.strip())
        if position >= 0:
            found[literal] = names[bisect_right(starts, position) - 1]

    def name_at(position: int) -> str:
        return names[bisect_right(starts, position) - 1]

    found.update(_with_values(whole, wanted - set(found), name_at))
    found.update(_in_two_pieces(whole, wanted - set(found), name_at))
    return found


def _in_two_pieces(whole: str, wanted: set[str], name_at: Callable[[int], str]) -> dict[str, str]:
    """Literals that a program joins: a text of it ends with the head, another begins with the tail."""
    splits: list[tuple[str, str, str]] = []
    for literal in (item for item in wanted if len(item.strip()) >= _LEAST_JOINED):
        for gap in re.finditer(r"\s+|(?<=\W)(?=\w)|(?<=\w)(?=\W)", literal):
            head, tail = literal[: gap.start()].strip(), literal[gap.end() :].strip()
            short, long = sorted((len(head), len(tail)))
            if short >= _LEAST_PIECE and long >= max(_LEAST_SEGMENT, len(literal) // 2):
                splits.append((literal, head, tail))
    heads = {head[-_LEAST_PIECE:] for _, head, _ in splits}
    tails = {tail[:_LEAST_PIECE] for _, _, tail in splits}
    ending: dict[str, list[tuple[str, int]]] = {}
    beginning: dict[str, list[tuple[str, int]]] = {}
    position = 0
    for line in whole.split("\n"):
        shown = line[:2000]
        if "%" in shown or "{" in shown:
            shown = _FORMAT.sub(_HOLE, shown)
        for text in map(str.strip, shown.split(_HOLE)):
            if text[-_LEAST_PIECE:] in heads:
                ending.setdefault(text[-_LEAST_PIECE:], []).append((text, position))
            if text[:_LEAST_PIECE] in tails:
                beginning.setdefault(text[:_LEAST_PIECE], []).append((text, position))
        position += len(line) + 1
    found: dict[str, str] = {}
    for literal, head, tail in splits:
        lefts = ending.get(head[-_LEAST_PIECE:], ())
        rights = beginning.get(tail[:_LEAST_PIECE], ())
        first = next((at for text, at in lefts if text.endswith(head)), None)
        second = next((at for text, at in rights if text.startswith(tail)), None)
        if first is not None and second is not None:
            place = name_at(first if len(head) >= len(tail) else second)
            found.setdefault(literal, f"{place} (in two pieces)")
    return found


def _with_values(whole: str, wanted: set[str], name_at: Callable[[int], str]) -> dict[str, str]:
    """Literals that a format string gives once its values are filled in."""
    found: dict[str, str] = {}
    together = "\n".join(wanted)
    position = 0
    for line in whole.split("\n"):
        if _HOLE in line or "%" in line or "{" in line:
            parts = [part.strip() for part in _FORMAT.sub(_HOLE, line[:2000]).split(_HOLE)]
            long = [part for part in parts if len(part) >= _LEAST_SEGMENT and part in together]
            if len(parts) > 1 and long:
                for literal in wanted - set(found):
                    if sum(len(part) for part in long if part in literal) >= 0.6 * len(literal):
                        found[literal] = f"{name_at(position)} (values filled in)"
        position += len(line) + 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--fresh", action="store_true", help="forget earlier finds")
    options = parser.parse_args()
    directory = catalog.rules_directory()
    literals = every_literal(catalog.load())
    recorded = read_recorded(directory)
    open_ones = (*BY_HAND, UNVERIFIED)
    kept = {
        literal: where
        for literal, where in recorded.items()
        if literal in literals and (not options.fresh or where.startswith((*open_ones, PRINTED)))
    }
    pending = {literal for literal in literals if literal not in kept or kept[literal].startswith(open_ones)}
    for source in options.sources:
        for program, files in members(source):
            found = search(files, pending)
            if found:
                print(f"{program}: {len(found)} literals", flush=True)
            kept.update((literal, f"{program}: {where}") for literal, where in found.items())
            pending -= set(found)
    Path(directory, PLACE).write_text(recorded_text(kept), encoding="utf-8")
    missing = sorted(set(literals) - set(kept))
    for literal in missing:
        print(f"not found: {literal!r} of {', '.join(literals[literal])}")
    print(f"{len(kept)} of {len(literals)} literals recorded", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
