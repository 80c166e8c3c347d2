"""Steps of training: what is differentiated, in which loop, and what else that loop does."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import dotted_text
from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene, Step

_MOST = 200  # backward passes of one source; no more are looked at
_AUTOGRAD = "torch.autograd.backward"


@record(frozen=True, slots=True)
class Backward(Record):
    """A backward pass; ``managed`` through a library's engine, ``scaled`` through a scaler."""

    call: ast.Call
    loss: ast.expr
    managed: bool = False
    scaled: bool = False


@record(frozen=True, slots=True)
class Iteration(Record):
    """A loop that repeats a node. ``anchor`` is that node, or the call in the loop that leads to it."""

    loop: Loop
    anchor: ast.AST


def backward(scene: Scene, call: ast.Call) -> Backward | None:
    """The backward pass that a call is; None for any other call."""
    if flow.method(call) != "backward":
        return None
    if scene.called(call) == _AUTOGRAD:
        return Backward(call, call.args[0]) if call.args else None
    base = flow.receiver(call)
    if base is None or (isinstance(base, ast.Name) and base.id in ("self", "super", "ctx")):
        return None
    if isinstance(base, ast.Call) and flow.method(base) == "super":
        return None
    if call.args and not (
        isinstance(call.args[0], ast.Constant) or "gradient" in flow.names_in(call.args[0])
    ):
        if scene.kinds(base) or isinstance(base, ast.Name | ast.Attribute):
            return Backward(call, call.args[0], managed=True)
        return Backward(call, base)
    if isinstance(base, ast.Call) and flow.method(base) in ("scale", "scale_loss") and base.args:
        return Backward(call, base.args[0], scaled=True)
    scaled = isinstance(base, ast.Name) and _from_scaler(scene, base)
    return Backward(call, base, scaled=scaled)


def _from_scaler(scene: Scene, node: ast.Name) -> bool:
    """``scaled = scaler.scale(loss)``, or ``with amp.scale_loss(…) as scaled``."""
    return any(
        isinstance(one.value, ast.Call) and flow.method(one.value) in ("scale", "scale_loss")
        for one in scene.reaching(node)
    )


def backwards(scene: Scene) -> list[Backward]:
    """All backward passes of the source."""
    found = [backward(scene, call) for call in scene.methods("backward")[:_MOST]]
    return [one for one in found if one is not None]


def iterations(scene: Scene, node: ast.AST, depth: int = 3) -> list[Iteration]:
    """The innermost loops that repeat a node, in its function or where that is called from in this file."""
    loops = flow.loops(node)
    if loops:
        return [Iteration(loops[0], node)]
    function = flow.named_function(node)
    if function is None or depth == 0:
        return []
    return [one for call in scene.callers(function)[:6] for one in iterations(scene, call, depth - 1)]


def steps_of(scene: Scene, kind: str, steps: tuple[Step, ...]) -> Iterator[Step]:
    """The calls of ``.step()`` on an optimizer, a scheduler or a scaler among steps."""
    for step in steps:
        if flow.method(step.call) == "step" and acts_as(scene, flow.receiver(step.call), kind):
            yield step


def acts_as(scene: Scene, node: ast.AST | None, kind: str) -> bool:
    """Is it of that kind: by what it is made of, or, where that is out of sight, by what is done with it?"""
    if node is None:
        return False
    kinds = scene.kinds(node)
    if kinds:
        return kind in kinds
    text = dotted_text(node)
    if not text or kind not in _DEEDS:
        return False
    done = scene.texts_on(node, text)
    return bool(done & _DEEDS[kind]) and _WORDS[kind] in text.lower()


def runs_model(scene: Scene, func: ast.expr) -> bool:
    """Is a model called: one by what it is or what is done with it, or a name that nothing here binds?"""
    unbound = isinstance(func, ast.Name) and not scene.lookup(func) and not hasattr(builtins, func.id)
    return (unbound and not scene.index.stars) or acts_as(scene, func, "module")


# what is done to a thing of that kind alone, and the word that its name has then
_DEEDS = {
    "optimizer": frozenset(("zero_grad", "step")),
    "scheduler": frozenset(("step", "get_last_lr", "get_lr")),
    "scaler": frozenset(("scale", "unscale_", "update")),
    "module": frozenset(
        ("train", "eval", "parameters", "named_parameters", "state_dict", "load_state_dict", "zero_grad",
         "modules", "requires_grad_")
    ),
}  # fmt: skip
_WORDS = {"optimizer": "opt", "scheduler": "sched", "scaler": "scaler", "module": ""}


def accumulates(scene: Scene, item: Backward) -> Iterator[tuple[Loop, ast.If]]:
    """The loop of a backward pass, and the test in it that lets the optimizer step now and then."""
    for one in iterations(scene, item.call):
        for test in ast.walk(one.loop):
            if not isinstance(test, ast.If) or flow.inside(one.anchor, test) or not _counts(scene, test.test):
                continue
            if flow.named_function(test) is not flow.named_function(one.anchor):
                continue
            now_and_then = _now_and_then(one.loop, test)
            made = [flow.method(call) for stmt in now_and_then for call in flow.calls_under(stmt)]
            elsewhere = [
                call
                for call in flow.calls_under(one.loop)
                if flow.method(call) == "zero_grad"
                and not any(flow.inside(call, stmt) for stmt in (test, *now_and_then))
            ]
            if "step" in made and "zero_grad" in made and not elsewhere:
                yield one.loop, test


def _now_and_then(loop: Loop, test: ast.If) -> list[ast.stmt]:
    """What runs when the count is full: the body, or behind ``if n % k: continue`` the rest of the loop."""
    skips = len(test.body) == 1 and isinstance(test.body[0], ast.Continue) and test in loop.body
    if not skips:
        return test.body
    remains = isinstance(test.test, ast.BinOp) or (
        isinstance(test.test, ast.Compare) and isinstance(test.test.ops[0], ast.NotEq)
    )
    return loop.body[loop.body.index(test) + 1 :] if remains else []


def _counts(scene: Scene, test: ast.expr) -> bool:
    """Does a test look at the remainder of a count?"""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return True
    if isinstance(test, ast.Name):
        return any(
            isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp) and _counts(scene, value)
            for value in scene.values(test)
        )
    return False
