"""Rules that other distributions bring along, under the entry point group ``torchdoctor.rules``.

A pack is data: FAMILY/ID.toml, and groups.toml where it wants one, in the folder of the package that the
entry point names. The package is found and never imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchdoctor.catalog import cache

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoint

GROUP = "torchdoctor.rules"
OFF = "TORCHDOCTOR_NO_PACKS"

# Reading the metadata of all that is installed takes longer than a diagnosis, so the answer is kept until an
# installed folder changes. An installer at work changes it several times within one tick of a file system.
_SETTLED_S = 10.0

Pack = tuple[str, str]  # name of the distribution and entry point, folder


def installed() -> tuple[tuple[Pack, ...], tuple[str, ...]]:
    """The packs installed beside torchdoctor, and one line for each that cannot be used.

    Costs a few file stats when nothing was installed since the last call.
    """
    if os.environ.get(OFF):
        return (), ()
    folders = _site_folders()
    name = f"packs-{zlib.crc32(os.fsencode(sys.prefix)):08x}.json"
    stamp = json.dumps(folders)
    kept = cache.read(name, stamp)
    if kept is not None:
        packs = json.loads(kept)
        return tuple((pack, folder) for pack, folder in packs), ()
    found, problems = _look([folder for folder, _ in folders])
    if not problems and all(time.time() - changed / 1e9 > _SETTLED_S for _, changed in folders):
        cache.write(name, stamp, json.dumps(found).encode())
    return tuple(found), tuple(problems)


def _site_folders() -> list[tuple[str, int]]:
    """Where installers put distributions, with change times. The current folder is none: a folder of logs
    from elsewhere must not bring rules."""
    found: list[tuple[str, int]] = []
    for folder in dict.fromkeys(sys.path):
        if os.path.basename(folder) in ("site-packages", "dist-packages"):
            try:
                found.append((folder, os.stat(folder).st_mtime_ns))
            except OSError:
                continue
    return found


def _look(folders: Sequence[str]) -> tuple[list[Pack], list[str]]:
    from importlib.metadata import distributions

    packs: list[Pack] = []
    problems: list[str] = []
    for distribution in distributions(path=list(folders)):
        for point in distribution.entry_points:
            if point.group != GROUP:
                continue
            name = f"{distribution.metadata['Name']} ({point.name} = {point.value})"
            folder = _folder(point)
            if folder is None:
                problems.append(
                    f"rule pack {name}: names no package that is installed; "
                    "the entry point's value is the package whose folder holds FAMILY/ID.toml"
                )
            else:
                packs.append((name, folder))
    # the order in which a folder is listed differs from machine to machine
    return sorted(packs), sorted(problems)


def _folder(point: EntryPoint) -> str | None:
    """The folder of the package an entry point names, found without running any of its code."""
    from importlib.machinery import PathFinder

    places: Sequence[str] | None = None
    dotted = ""
    for part in point.value.partition(":")[0].strip().split("."):
        dotted = f"{dotted}.{part}" if dotted else part
        spec = PathFinder.find_spec(dotted, places)
        if spec is None and places is None:
            spec = _hooked(dotted)
        if spec is None or not spec.submodule_search_locations:
            return None
        places = list(spec.submodule_search_locations)
    return next((place for place in places or () if os.path.isdir(place)), None)


def _hooked(name: str) -> ModuleSpec | None:
    """A top-level package that an import hook finds, as those of editable installations do."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, None) if find is not None else None
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None
