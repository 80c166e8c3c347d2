"""Compressed streams as files: gzip, xz, bzip2 and zstd, with limits to bytes, memory and work."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol, cast

from torchdoctor.intake.budget import Budget
from torchdoctor.model import TorchdoctorError

_PIECE = 1 << 16
_EMPTY_STREAMS = 1_000  # in a row; a rotated log holds one, bgzip puts one at its end
_STREAMS = (
    (b"\x1f\x8b", "gzip"), (b"\xfd7zXZ", "xz"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"),
)  # fmt: skip
_SUFFIXES = (".gz", ".xz", ".bz2", ".zst", ".zstd", ".lzma")
NO_ZSTD = (
    "is compressed with zstd, which this Python cannot read; install torchdoctor[fast] (or zstandard), "
    "or unpack it with `zstd -d`"
)


class PackedError(TorchdoctorError):
    """A compressed file that cannot be read; the text says why, without the file's name."""


def compression_of(head: bytes) -> str | None:
    """gzip, xz, bzip2 or zstd by the first bytes; None for anything else."""
    return next((name for magic, name in _STREAMS if head.startswith(magic)), None)


def inner_name(name: str) -> str:
    """The name without the suffix of a compression."""
    stem, suffix = os.path.splitext(name)
    if suffix.lower() in (".tgz", ".txz", ".tbz2", ".tzst"):
        return stem + ".tar"
    return stem if suffix.lower() in _SUFFIXES else name


class Unpacked:
    """The bytes of a compressed file, as far as the budget goes; damage is an OSError.

    Raises PackedError where this Python cannot read the kind, or other decompressors hold all the memory.
    """

    def __init__(self, file: BinaryIO, kind: str, budget: Budget) -> None:
        self.packed = file
        self.budget = budget
        self.damage: tuple[type[Exception], ...] = (EOFError, ValueError)
        self.window = budget.take_window() if kind in ("xz", "zstd") else 0
        if kind in ("xz", "zstd") and not self.window:
            raise PackedError("lies in so many compressed files that the memory for them is used up")
        try:
            self.file = self._open(kind)
        except PackedError:
            self._give_back()
            raise

    def _open(self, kind: str) -> BinaryIO:
        if kind == "gzip":
            import zlib

            self.damage += (zlib.error,)
            return cast("BinaryIO", _Streams(self.packed, _Gzip))
        if kind == "bzip2":
            from bz2 import BZ2Decompressor

            return cast("BinaryIO", _Streams(self.packed, BZ2Decompressor))
        if kind == "xz":
            from functools import partial
            from lzma import LZMADecompressor, LZMAError

            self.damage += (LZMAError,)
            return cast("BinaryIO", _Streams(self.packed, partial(LZMADecompressor, memlimit=self.window)))
        return self._zstd()

    def _zstd(self) -> BinaryIO:
        from importlib import import_module

        most = self.window.bit_length() - 1  # the window is a power of two at most so large
        try:  # the standard library has it from Python 3.14 on
            module: Any = import_module("compression.zstd")
        except ImportError:
            pass
        else:
            self.damage += (module.ZstdError,)
            options = {module.DecompressionParameter.window_log_max: most}
            return cast("BinaryIO", module.ZstdFile(self.packed, options=options))
        try:
            module = import_module("zstandard")
        except ImportError:
            raise PackedError(NO_ZSTD) from None
        self.damage += (module.ZstdError,)
        unpacker = module.ZstdDecompressor(max_window_size=1 << most)
        return cast("BinaryIO", unpacker.stream_reader(self.packed, read_across_frames=True))

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            size = 1 << 17
        refusal = self.budget.refusal()
        if refusal:
            raise OSError(refusal)
        try:
            data = self.file.read(min(size, self.budget.bytes_left))
        except self.damage as error:
            raise OSError(f"damaged archive, or one that needs much memory: {error}") from error
        self.budget.bytes_read += len(data)
        return data

    def close(self) -> None:
        self.file.close()
        self.packed.close()
        self._give_back()

    def _give_back(self) -> None:
        self.budget.window += self.window
        self.window = 0


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Streams:
    """One compressed stream, or several one behind the other.

    gzip.GzipFile reads headers byte by byte and goes through empty streams without end.
    """

    def __init__(self, file: BinaryIO, fresh: Callable[[], _Decompressor]) -> None:
        self.fresh = fresh
        self.unpacker = fresh()
        self.file = file
        self.empty = 0

    def read(self, size: int) -> bytes:
        while True:
            if self.unpacker.eof:
                rest = self.unpacker.unused_data.lstrip(b"\0") or self.file.read(_PIECE).lstrip(b"\0")
                if not rest:
                    return b""
                self.empty += 1
                if self.empty > _EMPTY_STREAMS:
                    raise ValueError(f"more than {_EMPTY_STREAMS:,} streams in a row with nothing in them")
                self.unpacker = self.fresh()
            else:
                rest = self.file.read(_PIECE) if self.unpacker.needs_input else b""
                if self.unpacker.needs_input and not rest:
                    raise EOFError("it ends before the end of its last stream")
            data = self.unpacker.decompress(rest, size)
            if data:
                self.empty = 0
                return data

    def close(self) -> None:
        """Nothing is open besides the file below."""


class _Gzip:
    """zlib's decompressor of gzip streams, asked as those of bz2 and lzma are."""

    def __init__(self) -> None:
        import zlib

        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max(0, max_length))
        self._full = len(found) == max_length
        return found
