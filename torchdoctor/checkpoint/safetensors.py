"""Files of safetensors: a length, a table in JSON, and the numbers; nothing in them can run."""

from __future__ import annotations

from typing import Final

from torchdoctor import json_text
from torchdoctor.checkpoint.contents import Contents, StateDict
from torchdoctor.checkpoint.stretch import Stretch
from torchdoctor.checkpoint.taking import ATOMIC, DOWNLOAD
from torchdoctor.checkpoint.tensors import WIDTHS, Storage, Tensor
from torchdoctor.model import counted

MAX_HEADER: Final = 100_000_000  # of the safetensors library
MAX_READ: Final = 8 << 20  # of a table this large some eighty thousand tensors fit into memory here
_DTYPES: Final = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def looks_so(source: Stretch) -> bool:
    """Does the file begin with a plausible length and the brace of the table?"""
    head = source.read(0, 9)
    return len(head) == 9 and head[8:] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= MAX_HEADER


def read(source: Stretch, contents: Contents) -> None:
    contents.format = "safetensors"
    head = source.read(0, 8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or 8 + length > source.size:
        contents.found(
            "checkpoint-truncated", f"its table should take {counted(length, 'byte')}, and the file has "
                                    f"{source.size:,}",
            fixes=(DOWNLOAD, ATOMIC),
        )  # fmt: skip
        return
    if length > MAX_HEADER:
        contents.found(
            "safetensors-header",
            f"its table would be {counted(length, 'byte')} long, more than safetensors reads",
        )
        return
    if length > MAX_READ:
        contents.not_read.append(f"its table of {counted(length, 'byte')} is larger than is read")
        return
    try:
        table = json_text.parse(source.read(8, length))
    except json_text.JsonTooLarge:
        contents.not_read.append(f"its table of {counted(length, 'byte')} holds more than is read")
        return
    except json_text.JsonRefused as error:
        contents.found("safetensors-header", f"its table is no JSON: {str(error)[:120]}", fixes=(DOWNLOAD,))
        return
    if not isinstance(table, dict):
        contents.found("safetensors-header", "its table is no JSON object", fixes=(DOWNLOAD,))
        return
    metadata = table.pop("__metadata__", None)
    if isinstance(metadata, dict):
        contents.metadata = {str(key)[:200]: str(value)[:2000] for key, value in list(metadata.items())[:200]}
        contents.writer = contents.metadata.get("format", "")
        contents.writer = {
            "pt": "safetensors.torch",
            "tf": "safetensors.tensorflow",
            "flax": "safetensors.flax",
        }.get(contents.writer, contents.writer)
    _tensors(source, table, 8 + length, contents)


def _tensors(source: Stretch, table: dict[str, object], start: int, contents: Contents) -> None:
    """The tensors, whose stretches must follow each other without a gap and end with the file."""
    found: dict[str, Tensor] = {}
    places: list[tuple[int, int, str]] = []
    for name, row in table.items():
        tensor, begin, end, wrong = _row(name, row)
        if wrong or tensor is None:
            contents.found("safetensors-header", wrong, fixes=(DOWNLOAD,))
            return
        assert tensor.storage is not None
        if start + end <= source.size:
            tensor.storage.data = source.part(start + begin, end - begin)
        contents.storages[name] = tensor.storage
        found[name] = tensor
        places.append((begin, end, name))
    contents.states.append(StateDict((), found))
    places.sort()
    reach = 0
    for begin, end, name in places:
        if begin != reach:
            words = (
                "shares bytes with the one before it"
                if begin < reach
                else f"leaves {counted(begin - reach, 'byte')} unused before it"
            )
            contents.found("safetensors-header", f"{name[:120]} {words}", fixes=(DOWNLOAD,))
            return
        reach = end
    if start + reach > source.size:
        cut = sum(start + end > source.size for _, end, _ in places)
        contents.found(
            "checkpoint-truncated", f"the file has {counted(source.size, 'byte')} and needs "
                                    f"{start + reach:,}: "
            f"{cut:,} of {counted(len(places), 'tensor')} are not whole", fixes=(DOWNLOAD, ATOMIC),
        )  # fmt: skip
    elif start + reach < source.size:
        contents.found(
            "safetensors-header",
            f"{counted(source.size - start - reach, 'byte')} stand behind the last tensor",
            fixes=(DOWNLOAD,),
        )


def _row(name: str, row: object) -> tuple[Tensor | None, int, int, str]:
    """Tensor, begin and end of its bytes, and what is wrong with its line of the table."""
    where = row.get("data_offsets") if isinstance(row, dict) else None
    shape = row.get("shape") if isinstance(row, dict) else None
    numbers = (
        [*shape, *where] if isinstance(shape, list) and isinstance(where, list) and len(where) == 2 else [-1]
    )
    if not isinstance(row, dict) or not all(type(one) is int and 0 <= one < 1 << 62 for one in numbers):
        return None, 0, 0, f"{name[:120]} has no shape and no place in the table"
    dtype = _DTYPES.get(str(row.get("dtype")), str(row.get("dtype"))[:20])
    begin, end = numbers[-2:]
    tensor = Tensor(Storage(name, dtype, "cpu", 0), dtype, tuple(numbers[:-2]))
    assert tensor.storage is not None
    tensor.storage.count = tensor.count
    if begin > end or (dtype in WIDTHS and "float4" not in dtype and end - begin != tensor.nbytes):
        words = (
            f"{dtype} of shape {list(tensor.shape)} takes {counted(tensor.nbytes, 'byte')}, the table "
            "gives it "
            f"{end - begin:,}"
        )
        return None, 0, 0, f"{name[:120]}: {words}"
    return tensor, begin, end, ""
