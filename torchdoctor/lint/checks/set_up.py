"""How model, optimizer and wrappers are put together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.training import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene


class OptimizerBeforeMove(Check):
    id = "optimizer-before-move"
    title = "The optimizer holds parameters or state of another model or device"
    why = """Adagrad makes its state when it is built, and load_state_dict() puts it where the parameters
    are then: a model that moves afterwards leaves it behind (Expected all tensors to be on the same
    device). When the model's name is given to another one, the optimizer goes on with the old, and the
    new is never trained."""
    fix = (
        "Build the model, move it, then build the optimizer, then load its state.",
        "After replacing the model, build the optimizer again from its parameters.",
    )
    words = ("optim",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.index.calls:
            if "torch-optimizer" not in scene.kinds(call) or not call.args:
                continue
            model = self._model(call.args[0])
            if model is None or not isinstance(flow.statement(call), ast.Assign):
                continue
            yield from self._moved(scene, call, model)
            yield from self._replaced(scene, call, model)

    def _model(self, given: ast.expr) -> ast.Name | ast.Attribute | None:
        """The model whose ``parameters()`` it is given."""
        if isinstance(given, ast.Call) and flow.method(given) == "parameters":
            base = flow.receiver(given)
            if isinstance(base, ast.Name | ast.Attribute) and dotted_text(base):
                return base
        return None

    def _moved(self, scene: Scene, call: ast.Call, model: ast.expr) -> Iterator[Finding]:
        eager = scene.called(call) == "torch.optim.Adagrad"
        root = flow.named_function(call) or scene.tree
        loaded = self._state_loaded(scene, call, root)
        if not eager and loaded is None:
            return
        since = call if eager or loaded is None else loaded
        for move in flow.calls_under(root):
            base = flow.receiver(move)
            if (
                flow.method(move) not in ("cuda", "to")
                or base is None
                or dotted_text(base) != dotted_text(model)
            ):
                continue
            if (
                flow.start(move) < flow.end(since)
                or flow.exclusive(move, call)
                or not self._to_device(scene, move)
            ):
                continue
            if any(
                flow.method(one) == "load_state_dict"
                and flow.start(one) > flow.start(move)
                and self._is_optimizer(scene, one, call)
                for one in flow.calls_under(root)
            ):
                return
            what = "the optimizer was built" if eager else "the optimizer's state was loaded"
            yield self.at(flow.statement(move), f"{what} before it, on line {since.lineno}", scene)
            return

    def _is_optimizer(self, scene: Scene, one: ast.Call, made: ast.Call) -> bool:
        return made in scene.values(flow.receiver(one))

    def _to_device(self, scene: Scene, move: ast.Call) -> bool:
        """Is it a move, and not another type?"""
        if flow.method(move) == "cuda":
            return True
        return bool(move.args) and not scene.name(move.args[0]).startswith("torch.")

    def _state_loaded(self, scene: Scene, call: ast.Call, root: ast.AST) -> ast.Call | None:
        return next(
            (
                one
                for one in flow.calls_under(root)
                if flow.method(one) == "load_state_dict"
                and self._is_optimizer(scene, one, call)
                and not flow.guards(one) - flow.guards(call)
            ),
            None,
        )

    def _replaced(self, scene: Scene, call: ast.Call, model: ast.Name | ast.Attribute) -> Iterator[Finding]:
        root = flow.named_function(call) or scene.tree
        text = dotted_text(model)
        optimizer = flow.statement(call)
        names = (
            {dotted_text(one) for one in optimizer.targets} if isinstance(optimizer, ast.Assign) else set()
        )
        anew = max(
            (
                one.lineno
                for one in flow.assigns(root)
                if any(dotted_text(target) in names for target in one.targets)
            ),
            default=0,
        )
        stepped = None
        for node in flow.assigns(root):
            if node.lineno <= optimizer.lineno or node.lineno < anew:
                continue
            if not any(dotted_text(one) == text for one in node.targets) or flow.exclusive(optimizer, node):
                continue
            if flow.guards(node) - flow.guards(optimizer) or not isinstance(node.value, ast.Call):
                continue
            if flow.loops(node) != flow.loops(optimizer):
                continue
            if text.rpartition(".")[2] in flow.names_in(node.value) or not self._fresh(scene, node.value):
                continue
            stepped = stepped or self._last_step(scene, root, call)
            if stepped > flow.start(node):
                yield self.at(node, f"the optimizer of line {call.lineno} holds the model before", scene)
                return

    def _fresh(self, scene: Scene, value: ast.Call) -> bool:
        """Does it make a model of its own?"""
        return (
            "module" in scene.kinds(value)
            and not scene.values_of.wrapper(value)
            and value in scene.values(value)
        )

    def _last_step(self, scene: Scene, root: ast.AST, made: ast.Call) -> tuple[int, int]:
        """Where the last step of an optimizer begins; (0, 0) without one."""
        steps = steps_of(scene, "optimizer", scene.steps(root))
        return max(
            (flow.start(step.top) for step in steps if made in scene.values(flow.receiver(step.call))),
            default=(0, 0),
        )


class DataparallelOptimizer(Check):
    id = "dataparallel-optimizer"
    title = "An optimizer or a loss is wrapped as if it were a model"
    why = """DataParallel and DistributedDataParallel split the forward pass of a model. An optimizer has
    none, and DistributedDataParallel refuses a module without parameters; a loss in DataParallel gives one
    value per GPU, which backward() then refuses. Wrapped optimizers lead to `.module.step()` and to state
    that is not found again."""
    fix = (
        "Wrap the model only; the optimizer is built from its parameters, the loss is called on its output.",
    )
    words = ("DataParallel",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"):
            given = flow.argument(call, 0, "module")
            for kind in ("optimizer", "loss", "scheduler"):
                if given is not None and scene.is_a(given, kind):
                    yield self.at(call, f"{ast.unparse(given)[:50]} is a {kind}", scene)
                    break
