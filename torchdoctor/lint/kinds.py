"""What a call of a library makes: an optimizer, a loader, a wrapped model …"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import Binding

if TYPE_CHECKING:
    from torchdoctor.lint.questions import Questions

_NONE: frozenset[str] = frozenset()
_WRAPPERS = {
    "torch.nn.parallel.DistributedDataParallel": "ddp",
    "torch.nn.DataParallel": "dp",
    "torch.distributed.fsdp.FullyShardedDataParallel": "fsdp",
}
_EXACT: dict[str, frozenset[str]] = {
    "torch.utils.data.DataLoader": frozenset({"loader", "torch-loader"}),
    "torch.utils.data.DistributedSampler": frozenset({"sampler", "distributed-sampler"}),
    "torch.amp.GradScaler": frozenset({"scaler"}),
    "torch.nn.Parameter": frozenset({"parameter"}),
    "torch.cuda.Stream": frozenset({"stream"}),
    "torch.Stream": frozenset({"stream"}),
    "torch.distributed.optim.ZeroRedundancyOptimizer": frozenset({"optimizer"}),
    "timm.create_model": frozenset({"module"}),
    "timm.models.create_model": frozenset({"module"}),
    "torch.hub.load": frozenset({"module"}),
    "timm.optim.create_optimizer": frozenset({"optimizer"}),
    "timm.optim.create_optimizer_v2": frozenset({"optimizer"}),
    "torch.utils.tensorboard.SummaryWriter": frozenset({"writer"}),
    "tensorboardX.SummaryWriter": frozenset({"writer"}),
    "torch.utils.data.TensorDataset": frozenset({"dataset"}),
}
_PATTERNS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(pattern), frozenset(kinds.split()))
    for pattern, kinds in (
        (r"torch\.optim\.lr_scheduler\.[A-Z]\w*", "scheduler"),
        (r"torch\.optim\.[A-Z]\w*", "optimizer torch-optimizer"),
        (r"(?:apex|bitsandbytes|transformers|timm|torch_optimizer|deepspeed)\.(?:\w+\.)*[A-Z]\w*"
         r"(?:Adam|Adam\w|AdamW\w*|SGD|LAMB|Lamb|Lion|Adafactor|RMSprop)|transformers\.Adam\w*", "optimizer"),
        (r"transformers\.(?:optimization\.)?get_\w*sched\w*", "scheduler"),
        (r"torch\.nn\.\w*Loss", "module loss"),
        (r"torch\.nn\.[A-Z]\w*", "module layer"),
        (r"torchvision\.models\.(?:\w+\.)*[a-z]\w*", "module"),
        (r"torchvision\.models\.(?:\w+\.)*[A-Z]\w*", "module"),
        (r"(?:\w+\.)*[A-Z]\w*\.from_pretrained", "pretrained"),
        (r"torchvision\.datasets\.[A-Z]\w*", "dataset"),
        (r"torch_geometric\.(?:loader|data)\.\w*(?:Loader|DataLoader)", "loader"),
        (r"(?:\w+\.)*(?:DataLoader|dataloader)", "loader"),
    )
)  # fmt: skip


def wraps(name: str) -> str:
    """``ddp``, ``dp`` or ``fsdp`` for a wrapper of a model, else ""."""
    return _WRAPPERS.get(name, "")


def made_by(scene: Questions, call: ast.Call) -> frozenset[str]:
    """The kinds of what a call of something from outside this file makes."""
    name = scene.called(call)
    if not name:
        return _looked_up(scene, call)
    wrapper = wraps(name)
    if wrapper:
        return frozenset({"module", wrapper})
    return named(name)


def named(name: str) -> frozenset[str]:
    """The kinds of what a class or function of that dotted name makes."""
    known = _EXACT.get(name)
    if known is None:
        known = next((kinds for pattern, kinds in _PATTERNS if pattern.fullmatch(name)), _NONE)
        _EXACT[name] = known
    return known


def _looked_up(scene: Questions, call: ast.Call) -> frozenset[str]:
    """``models.__dict__[arch]()``, ``getattr(optim, name)()`` and methods that make a thing of a kind."""
    func = call.func
    place: ast.AST | None = None
    if isinstance(func, ast.Subscript) and isinstance(func.value, ast.Attribute):
        place = func.value.value if func.value.attr == "__dict__" else None
    elif isinstance(func, ast.Call) and isinstance(func.func, ast.Name) and func.func.id == "getattr":
        place = func.args[0] if func.args else None
    elif isinstance(func, ast.Attribute) and func.attr == "from_pretrained":
        return frozenset({"pretrained"})
    return {
        "torchvision.models": frozenset({"module"}),
        "torch.optim": frozenset({"optimizer", "torch-optimizer"}),
        "torch.optim.lr_scheduler": frozenset({"scheduler"}),
        "torch.nn": frozenset({"module"}),
    }.get(scene.name(place), _NONE)


def annotated(scene: Questions, annotation: ast.expr) -> frozenset[str]:
    """The kinds that a parameter's annotation says it has."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _NONE
    if isinstance(annotation, ast.BinOp):  # X | None
        return annotated(scene, annotation.left) | annotated(scene, annotation.right)
    if isinstance(annotation, ast.Subscript):
        if scene.name(annotation.value) in ("typing.Optional", "torch.utils.data.DataLoader"):
            inner = annotated(scene, annotation.slice)
            return inner or annotated(scene, annotation.value)
        return _NONE
    name = scene.name(annotation)
    if name == "torch.nn.Module":
        return frozenset({"module"})
    if name == "torch.optim.Optimizer":
        return frozenset({"optimizer"})
    if name == "torch.utils.data.Dataset":
        return frozenset({"dataset"})
    if wraps(name):
        return frozenset({"module", wraps(name)})
    return named(name) if name else _NONE


def is_loader(scene: Questions, node: ast.AST | None, depth: int = 4) -> bool:
    """Is it a loader, or something that goes through one: ``enumerate``, ``tqdm``, ``zip`` …?"""
    if node is None or depth == 0:
        return False
    if "loader" in scene.kinds(node):
        return True
    if isinstance(node, ast.Call) and node.args:
        return any(is_loader(scene, one, depth - 1) for one in node.args[:3]) and (
            flow.method(node) in ("enumerate", "tqdm", "zip", "iter", "track", "islice", "cycle", "log_every")
            or scene.called(node) != ""
        )
    if isinstance(node, ast.Name):
        for one in scene.lookup(node):
            if (
                isinstance(one.node, ast.arg)
                and one.node.annotation is not None
                and "loader" in annotated(scene, one.node.annotation)
            ):
                return True
        return any(
            isinstance(one, ast.Call) and is_loader(scene, one, depth - 1) for one in scene.values(node)
        )
    return False


def goes_over_batches(scene: Questions, node: ast.expr) -> bool:
    """Does a loop go over batches: a loader, or something from outside this file that is no count?"""
    if is_loader(scene, node):
        return True
    while (
        isinstance(node, ast.Call) and flow.method(node) in ("enumerate", "tqdm", "iter", "zip") and node.args
    ):
        node = node.args[0]
    if isinstance(node, ast.Name):
        return all(_from_outside(scene, one) for one in scene.values(node))
    return isinstance(node, ast.Attribute) and "loader" in node.attr


def _from_outside(scene: Questions, value: object) -> bool:
    """A parameter, or a name that nothing in this file binds."""
    if isinstance(value, Binding):
        return value.how == "param"
    return isinstance(value, ast.Name) and not scene.lookup(value)
