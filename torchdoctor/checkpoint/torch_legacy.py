"""What ``torch.save`` wrote before torch 1.6: pickles in a row, then the numbers; and the tar of 0.1."""

from __future__ import annotations

from typing import Final

from torchdoctor.checkpoint import pickle_machine
from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.pickled import Global, Table
from torchdoctor.checkpoint.stretch import Stretch
from torchdoctor.checkpoint.taking import ATOMIC, DOWNLOAD, took
from torchdoctor.checkpoint.tensors import WIDTHS, Storage, Tensor, Workshop, storage_dtype
from torchdoctor.model import Fix, counted

MAGIC: Final = 0x1950A86A20F9469CFC6C  # torch/serialization.py, MAGIC_NUMBER
PROTOCOL: Final = 1001


def read_legacy(source: Stretch, contents: Contents) -> None:
    """Five pickles, then for each storage its number of elements and its data."""
    contents.format = "torch legacy format"
    contents.writer = "torch 0.2 to 1.5 (or later with _use_new_zipfile_serialization=False)"
    magic = pickle_machine.read(source, 0)
    protocol = pickle_machine.read(source, magic.end)
    if protocol.value != PROTOCOL or protocol.fault:
        if protocol.cut_off:
            contents.found(
                "checkpoint-truncated", "it ends behind its magic number", fixes=(DOWNLOAD, ATOMIC)
            )
        else:
            contents.found(
                "checkpoint-corrupt",
                "there is no protocol version behind the magic number",
                fixes=(DOWNLOAD,),
            )
        return
    contents.version = str(PROTOCOL)
    system = pickle_machine.read(source, protocol.end)
    if isinstance(system.value, Table) and system.value.get("little_endian") is False:
        contents.big_endian = True
    workshop = Workshop()
    body = pickle_machine.read(source, system.end, workshop.rebuild, workshop.resolve)
    took(contents, body, workshop, "the pickle")
    if body.fault:
        return
    keys = pickle_machine.read(source, body.end)
    if keys.fault or not isinstance(keys.value, list):
        rule = "checkpoint-truncated" if keys.cut_off else "checkpoint-corrupt"
        contents.found(rule, "the list of storages behind the pickle is not whole", fixes=(DOWNLOAD, ATOMIC))
        return
    _legacy_storages(
        source, keys.end, [str(key) for key in keys.value if isinstance(key, (str, int))], contents
    )


def _legacy_storages(source: Stretch, at: int, keys: list[str], contents: Contents) -> None:
    order = "big" if contents.big_endian else "little"
    for number, key in enumerate(keys):
        storage = contents.storages.get(key)
        if storage is None:
            contents.found(
                "checkpoint-corrupt",
                f"storage {key[:40]} is in the list and no tensor has it",
                fixes=(DOWNLOAD,),
            )
            return
        head = source.read(at, 8)
        count = int.from_bytes(head, order)  # type: ignore[arg-type]
        if len(head) == 8 and count != storage.count:
            contents.found(
                "checkpoint-corrupt", f"storage {number + 1} of {len(keys)} has {counted(count, 'element')}, "
                f"its tensors ask for {storage.count:,}", fixes=(DOWNLOAD,),
            )  # fmt: skip
            return
        if at + 8 + storage.nbytes > source.size:
            rest = sum(contents.storages[one].nbytes + 8 for one in keys[number:] if one in contents.storages)
            contents.found(
                "checkpoint-truncated", f"storage {number + 1} of {len(keys)} is not whole: the file has "
                f"{counted(source.size, 'byte')} and needs {at + rest:,}", fixes=(DOWNLOAD, ATOMIC),
            )  # fmt: skip
            return
        storage.data = source.part(at + 8, storage.nbytes)
        at += 8 + storage.nbytes


def read_tar(source: Stretch, contents: Contents) -> None:
    """A tar of the parts ``storages``, ``tensors`` and ``pickle``."""
    contents.format = "torch tar format"
    contents.writer = "torch 0.1"
    parts = _tar_members(source)
    missing = [name for name in ("storages", "tensors", "pickle") if name not in parts]
    if missing:
        if len(missing) == 3:
            contents.format = "tar archive"
            contents.found(
                "checkpoint-other-format", "it is a tar archive, and none that torch 0.1 wrote",
                fixes=(Fix("Unpack it, and load the checkpoint inside."),),
            )  # fmt: skip
        else:
            contents.found(
                "checkpoint-truncated", f"its part {', '.join(missing)} is missing", fixes=(DOWNLOAD,)
            )
        return
    made = _tar_tensors(parts["tensors"], _tar_storages(parts["storages"], contents), contents)
    workshop = Workshop()
    workshop.storages = contents.storages
    pickle = pickle_machine.read(
        parts["pickle"], 0, workshop.rebuild, lambda key: made.get(key) if isinstance(key, int) else None
    )
    took(contents, pickle, workshop, "the part pickle")


