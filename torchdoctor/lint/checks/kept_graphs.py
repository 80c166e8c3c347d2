"""Graphs that live longer than their iteration."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding, inserting
from torchdoctor.lint.index import Binding, dotted_text
from torchdoctor.lint.training import Backward, backward, backwards, iterations, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene


class LossAccumulatedWithGraph(Check):
    id = "loss-accumulated-with-graph"
    title = "A running total keeps the graph of every iteration"
    why = """The loss is a tensor with its graph behind it. Added to a total or put into a list it is kept
    until the loop ends, and with it what each iteration saved: GPU memory grows from step to step, until it
    is full."""
    fix = (
        "Add loss.item(), or loss.detach() to stay on the GPU without a synchronisation.",
        "In a list, keep numbers: losses.append(loss.item()).",
    )
    cause = "cuda-oom-leak"
    words = ("backward",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for item in backwards(scene):
            if not isinstance(item.loss, ast.Name) and not dotted_text(item.loss).startswith("self."):
                continue
            loops = {one.loop: None for one in iterations(scene, item.call)}
            for loop in loops or (None,):
                here = (
                    loop
                    if loop is not None and flow.inside(item.call, loop)
                    else flow.named_function(item.call)
                )
                for node in _adding(here) if here is not None else ():
                    kept = _kept(node, dotted_text(item.loss))
                    if kept is None or node in told or not self._grows(scene, node, item, loop):
                        continue
                    told.add(node)
                    cut = ".detach()" if _used_as_tensor(scene, node) else ".item()"
                    edits = (inserting(kept.end_lineno or 0, kept.end_col_offset or 0, cut),)
                    yield self.at(node, f"{ast.unparse(kept)} brings its graph along", scene, edits)

    def _grows(self, scene: Scene, node: ast.AST, item: Backward, loop: Loop | None) -> bool:
        """Is what is kept live, and the total older than the iteration and not differentiated itself?"""
        kept = _kept(node, dotted_text(item.loss))
        assert kept is not None
        if flow.exclusive(node, item.call):
            return False
        if isinstance(kept, ast.Name | ast.Attribute) and not _same_loss(scene, kept, item.loss):
            return False
        if isinstance(kept, ast.Name) and _rebound(scene, kept, item.call):
            return False
        total = _total(node)
        text = _written(total)
        if not text or text == dotted_text(item.loss) or gradients_off(scene, node) is not None:
            return False
        root = flow.named_function(node) or scene.tree
        for other in backwards(scene):
            if text.removeprefix("self.") in flow.names_in(other.loss) or dotted_text(other.loss) == text:
                return False
        if text.startswith("self."):
            again = loop if loop is not None and flow.inside(node, loop) else root
            return isinstance(total, ast.Attribute) and not _reset(again, text, node)
        return (
            loop is not None
            and flow.inside(node, loop)
            and not any(
                flow.inside(one.node, loop) and one.how == "assign" and one.node is not node
                for one in (scene.lookup(total) if isinstance(total, ast.Name) else ())
            )
        )


def _adding(root: ast.AST) -> list[ast.AST]:
    """What may add to a total in ``root``."""
    known = getattr(root, "_adding", None)
    if known is None:
        known = [
            one
            for one in flow.walk(root)
            if isinstance(one, ast.AugAssign | ast.Assign)
            or (isinstance(one, ast.Call) and flow.method(one) == "append")
        ]
        root._adding = known  # type: ignore[attr-defined]
    return known


def _same_loss(scene: Scene, kept: ast.Name | ast.Attribute, loss: ast.expr) -> bool:
    """Is it still what was differentiated, and not a number of the same name?"""
    if not isinstance(loss, ast.Name | ast.Attribute):
        return False
    first = {id(one) for one in scene.reaching(kept) if one.how != "aug"}
    second = {id(one) for one in scene.reaching(loss) if one.how != "aug"}
    return bool(first & second) and not _numbers(scene, kept)


def _rebound(scene: Scene, kept: ast.Name, passed: ast.Call) -> bool:
    """Is the name given another value behind the backward pass, on every way from there?"""
    return any(
        flow.start(passed) < (one.line, one.column) < flow.start(kept)
        and one.how == "assign"
        and not flow.guards(one.node) - flow.guards(passed)
        for one in scene.lookup(kept)
    )


def _numbers(scene: Scene, node: ast.Name | ast.Attribute) -> bool:
    return all(
        isinstance(one.value, ast.Call) and flow.method(one.value) in ("item", "detach", "float", "tolist")
        for one in scene.reaching(node)
    )


def _kept(node: ast.AST, loss: str) -> ast.expr | None:
    """The loss in ``total += loss``, ``total = total + loss`` or ``losses.append(loss)``; None elsewhere."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return _live(node.value, loss)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target = dotted_text(node.targets[0])
        value = node.value
        if isinstance(value.op, ast.Add) and target:
            if dotted_text(value.left) == target:
                return _live(value.right, loss)
            if dotted_text(value.right) == target:
                return _live(value.left, loss)
    if isinstance(node, ast.Call) and flow.method(node) == "append" and len(node.args) == 1:
        return _live(node.args[0], loss)
    return None


