"""Files that a stranger's text names: refused by their path first, then opened so that nothing can happen.

A look at a path is not free: a UNC path sends the user's name to a server, an automount mounts, a device does
whatever it does when it is opened, and a link leads anywhere.
"""

from __future__ import annotations

import os
import stat
from functools import cache

MAX_BYTES = 4 * 1024 * 1024
_MAX_PATH = 4096
# what is no disk: the kernel's own trees, and where automounters put what is asked for
_NO_DISK = frozenset(("proc", "dev", "sys", "net", "misc", "auto", "afs", "run", "Network"))
_KEPT_OUT = frozenset(("", ".", ".."))


def may_be_asked(path: str) -> bool:
    """Is it a plain absolute path of a disk, as far as its text tells? Asks nothing of the system."""
    if len(path) > _MAX_PATH or not path.isprintable() or not path.startswith("/"):
        return False
    parts = path[1:].split("/")
    return not _KEPT_OUT.intersection(parts) and parts[0] not in _NO_DISK


def is_plain_folder(path: str) -> bool:
    """May files below this folder be looked for, of a path that stands in a stranger's text?"""
    return may_be_asked(path) and not waits_for_mount(f"{path}/")


def lines_of_user(path: str) -> list[str] | None:
    """The lines of a text file of this user; None for all else.

    Nothing is followed, waited for or mounted: a regular file that belongs to the user, without a link in any
    part of its path, of MAX_BYTES at most. Only where the system can promise that (not on Windows).
    """
    if not may_be_asked(path) or os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        return None
    if waits_for_mount(path):
        return None
    try:
        data = _read(path)
    except (OSError, ValueError):
        return None
    return None if data is None else data.decode("utf-8", "replace").splitlines()


def _read(path: str) -> bytes | None:
    *folders, name = path[1:].split("/")
    # O_PATH: a folder need not be readable to be gone through
    through = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open("/", through)
    try:
        for folder in folders:
            below = os.open(folder, through, dir_fd=here)
            os.close(here)
            here = below
        # a device may do something when it is opened, so it is looked at before
        if not _is_ours(os.stat(name, dir_fd=here, follow_symlinks=False)):
            return None
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    with os.fdopen(file, "rb") as stream:
        if not _is_ours(os.fstat(file)):
            return None
        data = stream.read(MAX_BYTES + 1)
        return data if len(data) <= MAX_BYTES else None


def _is_ours(about: os.stat_result) -> bool:
    return stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and about.st_size <= MAX_BYTES


def waits_for_mount(path: str) -> bool:
    """Is what holds the path an automounter's folder, into which it would mount something now?"""
    best, kind = "", ""
    for place, what in _mounts():
        inside = path.startswith(place.rstrip("/") + "/")
        # of mounts over each other the last one is in force
        if inside and len(place) >= len(best):
            best, kind = place, what
    return kind == "autofs"


@cache
def _mounts() -> tuple[tuple[str, str], ...]:
    """Places and types of all mounts; none where there is no such list. Not through the probes: it is the
    one thing of theirs that most logs would need."""
    found: list[tuple[str, str]] = []
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return ()
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts, kinds = fields.split(), rest.split()
        if len(parts) > 4 and kinds:
            place = parts[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n")
            found.append((place.replace("\\134", "\\"), kinds[0]))
    return tuple(found)
