"""What holds around a node: gradients off, a test of the rank, a subprocess-free program …"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_OFF = frozenset(("torch.no_grad", "torch.inference_mode"))
_GETS_RANK = frozenset(
    ("torch.distributed.get_rank", "horovod.torch.rank", "torch.distributed.get_node_local_rank")
)
_RANK_WORDS = re.compile(
    r"(?:.*_)?(?:rank|rank_?id|rank_?0|rank_?zero|local_rank|global_rank|process_index)"
    r"|is_(?:\w+_)?(?:main|master|chief|primary|rank_?(?:zero|0)|global_zero|process_zero|root|first)\w*"
    r"|is_?(?:rank0|rank_zero)|gpu|gpu_id|proc_id|process_id"
    r"|(?:is_)?(?:main|master)(?:_process|_proc|_node)?|get_(?:local_|global_)?rank|is_logging_process"
)


def gradients_off(scene: Scene, node: ast.AST, depth: int = 3) -> ast.AST | None:
    """What switches gradients off where ``node`` runs: a ``with``, a decorator, here or in every caller."""
    own = _off_here(scene, node)
    if not isinstance(own, bool):
        return own
    function = flow.named_function(node)
    if function is None or depth == 0:
        return None
    callers = scene.callers(function)
    found = [gradients_off(scene, call, depth - 1) for call in callers]
    return found[0] if found and all(one is not None for one in found) else None


def _off_here(scene: Scene, node: ast.AST) -> ast.AST | bool | None:
    """The context or decorator; None where gradients are switched on; False where neither is said."""
    for child, parent in flow.above(node):
        if isinstance(parent, ast.With | ast.AsyncWith) and child in parent.body:
            for item in reversed(parent.items):
                said = switches(scene, item.context_expr)
                if said is not None:
                    return item.context_expr if said else None
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            for one in parent.decorator_list:
                said = switches(scene, one)
                if said is not None:
                    return one if said else None
    function = flow.function(node)
    if isinstance(function, ast.Lambda):
        return _off_here(scene, function)
    if function is not None and flow.named_function(function) is not None:
        return False
    return _switched(scene, node)


def _switched(scene: Scene, node: ast.AST) -> ast.AST | bool | None:
    """A call of ``set_grad_enabled`` as a statement before the node, on every way to it."""
    here = flow.named_function(node)
    found: ast.AST | bool | None = False
    for call in scene.calls("torch.set_grad_enabled"):
        if not isinstance(flow.up(call), ast.Expr) or flow.start(call) > flow.start(node):
            continue
        if flow.named_function(call) is here and flow.covers(call, node):
            found = call if call.args and flow.is_false(call.args[0]) else None
    return found


def switches(scene: Scene, node: ast.expr) -> bool | None:
    """True for what switches gradients off, False for what switches them on or may, None for all else."""
    call = node if isinstance(node, ast.Call) else None
    name = scene.name(call.func if call is not None else node)
    if name in _OFF:
        off = not (call is not None and call.args and not flow.is_true(call.args[0]))
        return off if name == "torch.inference_mode" else True
    if name == "torch.enable_grad":
        return False
    if name == "torch.set_grad_enabled":
        return call is not None and bool(call.args) and flow.is_false(call.args[0])
    if isinstance(node, ast.Name | ast.Attribute):
        made = [one for one in scene.values(node) if one is not node and isinstance(one, ast.Call)]
        said = {switches(scene, one) for one in made}
        if len(said) == 1:
            return said.pop()
    if isinstance(node, ast.IfExp):
        said = {switches(scene, node.body), switches(scene, node.orelse)}
        return False if said - {None} else None
    return None


def is_rank(scene: Scene, node: ast.AST) -> bool:
    """Does the expression tell ranks apart: a rank by its name, its origin, or a call that asks for it?"""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            if scene.called(one) in _GETS_RANK or _RANK_WORDS.fullmatch(flow.method(one).lower()):
                return True
        elif isinstance(one, ast.Name):
            if _RANK_WORDS.fullmatch(one.id.lower()):
                return True
            if any(
                isinstance(value, ast.Call) and scene.called(value) in _GETS_RANK
                for value in scene.values(one)
            ):
                return True
        elif isinstance(one, ast.Attribute):
            if _RANK_WORDS.fullmatch(one.attr.lower()):
                return True
        elif isinstance(one, ast.Constant) and one.value in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
            return True
    return False


def one_rank_only(scene: Scene, test: ast.expr, arm: str) -> bool:
    """Does the arm of a test run on some ranks and not on others?

    ``or`` with something else in the body, and tests that the ranks exist, say nothing.
    """
    node: ast.expr = test
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return one_rank_only(scene, node.operand, "orelse" if arm == "body" else "body")
    if isinstance(node, ast.BoolOp):
        parts = [part for part in node.values if not _about_running_alone(part)] or node.values
        told = [one_rank_only(scene, part, arm) for part in parts]
        splits = isinstance(node.op, ast.And) if arm == "body" else isinstance(node.op, ast.Or)
        return any(told) if splits else all(told)
    if isinstance(node, ast.Compare):
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return False
        right = node.comparators[0]
        if isinstance(right, ast.UnaryOp) or (
            isinstance(right, ast.Constant) and right.value in (None, -1, "")
        ):
            return False  # "is there a rank at all"
        if isinstance(node.ops[0], ast.GtE) and isinstance(right, ast.Constant) and right.value == 0:
            return False
        return any(_is_rank_value(scene, side) for side in (node.left, *node.comparators))
    if isinstance(node, ast.Name) and not _RANK_WORDS.fullmatch(node.id.lower()):
        return any(
            isinstance(value, ast.Compare | ast.Call | ast.BoolOp) and one_rank_only(scene, value, arm)
            for value in scene.values(node)
            if value is not node and not isinstance(value, ast.Name)
        )
    return _is_rank_value(scene, node)


_ALONE = re.compile(
    r"distributed|world_size|num_gpus|n_gpus?|multi_?gpus?|ddp|is_initialized|is_available|local_rank == -1"
    r"|rank == -1|multiprocessing",
    re.IGNORECASE,
)


def _about_running_alone(node: ast.expr) -> bool:
    """Is a part of a test about whether there are several ranks at all: ``not args.distributed or …``?"""
    text = ast.unparse(node)
    ranks = "rank" in text.replace("local_rank == -1", "").replace("rank == -1", "").lower()
    return bool(_ALONE.search(text)) and not ranks


def _is_rank_value(scene: Scene, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_rank_value(scene, node.left)
    if isinstance(node, ast.Call):
        if scene.name(node.func) == "int" or flow.method(node) in ("int", "str"):
            return bool(node.args) and _is_rank_value(scene, node.args[0])
        if flow.method(node) in ("get", "getenv"):
            return any(
                isinstance(one, ast.Constant) and one.value in ("RANK", "LOCAL_RANK") for one in node.args
            )
        return scene.called(node) in _GETS_RANK or bool(_RANK_WORDS.fullmatch(flow.method(node).lower()))
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in ("RANK", "LOCAL_RANK")
    return isinstance(node, ast.Name | ast.Attribute) and is_rank(scene, node)


def rank_tests(scene: Scene, node: ast.AST) -> Iterator[tuple[ast.If | ast.IfExp, str]]:
    """The tests within its function that let only some ranks reach a node, an early way out among them."""
    for test, arm in flow.guards(node):
        if isinstance(test, ast.If | ast.IfExp) and one_rank_only(scene, test.test, arm):
            yield test, arm
    yield from _early(scene, node)


def _early(scene: Scene, node: ast.AST) -> Iterator[tuple[ast.If, str]]:
    for child, parent in flow.above(node):
        for block in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
            if not isinstance(block, list) or not any(one is child for one in block):
                continue
            for one in block:
                if one is child:
                    break
                if (
                    isinstance(one, ast.If)
                    and flow.leaves(one.body)
                    and not one.orelse
                    and not isinstance(one.body[-1], ast.Raise)
                    and one_rank_only(scene, one.test, "orelse")
                ):
                    yield one, "early"


def under_rank_test(scene: Scene, node: ast.AST, depth: int = 3) -> bool:
    """Is the node reached by some ranks only, here or in each of its callers in this file?"""
    if next(rank_tests(scene, node), None) is not None:
        return True
    function = flow.named_function(node)
    if function is None:
        return False
    if any(
        "rank_zero" in ast.unparse(one) or "main_process" in ast.unparse(one)
        for one in function.decorator_list
    ):
        return True
    callers = scene.callers(function) if depth else []
    return bool(callers) and all(under_rank_test(scene, call, depth - 1) for call in callers)


def distributed(scene: Scene) -> ast.AST | None:
    """What shows that the program of this file runs on several ranks; None where nothing does."""
    found = scene.calls(
        "torch.distributed.init_process_group",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
    )
    return found[0] if found else None
