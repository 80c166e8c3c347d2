"""Bytes to physical lines: files and standard input; encodings; binary junk."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import BinaryIO

from torchdoctor.model import TorchdoctorError

CHUNK_BYTES = 1 << 18
# A physical line longer than this is handed on in pieces, so that memory stays bounded.
PIECE_BYTES = 8192
PIPE_SECONDS = 5
_MAGIC = (
    b"\x7fELF", b"\x89PNG", b"PK\x03\x04", b"GIF8", b"%PDF", b"\xff\xd8\xff", b"\x80\x02", b"\x80\x03",
    b"\x80\x04", b"\x80\x05", b"\x93NUMPY", b"RIFF", b"OggS", b"7z\xbc\xaf", b"SQLite format 3",
)  # fmt: skip


class IntakeError(TorchdoctorError):
    """An input that cannot be read; ``path`` and ``reason`` say which and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Tally:
    """What was read so far, and what had to be said about it."""

    __slots__ = ("binary", "bytes", "lines", "notes", "order")

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0
        self.binary = False
        self.notes: list[str] = []
        self.order: tuple[int, ...] = ()  # the lines' own numbers, where they were read in another order


class Resumed:
    """A stream of which the beginning was read already: the bytes again, then the rest."""

    def __init__(self, data: bytes, rest: BinaryIO) -> None:
        self._begun = BytesIO(data)
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        return self._begun.read(size) or self._rest.read(size)

    def close(self) -> None:
        self._rest.close()


def open_binary(path: str, stdin: BinaryIO | None) -> BinaryIO:
    """The bytes of a file, or of standard input for "-". Raises IntakeError with a reason in plain words."""
    if path == "-":
        return stdin if stdin is not None else sys.stdin.buffer
    try:
        about = os.stat(path)
        mode = about.st_mode
        if stat.S_ISFIFO(mode):
            return _open_pipe(path)
        if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
            raise IntakeError(path, "is a device or a socket, not a log")
        if (stat.S_ISREG(mode) and about.st_size == 0) or stat.S_ISCHR(mode):
            # /proc/kmsg, /dev/kmsg and terminals wait for more; asked not to, they end with what there is
            return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb")
        return open(path, "rb")
    except FileNotFoundError:
        web = path.startswith(("http://", "https://", "s3://", "gs://"))
        told = "no such file; nothing is fetched from elsewhere: download it first" if web else "no such file"
        raise IntakeError(path or "''", told) from None
    except IsADirectoryError:
        raise IntakeError(path, "is a folder") from None
    except PermissionError:
        raise IntakeError(path, "permission denied") from None
    except (OSError, ValueError) as error:
        raise IntakeError(path, getattr(error, "strerror", None) or str(error)) from None


def _open_pipe(path: str) -> BinaryIO:
    """A pipe with a program at its other end; without one, opening it would wait for ever."""
    import select

    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not select.select([number], [], [], PIPE_SECONDS)[0]:
        os.close(number)
        raise IntakeError(path, f"is a named pipe into which nothing was written for {PIPE_SECONDS} s")
    os.set_blocking(number, True)
    return os.fdopen(number, "rb")


def is_binary(head: bytes) -> bool:
    """True for data that is no text in any encoding read here."""
    if head.startswith(_MAGIC):
        return True
    if encoding_of(head) != "utf-8":
        return False
    text = head.replace(b"\0", b"")  # a log cut by a full disk can hold a block of NUL bytes
    if not text:
        return bool(head)
    plain = text.translate(None, bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27}) + b"\x7f")
    if len(text) - len(plain) > max(2, len(text) // 25):
        return True
    if len(text) * 8 < len(head):
        return True
    try:
        text[:-4].decode("utf-8")
    except UnicodeDecodeError:
        high = sum(byte > 126 for byte in text[:2048])
        return high * 2 > min(len(text), 2048) and b"\n" not in text  # latin-1 prose has few high bytes
    return False


def encoding_of(head: bytes) -> str:
    """The encoding by its byte-order mark, or by the NUL pattern of UTF-16; "utf-8" for all else."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = head[:2048]
    if len(sample) >= 8 and sample.count(0) * 5 >= len(sample) * 2:
        half = len(sample) // 2
        if sample[1::2].count(0) * 10 >= half * 7 and sample[0::2].count(0) * 10 <= half:
            return "utf-16-le"
        if sample[0::2].count(0) * 10 >= half * 7 and sample[1::2].count(0) * 10 <= half:
            return "utf-16-be"
    return "utf-8"


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _decoder(encoding: str, tally: Tally) -> Callable[[bytes, bool], bytes]:
    """A function that turns chunks of a wide encoding into UTF-8."""
    import codecs

    tally.notes.append(f"read as {encoding.upper()}")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda chunk, final: decoder.decode(chunk, final).encode("utf-8", "replace")


def piece(file: BinaryIO, size: int, tally: Tally) -> bytes:
    """Some bytes of a file; none at its end, or, with a note, where it cannot be read."""
    try:
        data = file.read(size)
    except (OSError, ValueError) as error:  # a truncated archive, a disk error, a closed pipe
        tally.notes.append(f"reading stopped: {getattr(error, 'strerror', None) or error}")
        return b""
    if isinstance(data, bytes):
        return data
    return b"" if data is None else str(data).encode("utf-8", "replace")


def start(file: BinaryIO, size: int, tally: Tally, change: Callable[[bytes], bytes] = bytes) -> bytes:
    """The first bytes of a file, each piece changed, as many as asked for or all there are."""
    parts: list[bytes] = []
    while size > 0 and (data := piece(file, min(size, CHUNK_BYTES), tally)):
        parts.append(change(data))
        size -= len(parts[-1])
    return b"".join(parts)


def physical_lines(data: bytes, tally: Tally) -> Iterator[tuple[int, str, bool]]:
    """The physical lines of a whole input, as ``numbered`` gives them.

    Binary input yields nothing and sets ``tally.binary``.
    """
    tally.bytes += len(data)
    if is_binary(data[:8192]):
        tally.binary = True
        return
    encoding = encoding_of(data)
    if encoding != "utf-8":
        data = _decoder(encoding, tally)(data, True)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data:
        lines = _split(data.removesuffix(b"\n"))
        tally.lines += len(lines)
        yield from numbered(lines)


def numbered(lines: list[str]) -> Iterator[tuple[int, str, bool]]:
    """(number from 1, text, joined) of each line; joined pieces continue the line before."""
    for number, line in enumerate(lines, 1):
        if len(line) <= PIECE_BYTES // 2:
            yield number, line, False
            continue
        for at, part in enumerate(_pieces(line)):
            yield number, part, at > 0


def _split(block: bytes) -> list[str]:
    try:
        return block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return [_decode(line) for line in block.split(b"\n")]


def _pieces(text: str) -> Iterator[str]:
    """Pieces of at most PIECE_BYTES / 2 characters, cut at a carriage return or space if there is one."""
    size = PIECE_BYTES // 2
    start = 0
    while len(text) - start > size:
        end = (
            text.rfind("\r", start + 1, start + size) + 1
            or text.rfind(" ", start + size // 2, start + size) + 1
        )
        if end <= start:
            end = start + size
            escape = text.rfind("\x1b", end - 64, end)
            end = escape if escape > start else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
