"""The calls of a GradScaler, in their order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.training import acts_as, backward, iterations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdoctor.lint.scene import Scene, Step

_CLIPS = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm",
    "torch.nn.utils.clip_grad_value_",
)


class ScalerOrder(Check):
    id = "scaler-order"
    title = "A GradScaler's calls are out of order"
    why = """Gradients are scaled from scale(loss).backward() on until unscale_() or step(). A step past the
    scaler moves by scaled gradients, clipping before unscale_() clips nearly everything away, a loss that
    was not scaled is divided all the same, and without update() the scale never adapts."""
    fix = (
        "scaler.scale(loss).backward(); scaler.unscale_(optimizer); clip_grad_norm_(...); "
        "scaler.step(optimizer); scaler.update()",
    )
    cause = "amp-scaler-order"
    words = ("GradScaler",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for call in scene.methods("step", "scale"):
            base = flow.receiver(call)
            if base is None or not scene.is_a(base, "scaler"):
                continue
            for root in self._roots(scene, call):
                for found, says in self._wrong(scene, call, base, scene.steps(root)):
                    if found not in told:
                        told.add(found)
                        yield self.at(found, says, scene)

    def _roots(self, scene: Scene, call: ast.Call) -> list[ast.AST]:
        loops: list[ast.AST] = [one.loop for one in iterations(scene, call)]
        return loops or [flow.named_function(call) or scene.tree]

    def _wrong(
        self, scene: Scene, call: ast.Call, base: ast.expr, steps: Sequence[Step]
    ) -> Iterator[tuple[ast.Call, str]]:
        at = max((at for at, step in enumerate(steps) if step.call is call), default=None)
        if at is None:
            return
        text = dotted_text(base)
        mine = [
            (place, step)
            for place, step in enumerate(steps)
            if (found := flow.receiver(step.call)) is not None
            and (dotted_text(found) == text or acts_as(scene, found, "scaler"))
        ]
        passes = [place for place, step in enumerate(steps) if _scaled(scene, step)]
        if flow.method(call) == "scale":
            yield from _past(scene, call, steps, passes)
            return
        if not call.args:
            return
        yield from self._updates(scene, call, at, steps, mine, passes)
        yield from self._unscales(scene, call, at, steps, mine, passes)

    def _updates(
        self,
        scene: Scene,
        call: ast.Call,
        at: int,
        steps: Sequence[Step],
        mine: list[tuple[int, Step]],
        passes: list[int],
    ) -> Iterator[tuple[ast.Call, str]]:
        everywhere = [one for one in scene.methods("update") if acts_as(scene, flow.receiver(one), "scaler")]
        if not everywhere:
            yield call, "update() is never called: the scale stays what it was"
        updates = [(place, step) for place, step in mine if flow.method(step.call) == "update"]
        early = [one for one in updates if one[0] < at and any(place < one[0] for place in passes)]
        last = all(place <= at for place, step in mine if flow.method(step.call) == "step")
        if early and last and not any(place > at for place, _ in updates):
            first = early[-1][1]
            if not flow.exclusive(first.top, call) and not any(early[-1][0] < place < at for place in passes):
                yield first.call, "the scale is updated before the optimizer stepped"
        if not any(acts_as(scene, flow.receiver(one), "scaler") for one in scene.methods("scale")) and any(
            backward(scene, step.call) is not None for step in steps[:at]
        ):
            yield call, "the loss was never scaled: scale(loss).backward() is missing"

    def _unscales(
        self,
        scene: Scene,
        call: ast.Call,
        at: int,
        steps: Sequence[Step],
        mine: list[tuple[int, Step]],
        passes: list[int],
    ) -> Iterator[tuple[ast.Call, str]]:
        before = [place for place in passes if place < at]
        if not before:
            return
        unscaled = [place for place, step in mine if flow.method(step.call) == "unscale_" and place < at]
        for place, step in enumerate(steps[:at]):
            if place < before[-1] or scene.called(step.call) not in _CLIPS:
                continue
            if any(before[-1] < one < place for one in unscaled):
                continue
            last = steps[before[-1]]
            if flow.exclusive(step.top, call) or flow.exclusive(step.top, last.top):
                continue
            if not flow.exclusive(step.call, last.call):
                yield step.call, "the gradients are still scaled here: unscale_() is missing before it"
        for place in unscaled:
            if place < before[0] and not any(before[0] < one for one in unscaled):
                yield steps[place].call, "nothing is scaled yet: it stands before the backward pass"


def _scaled(scene: Scene, step: Step) -> bool:
    found = backward(scene, step.call)
    return found is not None and found.scaled


def _past(
    scene: Scene, call: ast.Call, steps: Sequence[Step], passes: list[int]
) -> Iterator[tuple[ast.Call, str]]:
    """Optimizers that step past the scaler, whenever the loss is scaled."""
    for place in passes:
        own = scene.guards(steps[place])
        for step in steps[place + 1 :]:
            base = flow.receiver(step.call)
            if flow.method(step.call) != "step" or base is None or not acts_as(scene, base, "optimizer"):
                continue
            if scene.guards(step) <= own and not _handed(scene, base, steps):
                yield (
                    step.call,
                    f"the loss is scaled on line {call.lineno}: scaler.step(optimizer) is what steps",
                )


def _handed(scene: Scene, optimizer: ast.expr, steps: Sequence[Step]) -> bool:
    """Is this optimizer given to a scaler's step as well, for the other case?"""
    text = dotted_text(optimizer)
    return any(
        flow.method(step.call) == "step"
        and any(dotted_text(one) == text for one in step.call.args)
        and not scene.guards(step) <= frozenset()
        for step in steps
    )
