"""What costs time to find out, kept in the user's cache folder: read and written only where it is safe.

Whoever can write there decides what a later call believes, so the folder and the file must be the user's own,
closed to others, and no links. A file says what it was made of and has a checksum: one that a full disk, a
power loss or a person has changed is as good as none.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib

MAX_BYTES = 64 * 1024 * 1024
_HEAD_BYTES = 39
_OTHERS_WRITE = 0o022


def read(name: str, stamp: str) -> bytes | None:
    """What was kept under the name for this stamp; None when there is nothing that can be trusted."""
    folder = _folder()
    if folder is None or not _is_ours(folder):
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        path = os.path.join(folder, name)
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device may do something
            return None
        file = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    with open(file, "rb", buffering=0) as stream:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or not _closed_to_others(about) or about.st_size > MAX_BYTES:
            return None
        try:
            # in two parts: a copy of some megabytes would cost more than all else here
            head, data = stream.read(_HEAD_BYTES), stream.read(about.st_size)
        except OSError:
            return None
    return data if head == _head(stamp, data) else None


def write(name: str, stamp: str, data: bytes) -> None:
    """Keep it, whole or not at all; where that cannot be done safely it is made anew the next time."""
    folder = _folder()
    if folder is None or len(data) > MAX_BYTES // 2:
        return
    scratch = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        if not _is_ours(folder):
            return
        with open(os.open(scratch, flags, 0o600), "wb") as file:
            file.write(_head(stamp, data))
            file.write(data)
        os.replace(scratch, os.path.join(folder, name))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(scratch)


def _head(stamp: str, data: bytes) -> bytes:
    """A first line of one length, for this stamp and these data."""
    made_of = stamp.encode("utf-8", "surrogateescape")  # the name of a folder in it may hold any bytes
    sums = (zlib.crc32(made_of), zlib.adler32(made_of), zlib.crc32(data), len(data))
    return b"%08x%08x %08x %012d\n" % sums


def _folder() -> str | None:
    """None where there is no such folder, as for a user without a home. A relative one is anybody's."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "torchdoctor") if os.path.isabs(base) else None


def _is_ours(folder: str) -> bool:
    try:
        about = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(about.st_mode) and _closed_to_others(about)


def _closed_to_others(about: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):  # Windows, where a profile is its user's
        return True
    return about.st_uid == os.geteuid() and not about.st_mode & _OTHERS_WRITE
