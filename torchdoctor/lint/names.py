"""Names of torch that mean the same thing, brought to the one under which the checks know it."""

from __future__ import annotations

import re

# a private or older home of a name -> where its documentation puts it
_HOMES = (
    (r"torch\.nn\.modules\.(?:\w+\.)?([A-Z]\w*)", r"torch.nn.\1"),
    (r"torch\.nn\.parallel\.(?:data_parallel\.)?DataParallel", "torch.nn.DataParallel"),
    (
        r"(?:torch\.nn\.parallel\.distributed|torch\.distributed|torch\.nn|apex\.parallel)"
        r"\.DistributedDataParallel",
        "torch.nn.parallel.DistributedDataParallel",
    ),
    (
        r"(?:torch\.distributed\.fsdp\.fully_sharded_data_parallel|fairscale\.nn\.data_parallel|fairscale\.nn"
        r"|fairscale\.nn\.data_parallel\.fully_sharded_data_parallel)\.FullyShardedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
    ),
    (
        r"torch\.distributed\.(?:_composable\.fsdp|_composable|fsdp)(?:\.\w+)?\.fully_shard",
        "torch.distributed.fsdp.fully_shard",
    ),
    (r"torch\.utils\.data\.(?:dataloader|dataset|sampler)\.(\w+)", r"torch.utils.data.\1"),
    (r"torch\.utils\.data\.distributed\.DistributedSampler", "torch.utils.data.DistributedSampler"),
    (
        r"torch\.(?:cuda\.amp|amp|cuda\.amp\.grad_scaler|amp\.grad_scaler|cpu\.amp)\.GradScaler",
        "torch.amp.GradScaler",
    ),
    (r"torch\.distributed\.(?:distributed_c10d|c10d)\.(\w+)", r"torch.distributed.\1"),
    (r"torch\.optim\.(?!lr_scheduler)[a-z_]+\.([A-Z]\w*)", r"torch.optim.\1"),
    (
        r"torch\.autograd(?:\.grad_mode)?\.(no_grad|enable_grad|inference_mode|set_grad_enabled)",
        r"torch.\1",
    ),
    (
        r"torch\.(?:nn\.utils\.clip_grad|nn\.utils)\.(clip_grad_norm_?|clip_grad_value_)",
        r"torch.nn.utils.\1",
    ),
    (r"torch\.nn\.(?:parameter|modules)\.Parameter", "torch.nn.Parameter"),
    (r"torch\.autograd\.variable\.Variable", "torch.autograd.Variable"),
    (r"torch\.cuda\.streams\.(\w+)", r"torch.cuda.\1"),
    (r"torch\.multiprocessing\.spawn\.spawn", "torch.multiprocessing.spawn"),
    (r"(?:pytorch_lightning|lightning\.pytorch)\.(?:\w+\.)*([A-Z]\w*)", r"lightning.\1"),
    (r"torch\.nn\.functional\.([a-z]\w*)", r"torch.nn.functional.\1"),
    (r"torch\.serialization\.(load|save)", r"torch.\1"),
)
_PATTERN = re.compile("|".join(f"(?P<h{at}>{pattern})" for at, (pattern, _) in enumerate(_HOMES)))
_EACH = tuple(re.compile(pattern) for pattern, _ in _HOMES)


def canonical(name: str) -> str:
    """The name under which torch documents what ``name`` imports; other packages' names stay as they are."""
    found = _PATTERN.fullmatch(name) if "." in name else None
    if found is None or found.lastgroup is None:
        return name
    at = next(number for number in range(len(_HOMES)) if found.group(f"h{number}") is not None)
    return _EACH[at].sub(_HOMES[at][1], name)


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())
