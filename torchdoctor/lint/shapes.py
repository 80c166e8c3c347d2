"""Shapes as far as the source shows them: a column (N, 1), or one dimension (N,)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.constants import number
from torchdoctor.lint.index import Binding
from torchdoctor.lint.layers import last
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from torchdoctor.lint.scene import Scene

_MAKERS = frozenset(f"torch.{name}" for name in ["rand", "randn", "zeros", "ones", "empty"])
_SAME_SHAPE = words(
    "relu sigmoid tanh softplus exp abs clamp float double half detach clone dropout "
    "torch.nn.Sigmoid torch.nn.Tanh torch.nn.ReLU torch.nn.Dropout torch.nn.Softplus "
    "torch.nn.Identity"
)


def dimensions(scene: Scene, call: ast.Call) -> list[ast.expr] | None:
    """The sizes given to ``torch.randn`` and its like; None where they cannot be seen one by one."""
    if scene.called(call) not in _MAKERS or flow.spread(call):
        return None
    given = list(call.args)
    size = flow.keyword(call, "size")
    if not given and size is not None:
        given = [size]
    if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
        given = list(given[0].elts)
    if not given or any(isinstance(one, ast.Starred) for one in given):
        return None
    if len(given) == 1 and number(scene, given[0]) is None and not _is_count(given[0]):
        return None  # a name may stand for a whole shape
    return given


def _is_count(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and flow.method(node) == "len"


def column_or_flat(scene: Scene, node: ast.AST, depth: int = 6) -> str:
    """``column`` for (N, 1), ``flat`` for (N,), "" for all else and where it cannot be told."""
    if depth == 0:
        return ""
    found = {_of(scene, value, depth) for value in scene.values(node)}
    return found.pop() if len(found) == 1 else ""


def _of(scene: Scene, value: object, depth: int) -> str:
    if isinstance(value, Binding):
        return _from_loader(scene, value, depth)
    if not isinstance(value, ast.Call):
        return ""
    sizes = dimensions(scene, value)
    if sizes is not None:
        return _shape([number(scene, one) for one in sizes])
    if scene.called(value) in ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.FloatTensor"):
        return _of_data(scene, value.args[0], depth) if value.args else ""
    method, base = flow.method(value), flow.receiver(value)
    if base is not None and not scene.called(value):
        shape = _of_method(scene, value, method, base, depth)
        if shape is not None:
            return shape
    return _of_output(scene, value, depth)


def _shape(sizes: list[int | None]) -> str:
    if len(sizes) == 1:
        return "flat" if sizes[0] != 1 else ""
    return "column" if len(sizes) == 2 and sizes[1] == 1 and sizes[0] != 1 else ""


def _of_method(scene: Scene, call: ast.Call, method: str, base: ast.expr, depth: int) -> str | None:
    """The shape that a method of a tensor gives; None for one that says nothing of it."""
    if method in ("view", "reshape"):
        given = [number(scene, one) if not _minus_one(one) else None for one in call.args]
        minus = [_minus_one(one) for one in call.args]
        if len(given) == 1:
            return "flat" if minus[0] else ""
        return "column" if len(given) == 2 and given[1] == 1 and minus[0] else ""
    if method == "unsqueeze":
        inner = column_or_flat(scene, base, depth - 1)
        at = call.args[0] if call.args else flow.keyword(call, "dim")
        return "column" if inner == "flat" and (number(scene, at) == 1 or _minus_one(at)) else ""
    if method in ("squeeze", "flatten"):
        inner = column_or_flat(scene, base, depth - 1)
        return "flat" if inner == "column" else ""
    return None


def _minus_one(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and node.operand.value == 1
    )


def _of_data(scene: Scene, node: ast.expr, depth: int) -> str:
    """The shape of what a tensor is made of: a list of numbers, a column of a frame."""
    for value in scene.values(node):
        if isinstance(value, ast.List) and len(value.elts) > 1:
            if all(isinstance(one, ast.Constant | ast.UnaryOp) for one in value.elts):
                return "flat"
            if all(
                isinstance(one, ast.List) and len(one.elts) == 1 and isinstance(one.elts[0], ast.Constant)
                for one in value.elts
            ):
                return "column"
        if isinstance(value, ast.Call) and flow.method(value) in ("to_numpy", "array") and depth:
            base = flow.receiver(value) if flow.method(value) == "to_numpy" else None
            return (
                _of_data(scene, base if base is not None else value.args[0], depth - 1)
                if base or value.args
                else ""
            )
        if isinstance(value, ast.Attribute) and value.attr == "values":
            return _frame(value.value)
        if isinstance(value, ast.Subscript):
            return _frame(value)
    return ""


def _frame(node: ast.expr) -> str:
    """``df["price"]`` is one column of a frame, without a second dimension."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ):
        return "flat" if isinstance(node.value, ast.Name) else ""
    return ""


def _of_output(scene: Scene, call: ast.Call, depth: int) -> str:
    """The shape that a model gives, by its last layers."""
    found: set[str] = set()
    for one in last(scene, call):
        if one is None:
            return ""
        if one.name == "torch.nn.Linear":
            out = flow.argument(one.call, 1, "out_features")
            found.add("column" if number(scene, out) == 1 else "")
        elif one.name == "torch.nn.Flatten":
            first = flow.argument(one.call, 0, "start_dim")
            found.add("flat" if number(scene, first) == 0 else "")
        elif one.name in _SAME_SHAPE:
            found.add(_before_last(scene, one.call, depth))
        else:
            found.add("")
    return found.pop() if len(found) == 1 else ""


def _before_last(scene: Scene, call: ast.Call, depth: int) -> str:
    """The shape that goes into the last layer of a Sequential, or into a function that keeps it."""
    holder = getattr(call, "_up", None)
    if isinstance(holder, ast.Call) and scene.called(holder) == "torch.nn.Sequential" and call in holder.args:
        at = holder.args.index(call)
        before = holder.args[at - 1] if at else None
        if isinstance(before, ast.Call) and scene.called(before) == "torch.nn.Linear":
            return "column" if number(scene, flow.argument(before, 1, "out_features")) == 1 else ""
        return ""
    if scene.called(call).startswith("torch.nn.") and scene.called(call).rpartition(".")[2][:1].isupper():
        return ""
    inner = call.args[0] if scene.called(call) and call.args else flow.receiver(call)
    return column_or_flat(scene, inner, depth - 1) if inner is not None else ""


def _from_loader(scene: Scene, bind: Binding, depth: int) -> str:
    """The shape of a part of the batches of a loader over a TensorDataset."""
    if bind.how != "for" or not bind.path or bind.value is None:
        return ""
    node, path = bind.value, bind.path
    if isinstance(node, ast.Call) and flow.method(node) == "enumerate" and node.args:
        node, path = node.args[0], path[1:]
    for loader in scene.values(node):
        if not (isinstance(loader, ast.Call) and scene.called(loader) == "torch.utils.data.DataLoader"):
            continue
        given = flow.argument(loader, 0, "dataset")
        for data in scene.values(given):
            if (
                isinstance(data, ast.Call)
                and scene.called(data) == "torch.utils.data.TensorDataset"
                and path
                and path[0] < len(data.args)
            ):
                return column_or_flat(scene, data.args[path[0]], depth - 1)
    return ""
