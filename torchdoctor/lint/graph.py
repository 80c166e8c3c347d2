"""Whether a value still has a graph behind it: True where every way to a parameter is surely cut."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import Binding
from torchdoctor.lint.kinds import goes_over_batches, is_loader
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from torchdoctor.lint.scene import Scene

# methods of tensors and functions that give numbers, arrays, indices or copies without a graph
_CUTS = words(
    "item detach detach_ numpy tolist argmax argmin argsort eq ne gt lt ge le long int bool byte "
    "size dim numel sign round floor ceil isnan any all nonzero bincount unique searchsorted"
)
_CUTTING_CALLS = frozenset(("float", "int", "bool", "len", "range", "round")) | frozenset(
    f"torch.{name}"
    for name in words(
        "tensor from_numpy zeros ones rand randn arange empty full randint linspace zeros_like "
        "ones_like rand_like randn_like argmax argmin eq ne gt lt ge le LongTensor FloatTensor "
        "IntTensor Tensor DoubleTensor BoolTensor eye"
    )
)
_KEEPS = words(
    "mean sum float double half view reshape squeeze unsqueeze to cuda cpu pow sqrt abs exp log "
    "clamp mul add sub div flatten permute transpose contiguous requires_grad_ clone type"
)


def cut(scene: Scene, node: ast.AST, depth: int = 10) -> bool | None:
    """True where no way to a parameter is left, False where one is seen, None where it cannot be told."""
    if depth == 0:
        return None
    if isinstance(node, ast.Constant | ast.Compare | ast.JoinedStr):
        return True
    if isinstance(node, ast.Name):
        return _name(scene, node, depth)
    if isinstance(node, ast.Attribute):
        if node.attr == "data":
            return True
        return True if node.attr in ("shape", "grad", "device", "dtype") else None
    if isinstance(node, ast.BinOp):
        return _all(scene, (node.left, node.right), depth)
    if isinstance(node, ast.UnaryOp):
        return True if isinstance(node.op, ast.Not) else cut(scene, node.operand, depth - 1)
    if isinstance(node, ast.IfExp):
        return _all(scene, (node.body, node.orelse), depth)
    if isinstance(node, ast.Subscript):
        return cut(scene, node.value, depth - 1)
    if isinstance(node, ast.Tuple | ast.List):
        return _all(scene, tuple(node.elts), depth)
    if isinstance(node, ast.Call):
        return _call(scene, node, depth)
    return None


def _all(scene: Scene, nodes: tuple[ast.expr, ...], depth: int) -> bool | None:
    told = [cut(scene, one, depth - 1) for one in nodes]
    if False in told:
        return False
    return True if told and all(told) else None


def leaf(scene: Scene, node: object) -> bool:
    """Is it made to be differentiated by: ``requires_grad=True``, or a Parameter?"""
    return isinstance(node, ast.Call) and (
        flow.is_true(flow.keyword(node, "requires_grad"))
        or scene.called(node) == "torch.nn.Parameter"
        or (flow.method(node) == "requires_grad_" and not any(flow.is_false(one) for one in node.args))
    )


def _call(scene: Scene, node: ast.Call, depth: int) -> bool | None:
    if leaf(scene, node):
        return False
    name = scene.called(node)
    if isinstance(node.func, ast.Name) and not name and not scene.lookup(node.func):
        name = node.func.id
    if name in _CUTTING_CALLS or name.startswith("numpy."):
        return True
    if name in ("torch.autograd.Variable", "torch.as_tensor"):
        return cut(scene, node.args[0], depth - 1) if node.args else None
    if name.startswith("torch.nn.functional.") or _is_loss(scene, node):
        return _all(scene, tuple(node.args), depth) if node.args and not flow.spread(node) else None
    base = flow.receiver(node)
    if base is None or name:
        return None
    if flow.method(node) in _CUTS:
        return True
    if flow.method(node) in _KEEPS:
        return _all(scene, (base, *node.args), depth)
    return None


def _is_loss(scene: Scene, node: ast.Call) -> bool:
    return (
        scene.is_a(node.func, "loss") if isinstance(node.func, ast.Name | ast.Attribute | ast.Call) else False
    )


def _name(scene: Scene, node: ast.Name, depth: int) -> bool | None:
    binds = scene.reaching(node)
    if not binds or _filled(scene, node):
        return None
    told = [_binding(scene, one, depth) for one in binds]
    told += (_binding(scene, one, depth) for one in _added(scene, node) if one not in binds)
    if False in told:
        return False
    return True if all(told) else None


def _trained_on(scene: Scene, one: Binding) -> bool:
    """Is it part of a batch, ``for x, y in batches``, in a loop that steps the parameters of a model?"""
    loop = one.node
    return (
        isinstance(loop, ast.For)
        and bool(one.path)
        and not isinstance(loop.iter, ast.Call)
        and goes_over_batches(scene, loop.iter)
        and any(
            isinstance(made, ast.Call)
            and "optimizer" in scene.kinds(made)
            and any(isinstance(given, ast.Call) and flow.method(given) == "parameters" for given in made.args)
            for call in flow.calls_under(loop)
            if flow.method(call) == "step"
            for made in scene.values(flow.receiver(call))
        )
    )


def _filled(scene: Scene, node: ast.Name) -> bool:
    """Is anything put into it in place: by index, or by a method whose name ends in an underscore?"""
    root = flow.named_function(node) or scene.tree
    known = getattr(root, "_filled", None)
    if known is None:
        known = {
            _held(target)
            for one in flow.assigns(root)
            for target in one.targets
            if isinstance(target, ast.Subscript)
        }
        known |= {
            _held(call.func.value)
            for call in flow.calls_under(root)
            if isinstance(call.func, ast.Attribute)
            and call.func.attr.endswith("_")
            and call.func.attr != "requires_grad_"
        }
        root._filled = known  # type: ignore[union-attr]
    return node.id in known


def _held(node: ast.expr) -> str:
    """The name whose elements, or itself, an expression stands for."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _added(scene: Scene, node: ast.Name) -> list[Binding]:
    """What is added to the name in place, wherever that is in its function."""
    return [one for one in scene.lookup(node) if one.how == "aug"]


def _binding(scene: Scene, one: Binding, depth: int) -> bool | None:
    if one.how in ("assign", "aug") and one.value is not None and not one.path:
        return cut(scene, one.value, depth - 1)
    if one.how == "for" and (is_loader(scene, one.value) or _trained_on(scene, one)):
        return True  # data
    if one.how == "param" and isinstance(one.node, ast.arg) and one.node.annotation is not None:
        return True if scene.name(one.node.annotation) == "torch.LongTensor" else None
    return None
