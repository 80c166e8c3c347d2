"""Just enough of ELF to know what a library asks of the loader, and of the loader's cache of libraries.

Reads a few kilobytes of a file, however large it is (libtorch_cuda.so has more than a gigabyte).
Sources: the System V ABI, chapter 5; sysdeps/generic/dl-cache.h of glibc.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from torchdoctor.probes.machine import Json

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29
_NAME_LIMIT = 4096


def dynamic_section(path: str) -> Json:
    """What the file needs and where it says to look. Raises ValueError for other files, and OSError."""
    with open(path, "rb") as stream:
        head = stream.read(64)
        if head[:4] != b"\x7fELF" or len(head) < 52:
            raise ValueError("no ELF file")
        wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
        try:
            return _read_dynamic(stream, head, wide, order)
        except (struct.error, OverflowError) as error:
            raise ValueError("a damaged ELF file") from error


def _read_dynamic(stream: BinaryIO, head: bytes, wide: bool, order: str) -> Json:
    if wide:
        offset = struct.unpack_from(order + "Q", head, 32)[0]
        size, count = struct.unpack_from(order + "HH", head, 54)
    else:
        offset = struct.unpack_from(order + "I", head, 28)[0]
        size, count = struct.unpack_from(order + "HH", head, 42)
    stream.seek(offset)
    table = stream.read(size * count)
    loads: list[tuple[int, int, int]] = []
    dynamic: tuple[int, int] | None = None
    for index in range(count):
        start = index * size
        if wide:
            kind, _, at, address, _, length = struct.unpack_from(order + "IIQQQQ", table, start)
        else:
            kind, at, address, _, length = struct.unpack_from(order + "IIIII", table, start)
        if kind == _PT_LOAD:
            loads.append((address, at, length))
        elif kind == _PT_DYNAMIC:
            dynamic = (at, length)
    found: dict[str, Json] = {"needed": [], "rpath": "", "runpath": "", "soname": ""}
    if dynamic is None:
        return found
    stream.seek(dynamic[0])
    data = stream.read(min(dynamic[1], 1 << 16))
    step = 16 if wide else 8
    form = order + ("qQ" if wide else "iI")
    entries = [struct.unpack_from(form, data, at) for at in range(0, len(data) - step + 1, step)]
    strings = next((value for tag, value in entries if tag == _DT_STRTAB), -1)
    base = next(
        (at + strings - start for start, at, length in loads if start <= strings < start + length), None
    )
    if base is None:
        return found
    needed: list[Json] = []
    for tag, value in entries:
        if tag == 0:
            break
        if tag == _DT_NEEDED:
            needed.append(_string(stream, base + value))
        elif tag in (_DT_SONAME, _DT_RPATH, _DT_RUNPATH):
            name = {_DT_SONAME: "soname", _DT_RPATH: "rpath", _DT_RUNPATH: "runpath"}[tag]
            found[name] = _string(stream, base + value)
    found["needed"] = needed
    return found


def _string(stream: BinaryIO, at: int) -> str:
    stream.seek(at)
    return stream.read(_NAME_LIMIT).split(b"\0", 1)[0].decode("utf-8", "replace")


def loader_cache(path: str, sonames: list[str]) -> Json:
    """Where the loader's cache finds each of the names, in its order. Raises ValueError and OSError."""
    with open(path, "rb") as stream:
        data = stream.read(16 << 20)
    start = data.find(b"glibc-ld.so.cache1.1")
    if start < 0:
        raise ValueError("no loader cache of glibc 2.2 or later")
    # header: 20 bytes of magic and version, nlibs, length of the strings, flags, 4 x 4 bytes
    (count,) = struct.unpack_from("<I", data, start + 20)
    if not 0 <= count < 1_000_000:
        raise ValueError("a loader cache of another byte order")
    wanted = {name.encode(): name for name in sonames}
    found: dict[str, Json] = {}
    for index in range(count):
        try:
            _, key, value, _, _ = struct.unpack_from("<iIIIQ", data, start + 48 + index * 24)
        except struct.error as error:
            raise ValueError("a damaged loader cache") from error
        name = wanted.get(_at(data, start + key))
        if name is not None:
            paths = found.setdefault(name, [])
            assert isinstance(paths, list)
            paths.append(_at(data, start + value).decode("utf-8", "replace"))
    return found


def _at(data: bytes, at: int) -> bytes:
    return data[at : data.find(b"\0", at)]
