"""Steps of optimizers and schedulers: what comes before them, and what is left out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Edit, Finding, inserting
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.training import backwards, iterations, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene, Step


class ZeroGradMissing(Check):
    id = "zero-grad-missing"
    title = "Gradients are never set to zero in the training loop"
    why = """backward() adds to .grad. Without zero_grad() each step moves along the sum of all gradients so
    far: the loss falls at first, then swings or diverges. Nothing fails."""
    fix = (
        "Call optimizer.zero_grad() in each iteration, before backward() or after step().",
        "Each optimizer clears the gradients of its own parameters only.",
    )
    words = ("backward",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for item in backwards(scene):
            if item.managed:
                continue
            for one in iterations(scene, item.call):
                steps = scene.steps(one.loop)
                for step in steps_of(scene, "optimizer", steps):
                    if step.call in told or self._cleared(scene, one.loop, steps, step):
                        continue
                    if self._evaluates(step) or _unseen(scene, one.loop, step):
                        continue
                    told.add(step.call)
                    says = f"the loop of line {one.loop.lineno} adds up the gradients of all its iterations"
                    yield self.at(step.call, says, scene, _zero(scene, step.call))

    def _cleared(self, scene: Scene, loop: Loop, steps: tuple[Step, ...], step: Step) -> bool:
        """Is anything cleared in the loop that may be the optimizer's gradients?"""
        mine = flow.receiver(step.call)
        assert mine is not None
        if any(isinstance(made, ast.AST) and flow.inside(made, loop) for made in scene.values(mine)):
            return True  # made anew each time
        for one in steps:
            method = flow.method(one.call)
            if method in ("zero_grad", "clear_grad", "zero_gradients", "clear_gradients"):
                base = flow.receiver(one.call)
                if base is None or not _other_optimizer(scene, base, mine):
                    return True
            elif (method in ("zero_", "fill_") and "grad" in flow.names_in(one.call.func)) or (
                method == "grad" and scene.called(one.call) == "torch.autograd.grad"
            ):
                return True
        roots: list[ast.AST] = [loop]
        roots += {found for one in steps if (found := scene.target(one.call)) is not None}
        return any(
            isinstance(target, ast.Attribute) and target.attr == "grad"
            for root in roots
            for node in flow.walk(root)
            if isinstance(node, ast.Assign)
            for target in node.targets
        )

    def _evaluates(self, step: Step) -> bool:
        """Is it given something that is no closure of this file, so that it may run the passes itself?"""
        return bool(step.call.args) and not isinstance(step.call.args[0], ast.Name)


def _other_optimizer(scene: Scene, a: ast.expr, b: ast.expr) -> bool:
    """Are two things surely different optimizers?"""
    if dotted_text(a) and dotted_text(a) == dotted_text(b):
        return False
    if not (scene.is_a(a, "optimizer") and scene.is_a(b, "optimizer")):
        return False
    first, second = set(scene.values(a)), set(scene.values(b))
    return not first & second


def _unseen(scene: Scene, loop: Loop, step: Step) -> bool:
    """Does the optimizer go to a function of another file, which may clear the gradients?"""
    mine = flow.receiver(step.call)
    text = dotted_text(mine) if mine is not None else ""
    name = text.rpartition(".")[2]
    wraps = ("hook", "closure", "engine")
    for call in flow.calls_under(loop):
        given = [*call.args, *(one.value for one in call.keywords)]
        if (
            scene.target(call) is None
            and flow.method(call) not in ("step", "unscale_", "update", "print")
            and any(dotted_text(one) == text for one in given if text)
        ):
            return True
    made = scene.values(mine)
    if any(
        isinstance(one, ast.Call) and scene.called(one).startswith(("horovod", "deepspeed")) for one in made
    ):
        return True
    return not name or any(word in name.lower() for word in wraps)


def _zero(scene: Scene, step: ast.Call) -> tuple[Edit, ...]:
    """``optimizer.zero_grad()`` on a line behind the step."""
    base = flow.receiver(step)
    statement = flow.statement(step)
    text = dotted_text(base) if base is not None else ""
    alone = isinstance(statement, ast.Expr) and statement.value is step and not step.args
    if not text or not alone or statement.end_lineno != statement.lineno or not _own_lines(statement):
        return ()
    indent = scene.indent(statement.lineno)
    return (inserting(statement.lineno, statement.end_col_offset or 0, f"\n{indent}{text}.zero_grad()"),)


def _own_lines(statement: ast.stmt) -> bool:
    """Does no other statement share its line?"""
    parent = flow.up(statement)
    others = [one for name in ("body", "orelse", "finalbody") for one in getattr(parent, name, None) or ()]
    if getattr(parent, "lineno", 0) == statement.lineno:
        return False
    return sum(1 for one in others if isinstance(one, ast.stmt) and one.lineno == statement.lineno) == 1


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


class SchedulerBeforeOptimizer(Check):
    id = "scheduler-before-optimizer"
    title = "The scheduler steps before the optimizer"
    why = """Since torch 1.1 the optimizer steps first. In the other order the first learning rate of the
    schedule is skipped, and torch warns: Detected call of `lr_scheduler.step()` before `optimizer.step()`."""
    fix = ("Call scheduler.step() after optimizer.step(): at the end of the batch, or of the epoch.",)
    cause = "scheduler-order"
    words = ("lr_scheduler", "scheduler")

    def run(self, scene: Scene) -> Iterator[Finding]:
        if any(
            "last_epoch" in flow.names_in(target) for node in scene.index.assigns for target in _targets(node)
        ):
            return  # the schedule is moved by hand
        for call in scene.methods("step"):
            base = flow.receiver(call)
            if base is None or call.args or call.keywords or "scheduler" not in scene.kinds(base):
                continue
            root: ast.AST | None = next(iter(flow.loops(call)), None) or flow.named_function(call)
            if root is not None:
                yield from self._late(scene, call, base, root)

    def _late(self, scene: Scene, call: ast.Call, base: ast.expr, root: ast.AST) -> Iterator[Finding]:
        steps = scene.steps(root)
        place = next((at for at, step in enumerate(steps) if step.call is call), None)
        if place is None:
            return
        mine = flow.guards(call)
        tests = [one for one in steps if flow.method(one.call) in ("step", "backward")]
        before, after = steps[:place], steps[place + 1 :]
        if any(True for _ in self._of(scene, base, before)):
            return
        if not any(one.call is not call for one in tests):
            return
        for step in self._of(scene, base, after):
            guards = scene.guards(step)
            own = {test for test, _ in mine}
            if own - {test for test, _ in guards} or flow.exclusive(call, step.top):
                continue
            yield self.at(call, f"the optimizer steps after it, on line {step.call.lineno}", scene)
            return

    def _of(self, scene: Scene, scheduler: ast.expr, steps: tuple[Step, ...]) -> Iterator[Step]:
        """The steps of the optimizer that belongs to the scheduler."""
        owners = [
            origin
            for made in scene.values(scheduler)
            if isinstance(made, ast.Call) and made.args
            for origin in scene.values(made.args[0])
        ]
        for step in steps_of(scene, "optimizer", steps):
            origins = scene.values(flow.receiver(step.call))
            if any(one in owners for one in origins) or not owners:
                yield step
        for step in steps_of(scene, "scaler", steps):
            if step.call.args and any(one in owners for one in scene.values(step.call.args[0])):
                yield step
