"""Files that appear whole or not at all, written by a process that may be left behind when a disk hangs.

What is written goes where the caller said, and nothing else changes: a regular file is replaced whole, a pipe
and a terminal are written to, and a link, a disk, a socket or a folder in its place is left alone and named.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import stat
import time
import warnings

WRITE_S = 3.0
# of Linux's Documentation/admin-guide/devices.txt: memory (null, zero, full) and terminals
_MEMORY, _HARMLESS = 1, (3, 5, 7)
_TERMINALS = (4, 5, *range(136, 144))
_ROOT = 0
_MOST_LINKS = 40  # as the kernel has it


class WriteError(Exception):
    """The file could not be written: which, and why."""


def refusal(path: str) -> str:
    """Why nothing may be written to this path, "" where it can be tried; nothing is written or made."""
    if _descriptor(path) is not None:
        return ""
    try:
        folder = _open_folder(path)
        try:
            return _no_place(os.lstat(os.path.basename(path) or ".", dir_fd=folder), path.endswith("/"))
        finally:
            os.close(folder)
    except _Refused as error:
        return str(error)
    except FileNotFoundError:
        return ""  # it will be made, or the writing says what is missing
    except OSError as error:
        return error.strerror or str(error)


def replace_file(path: str, text: str, limit_s: float = WRITE_S) -> None:
    """Write beside the file, sync, and rename over it. Raises WriteError; blocks ``limit_s`` at most.

    A pipe or a terminal is written to. A fork does it: a dead network disk, or a pipe that nobody reads, then
    holds the fork, not us.
    """
    reader, writer = os.pipe()
    child = _fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for us, who wait for it
                signal.signal(number, signal.SIG_IGN)
            _write(path, text)
            code = 0
        except _Refused as error:
            os.write(writer, str(error).encode("utf-8", "replace")[:500])
        except OSError as error:
            os.write(writer, (error.strerror or str(error)).encode("utf-8", "replace")[:500])
        finally:
            os._exit(code)
    os.close(writer)
    try:
        deadline = time.monotonic() + limit_s
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.kill(child, 9)
                raise WriteError(f"{path}: not written within {limit_s:g} s: {_what_hangs(path)}")
            time.sleep(0.005)
        if status != 0:
            why = os.read(reader, 500).decode("utf-8", "replace") or "the writing process died"
            raise WriteError(f"{path}: {why}")
    finally:
        os.close(reader)


class _Refused(Exception):
    """What stands there is not to be written to, and why."""


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of threads; ours sleeps, holds no lock, and the fork does nothing but write
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _what_hangs(path: str) -> str:
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return "nothing reads from this pipe"
    return "its disk hangs"


def _write(path: str, text: str) -> None:
    descriptor = _descriptor(path)
    if descriptor is not None:
        _put(descriptor, text)
        return
    folder, name = _open_folder(path), os.path.basename(path)
    try:
        found = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        _replace(folder, name, text)
        return
    refused = _no_place(found)
    if refused:
        raise _Refused(refused)
    if stat.S_ISREG(found.st_mode):
        _replace(folder, name, text)
        return
    stream = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY, dir_fd=folder)
    opened = os.fstat(stream)
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
        raise _Refused("was replaced while it was being opened")
    _put(stream, text)


def _replace(folder: int, name: str, text: str) -> None:
    temporary = f".{name[:200]}.{os.urandom(6).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        _put(handle, text)
        os.fsync(handle)
        # the node exporter, and whoever acts on the verdict, run as other users
        os.fchmod(handle, 0o644)
        os.close(handle)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(os.open(".", os.O_RDONLY, dir_fd=folder))


def _put(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]


def _descriptor(path: str) -> int | None:
    """The number of a stream of ours that the path stands for (/dev/stdout, >(…) of a shell), else None."""
    known = {"/dev/stdout": 1, "/dev/stderr": 2}.get(path)
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d{1,6})", path, re.ASCII)
    return int(found[1]) if found else known


def _no_place(found: os.stat_result, as_folder: bool = False) -> str:
    """Why nothing is to be written over or into what stands there."""
    kind = found.st_mode
    if stat.S_ISDIR(kind):
        return "" if as_folder else "is a folder"
    if as_folder:
        return "is not a folder"
    if stat.S_ISREG(kind) or stat.S_ISFIFO(kind):
        return ""
    if stat.S_ISLNK(kind):
        return "is a link; name the file itself"
    major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
    if stat.S_ISCHR(kind) and (major in _TERMINALS or (major == _MEMORY and minor in _HARMLESS)):
        return ""
    return "is a device or a socket, not a file"


def _open_folder(path: str) -> int:
    """The folder of the file, opened step by step; root follows no link of another user on the way.

    Raises _Refused, OSError.
    """
    mode = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    with contextlib.ExitStack() as opened:

        def enter(step: str, at: int | None = None) -> int:
            folder = os.open(step, mode, dir_fd=at)
            opened.callback(os.close, folder)
            return folder

        at = enter("/")
        steps = _steps(os.path.join(os.getcwd(), os.path.dirname(path)))
        links = 0
        while steps:
            step = steps.pop()
            found = os.lstat(step, dir_fd=at)
            if not stat.S_ISLNK(found.st_mode):
                at = enter(step, at)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if os.geteuid() == _ROOT != found.st_uid:
                raise _Refused(
                    f"goes through a link of user {found.st_uid} ({step}), which root does not follow"
                )
            target = os.readlink(step, dir_fd=at)
            if target.startswith("/"):
                at = enter("/")
            steps += _steps(target)
        return os.dup(at)


def _steps(path: str) -> list[str]:
    """The names in a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
