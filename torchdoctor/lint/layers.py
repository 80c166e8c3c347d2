"""What the last operation of a model is, and what parameters a layer has."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from torchdoctor.lint.scene import Scene

_NN = "torch.nn."
_FUNCTIONAL = "torch.nn.functional."
# torch.nn classes that hold nothing to learn
_EMPTY = re.compile(
    r"(?!PReLU)\w*(?:ReLU|ReLU6|ELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softmax|Softmin|Softplus|Softsign|Hardtanh|Hardswish"
    r"|LogSoftmax|Dropout\w*|Pool\w*|Loss|Identity|Flatten|Unflatten|Upsample\w*|Pad\w*|PixelShuffle|Shrink"
    r"|Threshold|CosineSimilarity|PairwiseDistance|Fold|Unfold|ZeroPad2d|GLU|ChannelShuffle)"
)


@record(frozen=True, slots=True)
class Last(Record):
    """The operation that gives a value: a layer (``torch.nn.Linear``) or a function or method (``softmax``).

    ``call`` makes the layer, or is the operation itself.
    """

    name: str
    call: ast.Call


def last(scene: Scene, node: ast.AST, depth: int = 8) -> list[Last | None]:
    """The operations that may give the value of an expression; None among them for what cannot be told."""
    found: list[Last | None] = []
    for value in scene.values(node):
        found += _of_value(scene, value, depth)
    return found


def _of_value(scene: Scene, value: object, depth: int) -> list[Last | None]:
    if not isinstance(value, ast.Call) or depth == 0:
        return [None]
    name = scene.called(value)
    if name.startswith(_FUNCTIONAL):
        return [Last(name.removeprefix(_FUNCTIONAL), value)]
    if name.startswith("torch.") and name.count(".") == 1:
        return [Last(name.removeprefix("torch."), value)]
    if name:
        return [None]
    if isinstance(value.func, ast.Attribute) and scene.target(value) is None and not scene.kinds(value.func):
        return [Last(value.func.attr, value)]
    found: list[Last | None] = []
    for made in scene.values(value.func):
        found += _of_model(scene, made, depth - 1)
    return found or [None]


def _of_model(scene: Scene, made: object, depth: int) -> list[Last | None]:
    """The last operations of a model that is called, by the call that makes it."""
    if not isinstance(made, ast.Call) or depth <= 0:
        return [None]
    owner = scene.local_class(made.func)
    if owner is not None:
        forward = scene.find_method(owner, "forward")
        if forward is None:
            return [None]
        returns = [one.value for one in scene.index.scopes[forward].returns if one.value is not None]
        found: list[Last | None] = []
        for one in returns:
            found += last(scene, one, depth - 1)
        return found or [None]
    if scene.values_of.wrapper(made):
        return [one for value in scene.values(made.args[0]) for one in _of_model(scene, value, depth - 1)]
    name = scene.called(made)
    if name == "torch.nn.Sequential":
        if not made.args or isinstance(made.args[-1], ast.Starred):
            return [None]
        return [one for value in scene.values(made.args[-1]) for one in _of_model(scene, value, depth - 1)]
    return [Last(name, made)] if name.startswith(_NN) else [None]


def learns(scene: Scene, node: ast.AST) -> bool:
    """Is it surely a module or a parameter with something to learn, made on the spot?"""
    if not isinstance(node, ast.Call):
        return False
    name = scene.called(node)
    if name == "torch.nn.Parameter":
        return not flow.is_false(flow.argument(node, 1, "requires_grad"))
    if name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        parts = [part for one in node.args for part in (one.elts if isinstance(one, ast.List) else [one])]
        return any(learns(scene, part) for part in parts)
    if name.startswith(_NN) and name.count(".") == 2 and name.removeprefix(_NN)[:1].isupper():
        plain = name.removeprefix(_NN)
        return not _EMPTY.fullmatch(plain) and plain not in (
            "ModuleDict",
            "ParameterList",
            "ParameterDict",
            "Module",
        )
    owner = scene.local_class(node.func)
    if owner is None or "module" not in scene.kinds(node):
        return False
    return any(
        learns(scene, call)
        for one in scene.lineage(owner)
        for method in one.methods.values()
        if method.name == "__init__"
        for call in flow.calls_under(method)
        if scene.local_class(call.func) is not owner
    )