def _tar_members(source: Stretch) -> dict[str, Stretch]:
    found: dict[str, Stretch] = {}
    at = 0
    for _ in range(64):
        head = source.read(at, 512)
        if len(head) < 512 or not head.strip(b"\0"):
            break
        name = head[:100].rstrip(b"\0").decode("latin-1").removeprefix("./")
        digits = head[124:136].strip(b" \0")
        if not digits or not all(48 <= one < 56 for one in digits):
            break
        size = int(digits, 8)
        found[name] = source.part(at + 512, size)
        at += 512 + -(-size // 512) * 512
    return found


def _tar_storages(part: Stretch, contents: Contents) -> dict[int, Storage]:
    number = pickle_machine.read(part, 0)
    made: dict[int, Storage] = {}
    at = number.end
    for _ in range(number.value if isinstance(number.value, int) else 0):
        head = pickle_machine.read(part, at)
        count = int.from_bytes(part.read(head.end, 8), "little")
        if head.fault or not isinstance(head.value, tuple) or len(head.value) != 3:
            contents.found(
                "checkpoint-truncated",
                f"its part storages ends behind {counted(len(made), 'storage')}",
                fixes=(DOWNLOAD,),
            )
            break
        key, device, kind = head.value
        if not isinstance(key, int) or not isinstance(kind, Global):
            contents.found("checkpoint-corrupt", "a storage has no key or no type", fixes=(DOWNLOAD,))
            break
        storage = Storage(str(key), storage_dtype(kind.name), str(device), count)
        if head.end + 8 + storage.nbytes > part.size:
            contents.found(
                "checkpoint-truncated",
                f"storage {len(made) + 1} of {number.value} is not whole",
                fixes=(DOWNLOAD,),
            )
            break
        storage.data = part.part(head.end + 8, storage.nbytes)
        at = head.end + 8 + storage.nbytes
        made[key] = contents.storages[storage.key] = storage
    else:
        _tar_views(part, at, made, contents)
    return made


def _tar_views(part: Stretch, at: int, made: dict[int, Storage], contents: Contents) -> None:
    """Storages that are stretches of others: (its key, that of the whole, offset, number of elements)."""
    views = pickle_machine.read(part, at)
    for row in views.value if isinstance(views.value, list) and not views.fault else ():
        if (
            not isinstance(row, tuple)
            or len(row) != 4
            or not all(type(one) is int and one >= 0 for one in row)
        ):
            continue
        key, whole, offset, count = row
        root = made.get(whole)
        if root is None or offset + count > root.count or count >= 1 << 62:
            continue
        view = Storage(str(key), root.dtype, root.device, count)
        width = WIDTHS.get(root.dtype, 1)
        view.data = root.data.part(offset * width, count * width) if root.data is not None else None
        made[key] = contents.storages[view.key] = view


def _tar_tensors(part: Stretch, storages: dict[int, Storage], contents: Contents) -> dict[int, Tensor]:
    """Each tensor: (key, storage, type) as a pickle, then its dimensions, sizes, strides and offset."""
    number = pickle_machine.read(part, 0)
    made: dict[int, Tensor] = {}
    at = number.end
    for _ in range(number.value if isinstance(number.value, int) else 0):
        head = pickle_machine.read(part, at)
        if head.fault or not isinstance(head.value, tuple) or len(head.value) != 3:
            contents.found(
                "checkpoint-truncated",
                f"its part tensors ends behind {counted(len(made), 'tensor')}",
                fixes=(DOWNLOAD,),
            )
            break
        key, place, kind = head.value
        dimensions = int.from_bytes(part.read(head.end, 4), "little")
        body = part.read(head.end + 8, 16 * dimensions + 8) if dimensions <= 64 else b""
        if len(body) != 16 * dimensions + 8 or not isinstance(key, int):
            contents.found(
                "checkpoint-truncated",
                f"tensor {len(made) + 1} of {number.value} is not whole",
                fixes=(DOWNLOAD,),
            )
            break
        values = tuple(int.from_bytes(body[one : one + 8], "little") for one in range(0, len(body), 8))
        storage = storages.get(place) if isinstance(place, int) else None
        dtype = storage_dtype(kind.name) if isinstance(kind, Global) else ""
        made[key] = Tensor(storage, dtype, values[:dimensions], values[-1], values[dimensions:-1])
        at = head.end + 8 + len(body)
    return made
