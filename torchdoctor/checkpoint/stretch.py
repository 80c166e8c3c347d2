"""Bytes of a file, read where they are wanted: nothing is mapped, and nothing is read ahead of need.

A mapped file that another process cuts short ends the reader with SIGBUS; a short read ends in fewer bytes.
"""

from __future__ import annotations

import os
import stat

from torchdoctor.model import TorchdoctorError


class CheckpointError(TorchdoctorError):
    """What was named cannot be looked into: not there, not permitted, no file and no folder."""


class Stretch:
    """A stretch of bytes with a known length. ``read`` gives fewer bytes at its end."""

    size: int

    def read(self, offset: int, count: int) -> bytes:
        raise NotImplementedError

    def part(self, offset: int, size: int) -> Stretch:
        """The stretch between two offsets, kept within this one."""
        offset = min(max(offset, 0), self.size)
        return _Part(self, offset, max(0, min(size, self.size - offset)))


class OpenFile(Stretch):
    """A regular file, open for reading. To be closed; use it in a ``with`` block.

    Raises CheckpointError for what is no regular file: a device or a pipe could block for ever.
    """

    def __init__(self, path: str) -> None:
        # Non-blocking, so that a pipe put in the file's place between two looks does not hold us up.
        try:
            self._handle = os.open(
                path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._handle)
            raise CheckpointError(f"{path}: {_kind(status.st_mode)}, and no file; name a file or a folder")
        self.path = path
        self.size = status.st_size
        self.allocated = getattr(status, "st_blocks", 0) * 512

    def read(self, offset: int, count: int) -> bytes:
        count = max(0, min(count, self.size - offset))
        pieces: list[bytes] = []
        while count > 0:
            try:
                piece = os.pread(self._handle, min(count, 1 << 30), offset)
            except OSError as error:
                raise CheckpointError(f"{self.path}: byte {offset:,}: {error.strerror}") from None
            if not piece:
                break  # it has become shorter since
            pieces.append(piece)
            offset += len(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def now(self) -> int:
        """Its size at this moment: another process may write it."""
        return os.fstat(self._handle).st_size

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


class InMemory(Stretch):
    """Bytes that were unpacked, or made by a test."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + max(0, count)]


class _Part(Stretch):
    def __init__(self, whole: Stretch, start: int, size: int) -> None:
        self._whole = whole
        self._start = start
        self.size = size

    def read(self, offset: int, count: int) -> bytes:
        return (
            self._whole.read(self._start + offset, min(count, self.size - offset))
            if offset < self.size
            else b""
        )


def _kind(mode: int) -> str:
    for test, words in (
        (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
    ):  # fmt: skip
        if test(mode):
            return words
    return "something else"
