"""Gradients that are accumulated over several batches."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.training import accumulates, backwards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene


class AccumulationNotDivided(Check):
    id = "accumulation-not-divided"
    title = "Accumulated gradients are a sum of means"
    why = """The loss is the mean over one small batch. n of them added up give n times the gradient of the
    large batch that is meant, as if the learning rate were n times as high. (Adam hides it, weight decay
    and clipping do not.)"""
    fix = ("Divide each loss by the number of batches that are accumulated: (loss / steps).backward().",)
    words = ("backward",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for item in backwards(scene):
            if item.managed or not _means(scene, item.loss) or _divided_gradients(scene):
                continue
            for _, test in accumulates(scene, item):
                says = (
                    f"the optimizer steps on line {test.lineno} once in several, and nothing divides the loss"
                )
                yield self.at(item.call, says, scene)
                break


def _means(scene: Scene, node: ast.expr, depth: int = 4) -> bool:
    """Is it surely a mean over the batch, with nothing done to it that may divide it?"""
    if depth == 0:
        return False
    if isinstance(node, ast.Name | ast.Attribute):
        binds = scene.reaching(node)
        return bool(binds) and all(
            one.how == "assign"
            and not one.path
            and one.value is not None
            and _means(scene, one.value, depth - 1)
            for one in binds
        )
    if not isinstance(node, ast.Call):
        return False
    name = scene.called(node)
    if name.startswith("torch.nn.functional.") and (name.endswith("loss") or "entropy" in name):
        return _reduces(flow.keyword(node, "reduction"))
    if flow.method(node) == "mean":
        return True
    made = scene.values(node.func)
    return bool(made) and all(
        isinstance(one, ast.Call)
        and "loss" in scene.kinds(one)
        and not flow.spread(one)
        and _reduces(flow.keyword(one, "reduction"))
        and flow.keyword(one, "size_average") is None
        for one in made
    )


def _reduces(given: ast.expr | None) -> bool:
    return given is None or (isinstance(given, ast.Constant) and given.value == "mean")


def _divided_gradients(scene: Scene) -> bool:
    """Does the file divide gradients themselves?"""
    return any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Div | ast.Mult)
        and "grad" in flow.names_in(node.target)
        for node in scene.index.assigns
    ) or any("grad" in flow.names_in(call.func) for call in scene.methods("div_", "mul_"))


class AccumulationNoSync(Check):
    id = "accumulation-no-sync"
    title = "DDP averages gradients in every step of an accumulation"
    why = """Each backward() of a DistributedDataParallel model sends all gradients to all ranks. While they
    are only accumulated that is work for nothing: n times the traffic of one step, often most of its time."""
    fix = (
        "Run all passes but the last of an accumulation, forward and backward, in `with model.no_sync():`.",
    )
    words = ("DistributedDataParallel",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.index.methods.get("no_sync") or scene.index.attributes.get("no_sync"):
            return
        if "require_backward_grad_sync" in scene.text:
            return
        for item in backwards(scene):
            if item.managed:
                continue
            for loop, test in accumulates(scene, item):
                model = self._wrapped(scene, loop)
                if model is not None:
                    says = (
                        f"the optimizer steps on line {test.lineno} now and then, and each pass communicates"
                    )
                    yield self.at(item.call, says, scene)
                    break

    def _wrapped(self, scene: Scene, loop: Loop) -> ast.Call | None:
        return next(
            (
                step.call
                for step in scene.steps(loop)
                if isinstance(step.call.func, ast.Name | ast.Attribute) and scene.is_a(step.call.func, "ddp")
            ),
            None,
        )
