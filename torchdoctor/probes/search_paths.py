"""Where programs of ours may find code: never in the current folder, which may hold a stranger's files.

An empty or relative entry of a search path means the folder that a person happens to stand in: a folder with
a log and a ``random.py`` would be run by whoever only wants to read the log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# lists of folders: of programs, of shared libraries (Linux, macOS), of Python's modules
_LISTS = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "PYTHONPATH",
)
# files to load first, parted by blanks or colons; a bare name is looked for in the folders of the system
_PRELOADS = ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")
# single folders that Python loads code from
_FOLDERS = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
# 3.11 and later: neither the folder of a script nor the current one; older ones do not know it
_SAFE = "PYTHONSAFEPATH"


def without_current_folder(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program of ours: no search path in it leads to the current folder."""
    found = dict(environment)
    here = current_folder()
    for name in _LISTS:
        if name in found:
            found[name] = os.pathsep.join(absolute_entries(found[name], here))
            if not found[name]:
                del found[name]
    for name in _PRELOADS:
        words = found.get(name, "").replace(":", " ").split()
        if any(_leads_here(word, here) for word in words):
            found[name] = " ".join(word for word in words if not _leads_here(word, here))
    for name in _FOLDERS:
        if name in found and not os.path.isabs(found[name]):
            del found[name]
    found[_SAFE] = "1"
    return found


def absolute_entries(text: str, here: str | None = None) -> list[str]:
    """The entries of a search path that lead to one place from everywhere, without the current folder."""
    here = current_folder() if here is None else here
    return [
        entry for entry in text.split(os.pathsep) if os.path.isabs(entry) and os.path.normpath(entry) != here
    ]


def program_on_path(name: str, path: str | None = None) -> str:
    """The program of this name in a folder of PATH that is not the current one; empty when there is none."""
    import shutil

    folders = absolute_entries(os.environ.get("PATH", os.defpath) if path is None else path)
    return shutil.which(name, path=os.pathsep.join(folders)) or "" if folders else ""


def current_folder() -> str:
    """Where we are; empty when that folder was deleted. Paths are compared as text: no dead disk is asked."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _leads_here(word: str, here: str) -> bool:
    folder = os.path.dirname(word)
    return bool(folder) and (not os.path.isabs(word) or os.path.normpath(folder) == here)
