"""The directory of a zip archive, read by itself: what is in it, where, and whether that can be true.

``zipfile`` holds every entry as an object, trusts sizes, and says one word about a damaged archive. Here the
directory alone is read, of a file of any size, and each thing that is wrong with it has its own words.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from torchdoctor.checkpoint.stretch import InMemory, Stretch
from torchdoctor.model import Record, counted
from torchdoctor.records import record

MAX_ENTRIES: Final = 200_000
MAX_DIRECTORY: Final = 24 << 20
MAX_UNPACKED: Final = 32 << 20
BOMB_RATIO: Final = 1100  # deflate cannot do better than 1032 to 1
_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")


class ZipError(Exception):
    """The directory cannot be read; ``cut_off`` when it is missing, as in a file whose end is missing."""

    def __init__(self, words: str, cut_off: bool = False) -> None:
        super().__init__(words)
        self.cut_off = cut_off


class Entry:
    """One file of the archive. ``start`` is the first byte of its data, -1 until its head was read."""

    __slots__ = ("crc", "flags", "head", "method", "name", "packed", "size", "start")

    def __init__(
        self, name: str, flags: int, method: int, crc: int, packed: int, size: int, head: int
    ) -> None:
        self.name = name
        self.flags = flags
        self.method = method
        self.crc = crc
        self.packed = packed
        self.size = size
        self.head = head
        self.start = -1

    @property
    def encrypted(self) -> bool:
        return bool(self.flags & 1)


@record(frozen=True, slots=True)
class Directory(Record):
    """The entries in order, and what is wrong: ``damaged`` cannot be read, ``hostile`` is no accident."""

    entries: tuple[Entry, ...]
    damaged: tuple[str, ...] = ()
    hostile: tuple[str, ...] = ()
    shifted: int = 0  # bytes before the archive that its offsets do not count


def directory(source: Stretch) -> Directory:
    """Read the directory and check it against the file. Raises ZipError when there is none."""
    count, size, offset, end = _end(source)
    if size > MAX_DIRECTORY or count > MAX_ENTRIES:
        raise ZipError(
            f"its directory has {counted(count, 'entry', 'entries')} in {counted(size, 'byte')}, more "
            "than is read"
        )
    shifted = end - size - offset
    if shifted < 0 or offset > source.size:
        raise ZipError("its directory lies outside of the file", cut_off=True)
    data = source.read(offset + shifted, size)
    entries, damaged = _entries(data, count, shifted)
    hostile: list[str] = []
    _check_names(entries, hostile)
    _check_places(source, entries, offset + shifted, damaged, hostile)
    return Directory(tuple(entries), tuple(damaged), tuple(hostile), shifted)


def _end(source: Stretch) -> tuple[int, int, int, int]:
    """Number of entries, size and offset of the directory, and the byte behind it."""
    tail_at = max(0, source.size - (1 << 16) - _END.size)
    tail = source.read(tail_at, source.size - tail_at)
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0 and len(tail) - at < _END.size:
        at = tail.rfind(b"PK\x05\x06", 0, at)
    if at < 0:
        raise ZipError("its table of contents, which stands at the end, is not there", cut_off=True)
    _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, at)
    end = tail_at + at
    locator = source.read(end - 20, 20) if end >= 20 else b""
    if locator[:4] == b"PK\x06\x07":
        (where,) = struct.unpack_from("<Q", locator, 8)
        for place in (where, end - 20 - _END64.size):
            head = source.read(place, _END64.size) if 0 <= place < source.size else b""
            if len(head) == _END64.size and head[:4] == b"PK\x06\x06":
                fields = _END64.unpack(head)
                return fields[7], fields[8], fields[9], place
        raise ZipError("its zip64 table of contents is not where it should be")
    if 0xFFFFFFFF in (size, offset):
        raise ZipError("its zip64 table of contents is missing")
    return count, size, offset, end


def _entries(data: bytes, count: int, shifted: int) -> tuple[list[Entry], list[str]]:
    entries: list[Entry] = []
    damaged: list[str] = []
    at = 0
    while at + _ENTRY.size <= len(data) and len(entries) < count:
        fields = _ENTRY.unpack_from(data, at)
        if fields[0] != b"PK\x01\x02":
            damaged.append(f"entry {len(entries) + 1} of its table of contents is damaged")
            break
        names, extras, remark = fields[10], fields[11], fields[12]
        at += _ENTRY.size
        name = data[at : at + names]
        extra = data[at + names : at + names + extras]
        at += names + extras + remark
        if at > len(data):
            damaged.append(f"entry {len(entries) + 1} of its table of contents is cut off")
            break
        packed, size, head = _zip64(extra, fields[8], fields[9], fields[16])
        text = name.decode("utf-8" if fields[3] & 0x800 else "cp437", "replace")
        entries.append(Entry(text, fields[3], fields[4], fields[7], packed, size, head + shifted))
    if len(entries) < count and not damaged:
        damaged.append(
            f"its table of contents has {counted(len(entries), 'entry', 'entries')} and announces {count:,}"
        )
    return entries, damaged


def _zip64(extra: bytes, packed: int, size: int, head: int) -> tuple[int, int, int]:
    """The true sizes and place where the fields of 32 bits are full."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        body = extra[at + 4 : at + 4 + length]
        at += 4 + length
        if kind != 1:
            continue
        values = [int.from_bytes(body[place : place + 8], "little") for place in range(0, len(body) - 7, 8)]
        if size == 0xFFFFFFFF and values:
            size = values.pop(0)
        if packed == 0xFFFFFFFF and values:
            packed = values.pop(0)
        if head == 0xFFFFFFFF and values:
            head = values.pop(0)
    return packed, size, head


