"""Folders for what our programs write, gone when they are no longer needed, also after a kill.

Whoever makes one holds a lock in it for as long as it lives. A folder of ours whose lock nobody holds was
left by a process that was killed, and goes at the next start.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
import weakref

try:
    import fcntl
except ImportError:  # Windows: there the age alone tells
    fcntl = None  # type: ignore[assignment]

PREFIX = "torchdoctor-"
_LOCK = "lock"
# one without a lock may be of an older version, or of a process killed in the moment that it made it
_OLD_S = 24 * 3600.0
# a temporary folder of a big machine may hold very many names
_MOST_NAMES = 20_000
_TRIES, _AGAIN_S = 10, 0.05

_swept = False


class Scratch:
    """A new folder that only this user can read; gone with ``remove``, with this object, or at our end."""

    def __init__(self) -> None:
        _sweep_once()
        # the name before the folder: Ctrl-C or SIGTERM may come in the moment that it is made
        self.name = os.path.join(tempfile.gettempdir(), f"{PREFIX}{secrets.token_hex(8)}")
        with contextlib.ExitStack() as undo:
            undo.callback(_removed, self.name, -1)
            os.mkdir(self.name, 0o700)
            self._end = weakref.finalize(self, _removed, self.name, _locked(self.name))
            undo.pop_all()

    def remove(self) -> None:
        """Delete the folder and all that is in it. Never raises: a program may still write there."""
        self._end()


def _removed(name: str, lock: int) -> None:
    for _ in range(_TRIES):  # a program that was just killed may have made a file behind our back
        shutil.rmtree(name, ignore_errors=True)
        if not os.path.lexists(name):
            break
        time.sleep(_AGAIN_S)
    if lock >= 0:
        os.close(lock)


def _locked(folder: str) -> int:
    """A descriptor that holds the folder's lock; -1 where there are no locks.

    The file has its name only once it is locked, so that no sweep finds it free.
    """
    if fcntl is None:
        return -1
    draft = os.path.join(folder, ".lock")
    try:
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(draft, os.path.join(folder, _LOCK))
    except OSError:  # a file system without locks
        os.close(lock)
        return -1
    return lock


def _sweep_once() -> None:
    global _swept
    if not _swept:
        _swept = True
        with contextlib.suppress(OSError):
            sweep(tempfile.gettempdir())


def sweep(place: str) -> None:
    """Delete what killed processes of this user left in the temporary folder. Raises OSError."""
    with os.scandir(place) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_NAMES:
                break
            if entry.name.startswith(PREFIX) and _is_left(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    try:
        about = entry.stat(follow_symlinks=False)
        if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "geteuid") and about.st_uid != os.geteuid()):
            return False
        if fcntl is None:
            return time.time() - about.st_mtime > _OLD_S
        try:
            lock = os.open(os.path.join(entry.path, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return time.time() - about.st_mtime > _OLD_S
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True
    except OSError:
        return False
