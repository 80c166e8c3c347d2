"""Checkpoints of torch.distributed.checkpoint: ``.metadata``, and the files that it points into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from torchdoctor.checkpoint import pickle_machine, torch_archive, values
from torchdoctor.checkpoint.contents import Contents, Finding, StateDict
from torchdoctor.checkpoint.pickled import Call, Global, Table
from torchdoctor.checkpoint.stretch import OpenFile
from torchdoctor.checkpoint.taking import ATOMIC, DOWNLOAD, took
from torchdoctor.checkpoint.tensors import Storage, Tensor, Workshop, pairs_of
from torchdoctor.model import Fix, counted
from torchdoctor.records import replace

MAX_PARTS: Final = 5_000


def read_metadata(path: str) -> tuple[Contents, dict[str, list[tuple[int, int, str]]]]:
    """The table: what state dict it describes, and (offset, length, name) for each file that it points into.

    Raises CheckpointError when the file cannot be opened.
    """
    with OpenFile(path) as source:
        contents = Contents(path, source.size, "DCP (torch.distributed.checkpoint)")
        if not source.size:
            contents.found("checkpoint-empty-file", "its table, .metadata, has 0 bytes", fixes=(ATOMIC,))
            return contents, {}
        workshop = Workshop()
        pickle = pickle_machine.read(source, 0, workshop.rebuild, workshop.resolve)
        took(contents, pickle, workshop, "its table, .metadata,")
    root = contents.root
    described = _attribute(root, "state_dict_metadata")
    if not isinstance(root, Call) or not isinstance(root.function, Global) or pairs_of(described) is None:
        if not contents.broken:
            contents.found(
                "checkpoint-corrupt",
                "its .metadata is no table of torch.distributed.checkpoint",
                fixes=(DOWNLOAD,),
            )
        return contents, {}
    tensors: dict[str, Tensor] = {}
    for name, value in pairs_of(described) or ():
        tensor = _tensor(str(name), value) if isinstance(name, str) else None
        if tensor is not None and tensor.storage is not None:
            tensors[str(name)] = tensor
            contents.storages[str(name)] = tensor.storage
    contents.states.append(StateDict((), tensors))
    return contents, _places(_attribute(root, "storage_data"))


def missing(folder: str, places: dict[str, list[tuple[int, int, str]]], table: str) -> Iterator[Finding]:
    """Files that the table points into and that are not there, or end too early."""
    absent = [name for name in places if not os.path.exists(os.path.join(folder, name))]
    if absent:
        lost = sorted({name for file in absent for _, _, name in places[file]})
        yield Finding(
            "checkpoint-shard-missing",
            (f"{len(absent):,} of {counted(len(places), 'file')} are not there: {', '.join(absent[:6])}",
             f"parts of {counted(len(lost), 'tensor')} lie in them: {', '.join(lost[:4])}"),
            fixes=(Fix("Copy all files of the folder, of every node that saved: each rank writes its own. "
                       "Or take the checkpoint before it."),),
            file=table,
        )  # fmt: skip
    for file, stretches in places.items():
        path = os.path.join(folder, file)
        if file in absent:
            continue
        try:
            size = os.stat(path).st_size
        except OSError:
            continue
        reach = max(offset + length for offset, length, _ in stretches)
        cut = [name for offset, length, name in stretches if offset + length > size]
        if cut:
            yield Finding(
                "checkpoint-truncated", (f"it has {counted(size, 'byte')} and needs {reach:,}: "
                                         f"{counted(len(cut), 'part')} of tensors not "
                f"whole, as {cut[0]}",), fixes=(DOWNLOAD, ATOMIC), file=path,
            )  # fmt: skip


def look_at_part(path: str, stretches: list[tuple[int, int, str]], look_at_values: bool) -> Contents:
    """One file of a checkpoint: each stretch is what torch.save wrote, and is read as such."""
    with OpenFile(path) as source:
        contents = Contents(path, source.size, "DCP part")
        if not source.size:
            contents.found("checkpoint-empty-file", "the file has 0 bytes", fixes=(DOWNLOAD,))
            return contents
        for number, (offset, length, name) in enumerate(stretches[:MAX_PARTS]):
            if offset + length > source.size:
                continue  # told of the file as a whole
            inner = Contents(path, length)
            part = source.part(offset, length)
            if part.read(0, 2) == b"PK":
                torch_archive.read_archive(part, inner)
            elif length:
                contents.found(
                    "checkpoint-corrupt",
                    f"what begins at byte {offset:,}, where {name} should be, is nothing that torch.save "
                    "wrote",
                    fixes=(DOWNLOAD,),
                )
                break
            contents.imports.extend(inner.imports)
            contents.findings.extend(
                replace(one, says=(f"{name}: {one.says[0]}", *one.says[1:])) for one in inner.findings
            )
            _keep_values(contents, inner, f"{number} {name}", name, look_at_values)
        if len(stretches) > MAX_PARTS:
            contents.not_read.append(f"{len(stretches) - MAX_PARTS:,} of its parts were not looked into")
    return contents


def _keep_values(contents: Contents, inner: Contents, key: str, name: str, look_at_values: bool) -> None:
    if not look_at_values:
        return
    for storage in inner.storages.values():
        seen = values.look(storage, inner.big_endian)
        if seen is not None and seen.first >= 0:
            kept = Storage(key, storage.dtype, storage.device, storage.count)
            contents.values[key] = seen
            contents.states.append(StateDict((), {name: Tensor(kept, storage.dtype, (storage.count,))}))


def _attribute(value: object, name: str) -> object:
    """An attribute of a pickled dataclass, out of its state."""
    state = value.state if isinstance(value, Call) else None
    if isinstance(state, tuple) and len(state) == 2:  # (dictionary, slots)
        state = state[0]
    if isinstance(state, Table):
        return state.get(name)
    return None


def _tensor(name: str, value: object) -> Tensor | None:
    """TensorStorageMetadata: properties with the dtype, and the size of the whole tensor."""
    size = _attribute(value, "size")
    if isinstance(size, Call) and isinstance(size.args, tuple) and size.args:
        size = size.args[0]
    if not isinstance(size, (tuple, list)) or not all(
        type(one) is int and 0 <= one < 1 << 62 for one in size
    ):
        return None
    dtype = _attribute(_attribute(value, "properties"), "dtype")
    if not isinstance(dtype, Global):
        properties = _attribute(value, "properties")
        state = properties.state if isinstance(properties, Call) else None
        dtype = (
            next((one for one in state if isinstance(one, Global)), None)
            if isinstance(state, tuple)
            else None
        )
    shape = tuple(size)
    tensor = Tensor(
        Storage(name, dtype.name if isinstance(dtype, Global) else "", "cpu", 0),
        dtype.name if isinstance(dtype, Global) else "",
        shape,
    )
    assert tensor.storage is not None
    tensor.storage.count = tensor.count
    return tensor


def _places(value: object) -> dict[str, list[tuple[int, int, str]]]:
    """{MetadataIndex: _StorageInfo}: file -> stretches."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for index, info in pairs_of(value) or ():
        name = _attribute(index, "fqn")
        file, offset, length = (_attribute(info, one) for one in ("relative_path", "offset", "length"))
        if (
            not isinstance(file, str)
            or type(offset) is not int
            or type(length) is not int
            or not isinstance(name, str)
        ):
            continue
        if os.path.isabs(file) or ".." in file.split("/") or offset < 0 or length < 0:
            continue
        found.setdefault(file, []).append((offset, length, name))
    return found
