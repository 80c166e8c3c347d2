"""Training and evaluation mode: which calls set it, and which models behave otherwise in one."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import Class, dotted_text

if TYPE_CHECKING:
    from torchdoctor.lint.scene import Scene

_MINDS = re.compile(
    r"torch\.nn\.(?:\w*Dropout\w*|\w*BatchNorm\w*|RReLU|Transformer\w*)|torch\.nn\.functional\.\w*dropout\w*"
    r"|timm\.(?:\w+\.)*DropPath"
)
# networks of libraries that have such layers and are made in training mode
_NETWORKS = re.compile(r"torchvision\.models\.(?:\w+\.)*[a-z]\w*|timm\.(?:models\.)?create_model")


def sets_mode(scene: Scene, node: ast.AST, text: str) -> bool | None:
    """True where a call puts what is written ``text`` into training mode, False for evaluation, else None.

    Of a function: True where any of its calls does either.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(sets_mode(scene, call, text) is not None for call in flow.calls_under(node)) or None
    if not isinstance(node, ast.Call) or flow.method(node) not in ("eval", "train"):
        return None
    base = flow.receiver(node)
    if base is None or dotted_text(base) != text or not text:
        return None
    if flow.method(node) == "eval":
        return False if not node.args else None
    given = flow.argument(node, 0, "mode")
    if given is None:
        return True
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None


def minds_mode(scene: Scene, node: ast.AST) -> bool:
    """Is it surely a model that this file makes, in training mode, and that evaluation mode changes?"""
    origins = scene.values(node)
    return bool(origins) and all(isinstance(one, ast.Call) and _minds(scene, one, 4) for one in origins)


def _minds(scene: Scene, call: ast.Call, depth: int) -> bool:
    if depth == 0:
        return False
    owner = scene.local_class(call.func)
    if owner is not None:
        return "module" in scene.kinds(call) and _class_minds(scene, owner, depth)
    name = scene.called(call)
    if _MINDS.fullmatch(name) or _NETWORKS.fullmatch(name):
        return not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
    if name.startswith("torch.nn.") or scene.values_of.wrapper(call):
        return any(_part_minds(scene, one, depth) for one in call.args)
    return False


def _part_minds(scene: Scene, node: ast.AST, depth: int) -> bool:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.ListComp):
        node = node.elt
    if isinstance(node, ast.List | ast.Tuple):
        return any(_part_minds(scene, one, depth - 1) for one in node.elts)
    return any(isinstance(one, ast.Call) and _minds(scene, one, depth - 1) for one in scene.values(node))


def _class_minds(scene: Scene, owner: Class, depth: int) -> bool:
    for one in scene.lineage(owner):
        for method in one.methods.values():
            if any(_minds(scene, call, depth - 1) for call in flow.calls_under(method)):
                return True
            if any(isinstance(node, ast.Attribute) and node.attr == "training" for node in flow.walk(method)):
                return True
    return False
