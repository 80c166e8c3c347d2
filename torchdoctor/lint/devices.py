"""What puts something on a GPU."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from torchdoctor.lint.scene import Scene

_CONSTRUCTORS = frozenset(
    f"torch.{name}"
    for name in words("tensor zeros ones empty full rand randn randint arange as_tensor linspace eye")
)


def cuda(scene: Scene, node: ast.AST | None) -> bool:
    """Does an expression name a CUDA device, or choose it where there is one?"""
    if node is None:
        return False
    for value in scene.values(node):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if value.value.startswith("cuda"):
                return True
        elif isinstance(value, ast.JoinedStr):
            head = value.values[0] if value.values else None
            if isinstance(head, ast.Constant) and str(head.value).startswith("cuda"):
                return True
        elif (
            isinstance(value, ast.Call)
            and scene.called(value) == "torch.device"
            and value.args
            and cuda(scene, value.args[0])
        ):
            return True
    return False


def on_cuda(scene: Scene, call: ast.Call) -> bool:
    """Does a call put something on a GPU: ``.cuda()``, ``.to("cuda")``, ``torch.zeros(…, device="cuda")``?"""
    method = flow.method(call)
    if isinstance(call.func, ast.Attribute) and not scene.called(call):
        if method == "cuda":
            return True
        if method == "to":
            return any(cuda(scene, one) for one in (*call.args[:1], flow.keyword(call, "device")))
    return scene.called(call) in _CONSTRUCTORS and cuda(scene, flow.keyword(call, "device"))
