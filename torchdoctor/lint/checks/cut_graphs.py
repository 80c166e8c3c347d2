"""Backward passes that have nothing to differentiate."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.graph import cut, leaf
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.training import Backward, backwards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene


class NoGradAroundTraining(Check):
    id = "no-grad-around-training"
    title = "A backward pass runs where gradients are switched off"
    why = """Under no_grad() or inference_mode() the forward pass records no graph, so there is nothing to
    differentiate: element 0 of tensors does not require grad and does not have a grad_fn."""
    fix = ("Take the training step out of the context; keep no_grad() for evaluation and for targets.",)
    cause = "no-grad-fn"
    words = ("no_grad", "inference_mode", "set_grad_enabled")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for item in backwards(scene):
            off = gradients_off(scene, item.call)
            if off is not None and not self._made_before(scene, item, off) and not _on_inside(scene, item):
                says = f"line {getattr(off, 'lineno', 1)} switches gradients off"
                yield self.at(item.call, says, scene)

    def _made_before(self, scene: Scene, item: Backward, off: ast.AST) -> bool:
        """Was the loss made where gradients were on, or is that out of sight?"""
        if isinstance(item.loss, ast.Name):
            binds = scene.reaching(item.loss)
            if any(one.how == "param" for one in binds):
                origins = scene.values(item.loss)
                return not all(
                    isinstance(one, ast.expr) and gradients_off(scene, one) is not None for one in origins
                )
            return any(gradients_off(scene, one.node) is None for one in binds)
        return isinstance(item.loss, ast.Attribute)


def _on_inside(scene: Scene, item: Backward) -> bool:
    """Does the function that makes the loss switch gradients on itself?"""
    for value in scene.values(item.loss):
        if isinstance(value, ast.Call):
            target = scene.target(value)
            roots = [target] if target is not None else []
            for root in roots:
                for call in flow.calls_under(root):
                    if scene.called(call) in ("torch.enable_grad", "torch.set_grad_enabled"):
                        return True
    return False


class GraphCut(Check):
    id = "graph-cut"
    title = "The loss has no graph behind it any more"
    why = """item(), float(), numpy(), torch.tensor() and detach() give a value without its history.
    backward() on what is computed from it raises (element 0 of tensors does not require grad), or, with
    requires_grad=True put on the new tensor, does nothing: no parameter gets a gradient."""
    fix = (
        "Differentiate the tensor itself, and take item() of it only to print.",
        "Combine tensors with torch operations: torch.stack(losses).mean(), not torch.tensor(losses).",
    )
    cause = "no-grad-fn"
    words = ("backward",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for item in backwards(scene):
            if item.managed:
                continue
            made = self._hollow(scene, item.loss)
            if made is None and cut(scene, item.loss) is True and not self._bare_leaf(scene, item.loss):
                made = item.loss
            if made is not None:
                says = "every way from the loss to a parameter is cut"
                if made.lineno != item.call.lineno:
                    says += f", the last on line {made.lineno}"
                yield self.at(item.call, says, scene)

    def _bare_leaf(self, scene: Scene, loss: ast.expr) -> bool:
        """Is it a tensor of plain numbers, made to be played with?"""
        text = ast.unparse(loss)
        return any(
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"{text}.requires_grad"
            for node in scene.index.assigns
        ) and not any(isinstance(one, ast.Call | ast.BinOp | ast.Attribute) for one in scene.values(loss))

    def _hollow(self, scene: Scene, loss: ast.expr) -> ast.expr | None:
        """A new tensor of a computed number that is made to require a gradient, and differentiated itself."""
        origins = scene.values(loss)
        if isinstance(loss, ast.Name) and any(one.how != "assign" for one in scene.lookup(loss)):
            return None
        found: ast.expr | None = None
        for origin in origins:
            one = _reduced(origin)
            if not isinstance(one, ast.Call) or not leaf(scene, one) or not one.args:
                return None
            if scene.called(one) not in (
                "torch.tensor",
                "torch.autograd.Variable",
                "torch.as_tensor",
                "torch.Tensor",
            ):
                return None
            if not self._computed(scene, one.args[0]):
                return None
            found = one
        return found

    def _computed(self, scene: Scene, node: ast.expr) -> bool:
        """Does the number come out of a computation that had, or may have had, a graph?"""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and flow.method(one) in (
                "item",
                "detach",
                "mean",
                "sum",
                "float",
                "tolist",
            ):
                return True
            if isinstance(one, ast.Attribute) and one.attr == "data":
                return True
            if isinstance(one, ast.Name) and self._numbers(scene, one):
                return True
            if isinstance(one, ast.Name) and any(
                isinstance(value, ast.Call) and flow.method(value) in ("item", "detach", "numpy")
                for value in scene.values(one)
            ):
                return True
        return False

    def _numbers(self, scene: Scene, node: ast.Name) -> bool:
        """Is it a list to which numbers are added that a computation gave?"""
        root = flow.named_function(node) or scene.tree
        return any(
            flow.method(call) == "append"
            and call.args
            and isinstance(call.args[0], ast.Call)
            and flow.method(call.args[0]) in ("item", "float", "detach")
            and dotted_text(call.func) == f"{node.id}.append"
            for call in flow.calls_under(root)
        )


def _reduced(origin: object) -> object:
    """What a mean or sum was taken of."""
    while isinstance(origin, ast.Call) and flow.method(origin) in ("mean", "sum") and not origin.args:
        base = flow.receiver(origin)
        if base is None:
            break
        origin = base
    return origin
