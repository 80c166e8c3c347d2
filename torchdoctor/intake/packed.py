"""Compressed files and archives, read with limits: nothing is written to disk under a name of theirs."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from torchdoctor.model import TorchdoctorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GIB = 1 << 30
# What a file may unpack to. Logs shrink to a 10th, endless repetition to a 300th; bombs to a 1000th and less.
UNPACKED_BYTES = 8 * GIB
UNPACKED_RATIO = 300
UNPACKED_FREE = 64 << 20
MEMBERS = 4_096
XZ_MEMORY = 140 << 20  # xz -9 needs 65 MiB
NESTING = 3
_EMPTY_READS = 64  # behind the end of an archive
_NESTED_BYTES = 256 << 20  # an archive in an archive, which must be unpacked to be read
_IN_MEMORY = 8 << 20
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


class Member(NamedTuple):
    """A file in an archive: its name there, and how to open it; ``reason`` says why it is not read."""

    name: str
    open: Callable[[], BinaryIO] | None
    reason: str = ""


def compression_of(head: bytes) -> str | None:
    """gzip, xz, bzip2 or zstd by the first bytes; None for anything else."""
    return next((name for magic, name in _STREAMS if head.startswith(magic)), None)


def inner_name(name: str) -> str:
    """The name without the suffix of a compression."""
    stem, suffix = os.path.splitext(name)
    if suffix.lower() in (".tgz", ".txz", ".tbz2", ".tzst"):
        return stem + ".tar"
    return stem if suffix.lower() in _SUFFIXES else name


def is_archive(head: bytes, name: str) -> bool:
    """True for a zip or tar file by its first 512 bytes; a compressed tar is told by its name."""
    if head.startswith(b"PK\x03\x04") or head[257:262] == b"ustar":
        return not name.lower().endswith((".pt", ".pth", ".whl", ".npz", ".ckpt", ".jar", ".docx", ".xlsx"))
    return compression_of(head) is not None and inner_name(name).lower().endswith(".tar")


class Unpacked:
    """The bytes of a compressed file, up to a limit; damage is an OSError like any unreadable stretch."""

    def __init__(self, file: BinaryIO, kind: str, packed_bytes: int | None) -> None:
        self.packed = file
        self.damage: tuple[type[Exception], ...] = (EOFError, ValueError)
        self.left = limit = limit_for(packed_bytes)
        self.limit = limit
        self.file = self._open(kind)

    def _open(self, kind: str) -> BinaryIO:
        if kind == "gzip":
            import gzip
            import zlib

            self.damage += (zlib.error,)
            return cast("BinaryIO", gzip.GzipFile(fileobj=self.packed, mode="rb"))
        if kind == "bzip2":
            import bz2

            return cast("BinaryIO", bz2.BZ2File(self.packed))
        if kind == "xz":
            import lzma

            self.damage += (lzma.LZMAError,)
            return cast("BinaryIO", _Xz(self.packed))
        return self._zstd()

    def _zstd(self) -> BinaryIO:
        from importlib import import_module

        try:  # the standard library has it from Python 3.14 on
            module: Any = import_module("compression.zstd")
        except ImportError:
            pass
        else:
            self.damage += (module.ZstdError,)
            return cast("BinaryIO", module.ZstdFile(self.packed))
        try:
            module = import_module("zstandard")
        except ImportError:
            raise PackedError(NO_ZSTD) from None
        self.damage += (module.ZstdError,)
        # a window beyond 128 MiB would not fit into the memory that reading may take
        unpacker = module.ZstdDecompressor(max_window_size=1 << 27)
        return cast("BinaryIO", unpacker.stream_reader(self.packed, read_across_frames=True))

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            size = 1 << 17
        if self.left <= 0:
            raise OSError(
                f"unpacks to more than {self.limit >> 20} MiB, far more than a log of its size would; "
                "the rest was not read"
            )
        try:
            data = self.file.read(min(size, self.left))
        except self.damage as error:
            raise OSError(f"damaged archive: {error}") from error
        self.left -= len(data)
        return data

    def close(self) -> None:
        self.file.close()
        self.packed.close()


class _Xz:
    """An xz stream, or several; one whose dictionary asks for more memory than a log needs is an error."""

    def __init__(self, file: BinaryIO) -> None:
        from functools import partial
        from lzma import LZMADecompressor

        self.fresh = partial(LZMADecompressor, memlimit=XZ_MEMORY)
        self.unpacker = self.fresh()
        self.file = file

    def read(self, size: int) -> bytes:
        while True:
            if self.unpacker.eof:
                rest = self.unpacker.unused_data.lstrip(b"\0") or self.file.read(1 << 16).lstrip(b"\0")
                if not rest:
                    return b""
                self.unpacker = self.fresh()
            else:
                rest = self.file.read(1 << 16) if self.unpacker.needs_input else b""
                if self.unpacker.needs_input and not rest:
                    raise EOFError("it ends before the end of its last stream")
            data = self.unpacker.decompress(rest, size)
            if data:
                return data

    def close(self) -> None:
        """Nothing is open besides the file below."""


def limit_for(packed_bytes: int | None) -> int:
    """How many bytes a compressed file of a size may unpack to."""
    if packed_bytes is None:
        return UNPACKED_BYTES
    return min(UNPACKED_BYTES, UNPACKED_FREE + UNPACKED_RATIO * packed_bytes)


class Counted:
    """A member of an archive: its bytes count against what is left for the whole archive."""

    def __init__(self, file: BinaryIO, budget: list[int], limit: int) -> None:
        self.file = file
        self.budget = budget
        self.left = limit
        self.damage = _damage()

    def read(self, size: int = -1) -> bytes:
        if min(self.left, self.budget[0]) <= 0:
            raise OSError("unpacks to far more than a log of its size would; the rest was not read")
        try:
            data = self.file.read(min(size if size >= 0 else 1 << 17, self.left, self.budget[0]))
        except self.damage as error:
            raise OSError(f"damaged archive: {error}") from error
        self.left -= len(data)
        self.budget[0] -= len(data)
        return data

    def close(self) -> None:
        self.file.close()


def _damage() -> tuple[type[Exception], ...]:
    """What a member of a broken archive raises while it is read."""
    import tarfile
    import zipfile
    import zlib

    return EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile, tarfile.TarError


def safe_name(name: str) -> str | None:
    """The name of a member as a relative path; None when it leads out of the archive."""
    parts = name.replace("\\", "/").split("/")
    if name[:1] in "/\\" or name[1:2] == ":" or ".." in parts or "\0" in name:
        return None
    return "/".join(part for part in parts if part not in ("", "."))


def zip_members(file: BinaryIO, size: int) -> Iterator[Member]:
    """The files of a zip archive in the order of its index. Raises PackedError when it has none."""
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
        entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        raise PackedError(f"is a damaged zip archive: {error}") from None
    budget = [limit_for(size)]
    for entry in entries:
        name = safe_name(entry.filename)
        if entry.is_dir():
            continue
        if name is None:
            yield Member(entry.filename, None, "its name leads out of the archive")
        elif entry.external_attr >> 16 & 0o170000 == 0o120000:
            yield Member(name, None, "is a link")
        elif entry.flag_bits & 1:
            yield Member(name, None, "is encrypted")
        else:

            def opener(entry: zipfile.ZipInfo = entry) -> BinaryIO:
                try:
                    inner = archive.open(entry)
                except (zipfile.BadZipFile, NotImplementedError, ValueError, RuntimeError) as error:
                    raise PackedError(f"damaged archive: {error}") from None
                return cast(
                    "BinaryIO", Counted(cast("BinaryIO", inner), budget, limit_for(entry.compress_size))
                )

            yield Member(name, opener)


def tar_members(file: BinaryIO, size: int) -> Iterator[Member]:
    """The files of a tar archive in its order; each must be read before the next one is asked for."""
    import tarfile

    budget = [limit_for(size)]
    try:
        # as a stream: an archive is read once from its beginning to its end
        bounded = cast("BinaryIO", _Ended(file))
        archive = tarfile.open(fileobj=bounded, mode="r|")  # noqa: SIM115  closed with the file below it
        for entry in archive:
            name = safe_name(entry.name)
            if entry.isdir():
                continue
            if name is None:
                yield Member(entry.name, None, "its name leads out of the archive")
            elif entry.issym() or entry.islnk():
                yield Member(name, None, "is a link")
            elif not entry.isreg():
                yield Member(name, None, "is a device or pipe")
            else:

                def opener(entry: tarfile.TarInfo = entry) -> BinaryIO:
                    inner = archive.extractfile(entry)
                    return cast("BinaryIO", Counted(cast("BinaryIO", inner), budget, UNPACKED_BYTES))

                yield Member(name, opener)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        yield Member("", None, f"is damaged: {error}")


class _Ended:
    """A file at whose end reading on is an error: tarfile would go on to the end of a member of any size."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._empty = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._empty = 0 if data else self._empty + 1
        if self._empty > _EMPTY_READS:
            raise EOFError("it ends in the middle of a file")
        return data


def members(file: BinaryIO, head: bytes, size: int) -> Iterator[Member]:
    """The files in an archive. Raises PackedError when nothing at all can be read of it."""
    if head.startswith(b"PK\x03\x04"):
        return zip_members(file, size)
    kind = compression_of(head)
    if kind is not None:
        file = cast("BinaryIO", io.BufferedReader(_Raw(Unpacked(file, kind, size)), 1 << 17))
        return tar_members(file, size * UNPACKED_RATIO)
    return tar_members(file, size)


class _Raw(io.RawIOBase):
    """An unpacked stream in the form that tarfile wants."""

    def __init__(self, file: Unpacked) -> None:
        self.source = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def spooled(file: BinaryIO) -> tuple[BinaryIO, int]:
    """A seekable copy of an archive in an archive, and its size. Raises PackedError beyond 256 MiB."""
    import tempfile

    copy = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  closed by the reader
    size = 0
    while data := file.read(1 << 17):
        size += len(data)
        if size > _NESTED_BYTES:
            copy.close()
            raise PackedError(f"is an archive in an archive of more than {_NESTED_BYTES >> 20} MiB")
        copy.write(data)
    copy.seek(0)
    return cast("BinaryIO", copy), size
