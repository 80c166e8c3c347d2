"""Constants behind names: numbers, strings and flags that the source itself fixes."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

from torchdoctor.lint import flow

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdoctor.lint.scene import Scene

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_LARGEST = 1 << 40


def constant(scene: Scene, node: ast.AST | None) -> object:
    """The constant that an expression is wherever it comes from; None where it is none, or not one."""
    if node is None:
        return None
    found = {
        (type(one.value), one.value) if isinstance(one, ast.Constant) else None for one in scene.values(node)
    }
    one = found.pop() if len(found) == 1 else None
    return one[1] if one is not None else None


def given(scene: Scene, call: ast.Call, at: int, name: str) -> ast.expr | None:
    """An argument by its position or name, or out of ``**name`` where that is one dict of this file that
    nothing changes."""
    found = flow.argument(call, at, name)
    for one in call.keywords if found is None else ():
        if one.arg is None:
            made = scene.values(one.value)
            if len(made) == 1 and (one.value is made[0] or _only_spread(scene, one.value)):
                found = _entry(made[0], name)
    return found


def _entry(made: object, name: str) -> ast.expr | None:
    """What stands under a key of ``{…}`` or ``dict(…)``."""
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "dict":
        return flow.keyword(made, name) if not made.args else None
    if isinstance(made, ast.Dict) and None not in made.keys:
        for key, value in zip(made.keys, made.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                return value
    return None


def _only_spread(scene: Scene, node: ast.expr) -> bool:
    """Is it a name that is used as ``**name`` alone?"""
    return isinstance(node, ast.Name) and all(
        isinstance(at := flow.up(one), ast.keyword) and at.arg is None for one in scene.uses(node.id)
    )


def number(scene: Scene, node: ast.AST | None) -> int | None:
    """The whole number that an expression is; for an argument of the program its default."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = number(scene, node.left), number(scene, node.right)
        if left is None or right is None or max(abs(left), abs(right)) > _LARGEST:
            return None
        return _OPERATIONS[type(node.op)](left, right)
    value = constant(scene, node)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(node, ast.Attribute) and value is None:
        return _option(scene, node.attr)
    return None


def _option(scene: Scene, name: str) -> int | None:
    """The default of an option of argparse that ends up under this name."""
    for call in scene.methods("add_argument"):
        flags = [
            one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        if any(flag.lstrip("-").replace("-", "_") == name for flag in flags):
            default = flow.keyword(call, "default")
            if isinstance(default, ast.Constant) and isinstance(default.value, int):
                return default.value
    return None
