"""Switches of the whole process that an import throws."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_SWITCHES = (
    "torch.set_grad_enabled",
    "torch.autograd.set_detect_anomaly",
    "torch.autograd.anomaly_mode.set_detect_anomaly",
    "torch.set_default_device",
    "torch.set_default_dtype",
    "torch.set_default_tensor_type",
)
# calls at module level that files make which only define
_PREPARES = ("warnings.", "logging.", "sys.path.", "torch.backends.", "os.environ.", "torch.set_", "typing.")


class GradModeAtImport(Check):
    id = "grad-mode-at-import"
    title = "Importing this file switches a mode of the whole process"
    why = """The call runs when anybody imports the file, for all code of the process: gradients stay off
    (element 0 of tensors does not require grad), every operation is traced for anomalies (several times
    slower), or tensors come in another type or on another device, far away from the line that did it."""
    fix = (
        "Call it in the program, or use a context: `with torch.no_grad():`, `with torch.device(...):`.",
        "In a library, give dtype= and device= where tensors are made.",
    )
    cause = "grad-mode-disabled"
    words = ("set_grad_enabled", "set_detect_anomaly", "set_default_")

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.notebook or not scene.calls(*_SWITCHES) or not _only_defines(scene, scene.tree.body):
            return
        for call in scene.calls(*_SWITCHES):
            if (
                flow.function(call) is not None
                or flow.class_around(call)
                or not isinstance(flow.up(call), ast.Expr)
            ):
                continue
            given = call.args[0] if call.args else flow.keyword(call, "mode")
            method = flow.method(call)
            if method == "set_grad_enabled" and not flow.is_false(given):
                continue
            if method == "set_detect_anomaly" and flow.is_false(given):
                continue
            if method == "set_default_dtype" and scene.name(given) in ("torch.float32", "torch.float"):
                continue
            yield self.at(call, "it runs at import, for the whole process", scene)


def _only_defines(scene: Scene, body: list[ast.stmt]) -> bool:
    """Does a block only import, define and name things, so that it is no program?"""
    defines = False
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defines = True
        elif isinstance(node, ast.If):
            if {"__name__", "__main__"} <= flow.names_in(node.test):
                return False
            if not all(_harmless(scene, one) for one in (*node.body, *node.orelse)):
                return False
        elif not _harmless(scene, node):
            return False
    return defines


def _harmless(scene: Scene, node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass | ast.FunctionDef | ast.ClassDef | ast.Global):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return True
    if isinstance(node, ast.Try):
        return all(_harmless(scene, one) for one in (*node.body, *node.orelse, *node.finalbody))
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        return isinstance(node.value, ast.Call) and (
            scene.called(node.value) in _SWITCHES or scene.called(node.value).startswith(_PREPARES)
        )
    return False