def _check_names(entries: list[Entry], hostile: list[str]) -> None:
    seen: set[str] = set()
    twice = 0
    for entry in entries:
        parts = entry.name.replace("\\", "/").split("/")
        if ".." in parts or entry.name.startswith(("/", "\\")) or entry.name[1:2] == ":":
            hostile.append(f"an entry leads out of the folder it is unpacked in: {entry.name[:120]}")
        if "\0" in entry.name:
            hostile.append("an entry has a zero byte in its name")
        twice += entry.name in seen
        seen.add(entry.name)
    if twice:
        hostile.append(
            f"{counted(twice, 'name')} stand in it twice: which one is read depends on the program"
        )


def _check_places(
    source: Stretch, entries: list[Entry], limit: int, damaged: list[str], hostile: list[str]
) -> None:
    """No two entries share bytes, none reaches into the directory, none unpacks to the impossible."""
    reach, before = 0, ""
    for entry in sorted(entries, key=lambda one: one.head):
        if entry.head < reach and entry.packed:
            hostile.append(f"the entries {before[:80]} and {entry.name[:80]} share bytes of the file")
            break
        if entry.head + _LOCAL.size + entry.packed > limit:
            damaged.append(
                f"{entry.name[:120]} reaches {counted(entry.packed, 'byte')} from byte {entry.head:,}, "
                "beyond its "
                "place"
            )
        reach, before = entry.head + _LOCAL.size + entry.packed, entry.name
    for entry in entries:
        if entry.method == 0 and entry.packed != entry.size and not entry.encrypted:
            damaged.append(
                f"{entry.name[:120]} is stored as it is, in {counted(entry.packed, 'byte')} that should be "
                f"{entry.size:,}"
            )
        if entry.method == 8 and entry.size > BOMB_RATIO * max(entry.packed, 1) + 4096:
            hostile.append(
                f"{entry.name[:120]} claims to unpack from {entry.packed:,} to {counted(entry.size, 'byte')}"
            )
    del damaged[40:], hostile[40:]


def place(source: Stretch, entry: Entry) -> str:
    """Find where the data of an entry begin; what is wrong with its head, or ""."""
    head = source.read(entry.head, _LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
        return f"there is no entry at byte {entry.head:,}, where {entry.name[:120]} should begin"
    fields = _LOCAL.unpack(head)
    entry.start = entry.head + _LOCAL.size + fields[9] + fields[10]
    if entry.start + entry.packed > source.size:
        return f"{entry.name[:120]} reaches beyond the end of the file"
    name = source.read(entry.head + _LOCAL.size, fields[9])
    if name.decode("utf-8" if fields[2] & 0x800 else "cp437", "replace") != entry.name:
        return (
            f"the entry at byte {entry.head:,} has another name than the table of contents gives it: "
            f"{entry.name[:120]}"
        )
    return ""


def content(source: Stretch, entry: Entry, limit: int = MAX_UNPACKED) -> Stretch:
    """The data of an entry, unpacked where they are packed. Raises ZipError, with the reason."""
    wrong = place(source, entry)
    if wrong:
        raise ZipError(wrong)
    if entry.encrypted:
        raise ZipError(f"{entry.name[:120]} is encrypted")
    stored = source.part(entry.start, entry.packed)
    if entry.method == 0:
        return stored
    if entry.method != 8:
        raise ZipError(f"{entry.name[:120]} is packed by method {entry.method}, which torch does not read")
    if entry.size > limit:
        raise ZipError(
            f"{entry.name[:120]} unpacks to {counted(entry.size, 'byte')}, more than is unpacked here"
        )
    unpacker = zlib.decompressobj(-15)
    try:
        data = unpacker.decompress(stored.read(0, stored.size), limit + 1)
    except zlib.error as error:
        raise ZipError(f"{entry.name[:120]} cannot be unpacked: {error}") from None
    if len(data) > limit or len(data) > entry.size:
        raise ZipError(f"{entry.name[:120]} unpacks to more than the {counted(entry.size, 'byte')} it claims")
    if len(data) < entry.size:
        raise ZipError(
            f"{entry.name[:120]} unpacks to {counted(len(data), 'byte')} instead of {entry.size:,}"
        )
    return InMemory(data)


def checksum_is_right(source: Stretch, entry: Entry) -> bool:
    """Does the stored sum (CRC-32) fit the data? Reads all of them, in pieces."""
    if entry.method != 0:
        try:
            unpacked = content(source, entry)
        except ZipError:
            return False
        return zlib.crc32(unpacked.read(0, unpacked.size)) == entry.crc
    found, at = 0, 0
    while at < entry.packed:
        piece = source.read(entry.start + at, min(1 << 20, entry.packed - at))
        if not piece:
            return False
        found = zlib.crc32(piece, found)
        at += len(piece)
    return found == entry.crc
