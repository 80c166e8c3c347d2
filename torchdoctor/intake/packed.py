"""Archives, read with limits: nothing is written to disk under a name of theirs."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, cast

from torchdoctor.intake.budget import Budget, limit_for
from torchdoctor.intake.decompressed import PackedError, Unpacked, compression_of, inner_name

_EMPTY_READS = 64  # behind the end of an archive
_NESTED_BYTES = 256 << 20  # an archive in an archive, which must be unpacked to be read
_IN_MEMORY = 8 << 20
_INDEX_BYTES = 4 << 20  # of a zip archive: some 20,000 names
# A long name, or attributes of a file, in a header of its own; so many may stand before one file.
_EXTENSION_BYTES = 256 << 10
_EXTENSIONS = 16
_MORE_HEADERS = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
# stored, deflate, bzip2; lzma takes as much memory as the file asks for
_ZIP_METHODS = (0, 8, 12)


class Member(NamedTuple):
    """A file in an archive: its name there, and how to open it; ``reason`` says why it is not read."""

    name: str
    open: Callable[[], BinaryIO] | None
    reason: str = ""


def is_archive(head: bytes, name: str) -> bool:
    """True for a zip or tar file by its first 512 bytes; a compressed tar is told by its name."""
    if head.startswith(b"PK\x03\x04") or head[257:262] == b"ustar":
        return not name.lower().endswith((".pt", ".pth", ".whl", ".npz", ".ckpt", ".jar", ".docx", ".xlsx"))
    return compression_of(head) is not None and inner_name(name).lower().endswith(".tar")


class Counted:
    """A file in an archive: its bytes count against the budget, and against a limit of its own."""

    def __init__(self, file: BinaryIO, budget: Budget, limit: int) -> None:
        self.file = file
        self.budget = budget
        self.left = limit
        self.damage = _damage()

    def read(self, size: int = -1) -> bytes:
        refusal = self.budget.refusal()
        if not refusal and self.left <= 0:
            refusal = "unpacks to far more than a log of its size would; the rest was not read"
        if refusal:
            raise OSError(refusal)
        try:
            data = self.file.read(min(size if size >= 0 else 1 << 17, self.left, self.budget.bytes_left))
        except self.damage as error:
            raise OSError(f"damaged archive: {error}") from error
        self.left -= len(data)
        self.budget.bytes_read += len(data)
        return data

    def close(self) -> None:
        self.file.close()


def _damage() -> tuple[type[Exception], ...]:
    """What a member of a broken archive raises while it is read."""
    import zipfile
    import zlib

    return EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile, tarfile.TarError


def safe_name(name: str) -> str | None:
    """The name of a member as a relative path; None when it leads out of the archive."""
    parts = name.replace("\\", "/").split("/")
    if name[:1] in "/\\" or name[1:2] == ":" or ".." in parts or "\0" in name:
        return None
    return "/".join(part for part in parts if part not in ("", "."))


class _Indexed:
    """A zip file whose index is read in pieces of a bounded size; zipfile asks for all of it at once."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > _INDEX_BYTES:
            raise OSError(f"its index takes {size >> 20:,} MiB, more than {_INDEX_BYTES >> 20}")
        return self._file.read(size if size >= 0 else _INDEX_BYTES)

    def close(self) -> None:
        self._file.close()


def zip_members(file: BinaryIO, budget: Budget) -> Iterator[Member]:
    """The files of a zip archive in the order of its index. Raises PackedError when it has none."""
    import zipfile

    try:
        archive = zipfile.ZipFile(cast("BinaryIO", _Indexed(file)))
        entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        raise PackedError(f"is a damaged zip archive: {error}") from None
    for entry in entries:
        if not _counted(budget):
            yield Member("", None, _TOO_MANY)
            return
        name = safe_name(entry.filename)
        if entry.is_dir():
            continue
        if name is None:
            yield Member(entry.filename, None, "its name leads out of the archive")
        elif entry.external_attr >> 16 & 0o170000 == 0o120000:
            yield Member(name, None, "is a link")
        elif entry.flag_bits & 1:
            yield Member(name, None, "is encrypted")
        elif entry.compress_type not in _ZIP_METHODS:
            yield Member(name, None, "is compressed by another method than deflate or bzip2")
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


_TOO_MANY = "holds so many entries that not all were looked at"


def _counted(budget: Budget) -> bool:
    """One more entry of an archive; False when there were too many."""
    budget.entries -= 1
    return budget.entries >= 0 and not budget.late()


class _Header(tarfile.TarInfo):
    """A header of a tar archive that asks for no more memory than a header of a log needs.

    The class attribute ``ahead`` counts the extensions that stand before the header of one file.
    """

    ahead = 0

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        # what every release of tarfile calls for a header that it has read; newer ones do not call frombuf
        if self.size < 0:
            raise tarfile.TarError("a header with a negative size")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.TarError("a file with holes (--sparse), which is not read")
        if self.type in _MORE_HEADERS:
            type(self).ahead += 1
            if self.size > _EXTENSION_BYTES or self.ahead > _EXTENSIONS:
                raise tarfile.TarError("headers of headers beyond any need")
        else:
            type(self).ahead = 0
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]

    def _sparse(self, *_: object) -> None:
        raise tarfile.TarError("a file with holes (--sparse), which is not read")

    # what tarfile calls for the map of a file's holes, which may be of any length
    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _sparse


def tar_members(file: BinaryIO, budget: Budget) -> Iterator[Member]:
    """The files of a tar archive in its order; each must be read before the next one is asked for."""
    headers = type("_Headers", (_Header,), {"ahead": 0})
    try:
        # as a stream: an archive is read once from its beginning to its end
        bounded = cast("BinaryIO", _Ended(file, budget))
        archive = tarfile.open(fileobj=bounded, mode="r|", tarinfo=headers)  # noqa: SIM115  closed with its file
        while (entry := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # it would remember all of them
            if not _counted(budget):
                yield Member("", None, _TOO_MANY)
                return
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
                    return cast("BinaryIO", Counted(cast("BinaryIO", inner), budget, budget.limit))

                yield Member(name, opener)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        yield Member("", None, f"is damaged: {error}")


class _Ended:
    """A file at whose end reading on is an error: tarfile would go on to the end of a member of any size."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self._empty = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._budget.bytes_passed += len(data)
        self._empty = 0 if data else self._empty + 1
        if self._empty > _EMPTY_READS:
            raise EOFError("it ends in the middle of a file")
        if self._budget.late():
            raise EOFError("passing over what is in it took too long")
        return data


def members(file: BinaryIO, head: bytes, budget: Budget) -> Iterator[Member]:
    """The files in an archive. Raises PackedError when nothing at all can be read of it."""
    if head.startswith(b"PK\x03\x04"):
        return zip_members(file, budget)
    kind = compression_of(head)
    if kind is not None:
        file = cast("BinaryIO", Unpacked(file, kind, budget))
    return tar_members(file, budget)


def spooled(file: BinaryIO) -> BinaryIO:
    """A seekable copy of an archive in an archive. Raises PackedError beyond 256 MiB."""
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
    return cast("BinaryIO", copy)
