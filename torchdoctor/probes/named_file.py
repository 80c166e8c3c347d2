"""Files that the caller names as input: read whole within bounds, whatever stands there."""

from __future__ import annotations

import errno
import os
import select
import stat
import time

WAIT_S = 3.0
_STEP = 1 << 20


def read(path: str, most_bytes: int, wait_s: float = WAIT_S) -> bytes:
    """The content of a file or a pipe, such as that of a shell's ``<(…)``.

    Raises OSError, also for a device, for more than ``most_bytes``, and for a pipe that nothing comes through
    for ``wait_s``; so long it blocks at most where no disk hangs.
    """
    kind = os.stat(path).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):  # opening a device may do something
        raise OSError(errno.EINVAL, "a folder" if stat.S_ISDIR(kind) else "no file, but a device or a socket")
    stream = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        return _read(stream, most_bytes, wait_s)
    finally:
        os.close(stream)


def _read(stream: int, most_bytes: int, wait_s: float) -> bytes:
    piped = not stat.S_ISREG(os.fstat(stream).st_mode)
    data = bytearray()
    deadline = time.monotonic() + wait_s
    while True:
        if piped:
            _wait(stream, deadline)
        try:
            part = os.read(stream, _STEP)
        except BlockingIOError:  # a file of /proc that gives what comes, as kmsg
            piped = True
            continue
        if not part:
            return bytes(data)
        data += part
        if len(data) > most_bytes:
            raise OSError(errno.EFBIG, f"more than {most_bytes} bytes")


def _wait(stream: int, deadline: float) -> None:
    """Until something or its end is there. Raises OSError when that takes too long."""
    poller = select.poll()
    poller.register(stream, select.POLLIN)
    if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise OSError(errno.ETIMEDOUT, "a pipe, and nobody writes to it to its end")
