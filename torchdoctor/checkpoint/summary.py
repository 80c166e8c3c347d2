"""What a file is, in a few lines, and as facts (``ckpt.*``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchdoctor.checkpoint import wrappers
from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.pickled import Table
from torchdoctor.checkpoint.tensors import Tensor
from torchdoctor.model import Fact, FactValue, counted

MAX_LISTED = 20_000
# keys that trainers put at the top of what they save -> who does so
_TRAINERS = {
    "pytorch-lightning_version": "PyTorch Lightning",
    "ds_version": "DeepSpeed",
    "ds_config": "DeepSpeed",
    "checkpoint_version": "Megatron",
    "mmcv_version": "MMCV",
    "train_args": "Ultralytics",
    "best_fitness": "Ultralytics",
    "fairseq": "fairseq",
    "hyper_parameters": "PyTorch Lightning",
}


def lines_of(contents: Contents) -> Iterator[str]:
    """A few sentences for people."""
    if not contents.format:
        return
    written = ", ".join(
        one for one in (_trainer(contents), contents.writer and f"written by {contents.writer}") if one
    )
    yield f"{contents.path}: {contents.format}, {counted(contents.size, 'byte')}" + (
        f", {written}" if written else ""
    )
    for state in sorted(contents.states, key=lambda one: -len(one.tensors))[:6]:
        total = sum(tensor.nbytes for tensor in state.tensors.values())
        where = f" under {'.'.join(state.path)!r}" if state.path else ""
        if len(state.tensors) > 1 or state is contents.weights:
            yield (
                f"{counted(len(state.tensors), 'tensor')}{where}: {counted(total, 'byte')}, "
                f"{_kinds(state.tensors.values())}" + (f", of {state.owner}" if state.owner else "")
            )
    if contents.optimizers:
        yield f"optimizer state under {', '.join(map(repr, contents.optimizers[:4]))}"


def facts_of(contents: Contents) -> Iterator[Fact]:
    """The same as facts, each with the file as its source; what was not found out is left out."""
    source = contents.path
    state = contents.weights
    plain: dict[str, FactValue] = {
        "ckpt.format": contents.format,
        "ckpt.version": contents.version,
        "ckpt.writer": ", ".join(one for one in (_trainer(contents), contents.writer) if one),
        "ckpt.size_bytes": contents.size,
        "ckpt.protocol": contents.protocol or None,
        "ckpt.owner": contents.owner,
        "ckpt.imports": tuple(dict.fromkeys(one.path for one in contents.imports)),
        "ckpt.optimizers": tuple(contents.optimizers),
        "ckpt.devices": tuple(sorted({one.device for one in contents.storages.values()})),
        "ckpt.storages": len(contents.storages),
        "ckpt.storage_bytes": sum(one.nbytes for one in contents.storages.values()),
        "ckpt.state_dicts": tuple(".".join(one.path) for one in contents.states),
        "ckpt.findings": tuple(dict.fromkeys(one.rule for one in contents.findings)),
    }
    if state is not None:
        plain["ckpt.wrappers"] = tuple(wrappers.of(state.tensors))
        plain["ckpt.tensors"] = tuple(
            (name, tensor.dtype, tensor.shape, tensor.storage.device if tensor.storage else "", tensor.nbytes)
            for name, tensor in list(state.tensors.items())[:MAX_LISTED]
        )
    for name, value in plain.items():
        if value not in ("", None):
            yield Fact.known(name, value, source)


def _kinds(tensors: Iterable[Tensor]) -> str:
    sizes: dict[str, int] = {}
    devices: dict[str, int] = {}
    for tensor in tensors:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + 1
        device = tensor.storage.device if tensor.storage is not None else "meta"
        devices[device] = devices.get(device, 0) + 1
    one_device = (
        f" on {next(iter(devices))}" if len(devices) == 1 else f" on {', '.join(sorted(devices)[:4])}"
    )
    return (
        ", ".join(
            f"{kind} ({number:,})" for kind, number in sorted(sizes.items(), key=lambda one: -one[1])[:4]
        )
        + one_device
    )


def _trainer(contents: Contents) -> str:
    """The trainer whose keys stand at the top, with its version where the file says it."""
    if not isinstance(contents.root, Table):
        return ""
    names = [key for key, _ in contents.root.pairs() if type(key) is str]
    for key, who in _TRAINERS.items():
        if key in names:
            version = contents.root.get(key)
            return f"{who} {version[:20]}" if "version" in key and isinstance(version, str) else who
    return ""