def _live(value: ast.expr, loss: str) -> ast.expr | None:
    """The loss itself in an expression that keeps its graph."""
    if dotted_text(value) == loss:
        return value
    if isinstance(value, ast.List) and len(value.elts) == 1:
        return _live(value.elts[0], loss)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        left, right = _live(value.left, loss), _live(value.right, loss)
        return left or right
    return None


def _total(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign):
        return node.targets[0]
    return flow.receiver(node) if isinstance(node, ast.Call) else None


def _written(total: ast.expr | None) -> str:
    """The total as it is written: a name, an attribute, or what stands under a constant key of one."""
    if (
        isinstance(total, ast.Subscript)
        and isinstance(total.slice, ast.Constant)
        and dotted_text(total.value)
    ):
        return ast.unparse(total)
    return dotted_text(total) if total is not None else ""


def _used_as_tensor(scene: Scene, node: ast.AST) -> bool:
    """Is anything done with the total that a plain number, or a list of them, would not take?"""
    total = _total(node)
    if isinstance(total, ast.Subscript):
        return True  # who else uses it cannot be told
    text = _written(total)
    known = getattr(scene.tree, "_tensors", None)
    if known is None:
        known = {
            dotted_text(one.value)
            for name, found in scene.index.attributes.items()
            if name not in _OF_LISTS
            for one in found
        }
        known |= {
            dotted_text(part)
            for call in scene.index.calls
            if scene.called(call).startswith("torch.")
            for part in call.args
        }
        scene.tree._tensors = known  # type: ignore[attr-defined]
    return text in known


_OF_LISTS = frozenset(("append", "extend", "clear", "insert", "pop", "sort"))


def _reset(root: ast.AST, text: str, but: ast.AST) -> bool:
    """Is the total begun anew in the loop, or in the function that the loop calls?"""
    return any(
        isinstance(node, ast.Assign)
        and node is not but
        and any(dotted_text(one) == text for one in node.targets)
        for node in flow.walk(root)
    )


class BackwardRetainAlways(Check):
    id = "backward-retain-always"
    title = "The training loop keeps the graph of every iteration"
    why = """retain_graph=True keeps all that the backward pass needs until the loss itself goes away. Where
    it hides "Trying to backward through the graph a second time", the graph grows over all iterations so
    far: each step is slower than the last, and memory fills up."""
    fix = (
        "Drop retain_graph=True.",
        "If torch then complains, detach what goes from one iteration to the next: hidden = hidden.detach().",
    )
    cause = "cuda-oom-leak"
    words = ("backward",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for item in backwards(scene):
            if (
                item.managed
                or not _retains(scene, item.call)
                or flow.keyword(item.call, "create_graph") is not None
            ):
                continue
            if any(isinstance(test, ast.If) for test, _ in flow.guards(item.call)):
                continue
            for one in iterations(scene, item.call):
                if self._needless(scene, item, one.loop):
                    yield self.at(item.call, "no other pass of the iteration needs it", scene)
                    break

    def _needless(self, scene: Scene, item: Backward, loop: Loop) -> bool:
        steps = scene.steps(loop)
        if not any(True for _ in steps_of(scene, "optimizer", steps)) and not any(
            flow.method(one.call) == "step" for one in steps
        ):
            return False
        passes = [one.call for one in steps if backward(scene, one.call) is not None]
        if not passes or passes[-1] is not item.call or passes.count(item.call) > 1:
            return False
        place = max(at for at, one in enumerate(steps) if one.call is item.call)
        later = [one.call for one in steps[place + 1 :]]
        if any(scene.called(call) == "torch.autograd.grad" or flow.method(call) == "grad" for call in later):
            return False
        return _made_in(scene, item.loss, loop, item.call)


def _made_in(scene: Scene, loss: ast.expr, loop: Loop, call: ast.Call) -> bool:
    """Is the graph made in the loop, so that no other iteration needs it?"""
    if not flow.inside(call, loop):
        return True
    for node in ast.walk(loss):
        if isinstance(node, ast.Name):
            binds = [one for one in scene.reaching(node) if one.how in ("assign", "aug", "with")]
            if any(flow.inside(one.node, loop) for one in binds):
                return all(
                    _calls_model(one) for one in binds if flow.inside(one.node, loop) and one.how == "assign"
                )
    return any(isinstance(node, ast.Call) for node in ast.walk(loss))


def _calls_model(one: Binding) -> bool:
    return one.value is not None and any(
        isinstance(node, ast.Call | ast.BinOp) for node in ast.walk(one.value)
    )


def _retains(scene: Scene, call: ast.Call) -> bool:
    at = 2 if scene.called(call) == "torch.autograd.backward" else 1
    given = flow.argument(call, at, "retain_graph") or flow.keyword(call, "retain_variables")
    return flow.is_true(given)
