"""One file: what it is, read by the reader of its format. Nothing of it is executed."""

from __future__ import annotations

import os
from typing import Final

from torchdoctor.checkpoint import (
    pickle_machine,
    safetensors,
    sniff,
    state_dicts,
    torch_archive,
    torch_legacy,
    values,
)
from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.stretch import InMemory, OpenFile, Stretch
from torchdoctor.checkpoint.taking import DOWNLOAD, took
from torchdoctor.checkpoint.tensors import Workshop
from torchdoctor.model import Fix, counted

_PICKLE_STARTS: Final = frozenset(b"\x80(c]}NIJKMVSUTXGFLl)di")
_OWN_NAMES: Final = (".pkl", ".pickle", ".metadata", ".p", ".joblib")


def inspect(path: str, look_at_values: bool = False) -> Contents:
    """Read what a file says about itself: directory and pickle, not the numbers. Bounded time and memory.

    With ``look_at_values`` all numbers are read too, in pieces, for NaN and infinity.
    Raises CheckpointError for what cannot be opened, or is no regular file.
    """
    with OpenFile(path) as source:
        contents = Contents(path, source.size)
        _read(source, contents)
        state_dicts.find(contents)
        if look_at_values:
            for key, storage in contents.storages.items():
                seen = values.look(storage, contents.big_endian)
                if seen is not None:
                    contents.values[key] = seen
        if source.now() != source.size:
            contents.notes.append(
                f"its size changed from {source.size:,} to {counted(source.now(), 'byte')} while it was "
                "read: "
                "another process writes it"
            )
        for storage in contents.storages.values():
            storage.data = None  # it belongs to the file that is closed now
        return contents


def _read(source: OpenFile, contents: Contents) -> None:
    head = source.read(0, 512)
    if head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        torch_archive.read_archive(source, contents)
    elif safetensors.looks_so(source):
        safetensors.read(source, contents)
    elif _is_tar(head):
        torch_legacy.read_tar(source, contents)
    elif sniff.identify(source, contents):
        return
    elif head[0] in _PICKLE_STARTS:
        read_pickle(source, contents)
    elif contents.path.endswith(".safetensors"):
        length = int.from_bytes(head[:8], "little")
        contents.format = "safetensors"
        contents.found(
            "safetensors-header", f"it begins with {head[:8].hex(' ')}: that is no length of a table "
                                  f"({length:,}) with the table behind it",
            fixes=(DOWNLOAD,),
        )  # fmt: skip
    else:
        _unknown(source, head, contents)
    for inner in contents.nested:
        _read_nested(inner, contents)


def read_pickle(source: Stretch, contents: Contents) -> None:
    """A bare pickle: torch's format before 1.6 when it begins with torch's number, else somebody's own."""
    workshop = Workshop()
    first = pickle_machine.read(source, 0, workshop.rebuild, workshop.resolve)
    if type(first.value) is int and first.value == torch_legacy.MAGIC:
        torch_legacy.read_legacy(source, contents)
        return
    contents.format = "pickle"
    if first.fault and not first.cut_off and not first.imports and first.end < 64:
        contents.format = ""
        _unknown(source, source.read(0, 16), contents)
        return
    took(contents, first, workshop, "the pickle")
    name = os.path.basename(contents.path).lower()
    if not name.endswith(_OWN_NAMES) and not contents.broken:
        contents.found(
            "checkpoint-other-format", "it is a bare pickle that torch.save did not write: torch.load "
                                       "says 'Invalid magic number'",
            fixes=(Fix("If it is your own, read it with pickle.load, which runs whatever it holds, and "
                       "save it with torch.save.",
                       None, "runs-code"),),
        )  # fmt: skip


def _is_tar(head: bytes) -> bool:
    """By the mark of POSIX and GNU, or by a checksum that fits (the first tar had no mark)."""
    if len(head) < 512:
        return False
    if head[257:262] == b"ustar":
        return True
    digits = head[148:156].strip(b" \0")
    if not digits or not all(48 <= one < 56 for one in digits):
        return False
    return int(digits, 8) == sum(head[:148]) + 8 * 32 + sum(head[156:])


def _unknown(source: Stretch, head: bytes, contents: Contents) -> None:
    shown = " ".join(f"{one:02x}" for one in head[:8])
    at = _archive_inside(source)
    says = [f"it begins with {shown}, which no format of checkpoints does"]
    fixes = (DOWNLOAD,)
    if at:
        says.append(f"a zip archive begins at byte {at:,}: something was written before it")
    contents.found("checkpoint-corrupt", *says, fixes=fixes)


def _archive_inside(source: Stretch) -> int:
    """Where an archive of torch.save begins in the first 64 KiB; 0 when none does."""
    return max(source.read(0, 1 << 16).find(b"PK\x03\x04"), 0)


def _read_nested(data: bytes, contents: Contents) -> None:
    """A file of torch.save inside of a pickle: what it imports counts as well."""
    inner = Contents(contents.path, len(data))
    source = InMemory(data)
    if data.startswith(b"PK"):
        torch_archive.read_archive(source, inner)
    else:
        read_pickle(source, inner)
    contents.imports.extend(inner.imports)
    contents.codes |= inner.codes
