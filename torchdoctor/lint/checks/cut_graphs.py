"""Backward passes that have nothing to differentiate."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding
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
