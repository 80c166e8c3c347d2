"""Loops that evaluate a model: their mode, and whether they record a graph."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.kinds import goes_over_batches, is_loader
from torchdoctor.lint.modes import minds_mode, sets_mode
from torchdoctor.lint.names import words
from torchdoctor.lint.training import backward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.index import FunctionNode
    from torchdoctor.lint.scene import Scene, Step

_DIFFERENTIATES = words(
    "backward grad requires_grad_ jacobian hessian vjp jvp retain_grad enable_grad "
    "set_grad_enabled no_grad inference_mode attack perturb register_hook"
)


def _loops(scene: Scene) -> Iterator[ast.AST]:
    """The loops over batches, those of generators among them."""
    for loop in scene.index.loops:
        if not isinstance(loop, ast.While) and goes_over_batches(scene, loop.iter):
            yield loop
    for made in scene.index.generators:
        if is_loader(scene, made.generators[0].iter):
            yield made


class EvalWithoutNoGrad(Check):
    id = "eval-without-no-grad"
    title = "An evaluation loop records the graph of every forward pass"
    why = """eval() changes how dropout and batch norm behave; it does not switch gradients off. Each forward
    pass keeps its activations for a backward pass that never comes: evaluation takes several times the
    memory that it needs, and is often what runs out of it."""
    fix = (
        "Put the loop into `with torch.no_grad():` (or torch.inference_mode()), or decorate the function so.",
    )
    cause = "cuda-oom-eval-grad"
    words = ("eval", "train(False)")

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for loop in _loops(scene):
            for call in flow.calls_under(loop):
                text = dotted_text(call.func)
                if loop in told or not text or not (call.args or call.keywords) or scene.called(call):
                    continue
                mode = self._evaluates(scene, loop, call, text)
                if mode is not None and (not isinstance(loop, ast.stmt) or flow.loops(call)[:1] == [loop]):
                    told.add(loop)
                    says = f"{text} is in evaluation mode from line {mode.lineno} on"
                    yield self.at(loop, says, scene)

    def _evaluates(self, scene: Scene, loop: ast.AST, call: ast.Call, text: str) -> ast.Call | None:
        """What put the model into evaluation mode before the loop, here or in every caller in this file."""
        if (
            scene.target(call) is not None
            or self._needs_graph(scene, loop)
            or gradients_off(scene, call) is not None
        ):
            return None
        mode = self._mode(scene, loop, text)
        if mode is not None:
            return None if self._trains_later(scene, loop) else mode
        function = flow.named_function(loop)
        name = text.partition(".")[0]
        if function is None or "." in text or sets_mode(scene, function, text):
            return None
        if not any(one.how == "param" for one in scene.lookup(call.func)):  # type: ignore[arg-type]
            return None
        return self._in_callers(scene, function, name)

    def _in_callers(self, scene: Scene, function: FunctionNode, name: str) -> ast.Call | None:
        found: list[ast.Call | None] = []
        for call in scene.callers(function):
            given = scene.values_of.given(call, function, name)
            text = dotted_text(given) if given is not None else ""
            found.append(self._mode(scene, call, text) if text else None)
        return found[0] if found and all(one is not None for one in found) else None

    def _mode(self, scene: Scene, place: ast.AST, text: str) -> ast.Call | None:
        """The last call that sets the mode of ``text`` before a place in its function, where it is eval()."""
        root = flow.named_function(place) or scene.tree
        found: ast.Call | None = None
        training = False
        for call in flow.calls_under(root):
            said = sets_mode(scene, call, text)
            if said is None or flow.start(call) > flow.start(place) or flow.exclusive(call, place):
                continue
            if flow.guards(call) - flow.guards(place):
                continue
            found, training = call, said
        return found if not training else None

    def _needs_graph(self, scene: Scene, loop: ast.AST) -> bool:
        return any(
            flow.method(step.call) in _DIFFERENTIATES or flow.method(step.call) == "step"
            for step in scene.steps(loop)
        )

    def _trains_later(self, scene: Scene, loop: ast.AST) -> bool:
        """Is something differentiated behind the loop, with what it collected?"""
        root = flow.named_function(loop) or scene.tree
        later = [
            step
            for step in scene.steps(root)
            if flow.start(step.top) > flow.end(loop) and backward(scene, step.call) is not None
        ]
        return any(not flow.loops(step.top) or flow.loops(step.top)[0] in flow.loops(loop) for step in later)


class EvalModeMissing(Check):
    id = "eval-mode-missing"
    title = "A model is evaluated in training mode, or trained in evaluation mode"
    why = """In training mode dropout drops and batch norm uses (and updates) the statistics of the batch at
    hand: accuracy is too low and changes with the batch size. After eval() without train() the rest of the
    training runs without dropout and with frozen statistics."""
    fix = (
        "Call model.eval() before the evaluation and model.train() after it, or at the start of each epoch.",
    )
    words = ("no_grad", "inference_mode", "eval")

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for loop in _loops(scene):
            for call in flow.calls_under(loop):
                text = dotted_text(call.func)
                if text and loop not in told and self._in_training_mode(scene, loop, call, text):
                    told.add(loop)
                    says = f"{text} is never put into evaluation mode"
                    yield self.at(call, says, scene)
        yield from self._never_back(scene)

    def _in_training_mode(self, scene: Scene, loop: ast.AST, call: ast.Call, text: str) -> bool:
        if not (call.args or call.keywords) or scene.called(call) or gradients_off(scene, call) is None:
            return False
        func = call.func
        if scene.target(call) is not None or not minds_mode(scene, func):
            return False
        mine = set(scene.values(func))
        for other in scene.methods("eval", "train"):
            base = flow.receiver(other)
            if base is None or sets_mode(scene, other, dotted_text(base)) is not False:
                continue
            if not scene.kinds(base) or set(scene.values(base)) & mine or not dotted_text(base):
                return False
        function = flow.named_function(loop)
        root = function or scene.tree
        if any(sets_mode(scene, one, text) for one in flow.calls_under(root)):
            return any(backward(scene, step.call) is not None for step in scene.steps(root))
        return not any(flow.method(one) in ("named_modules", "modules") for one in flow.calls_under(root))

    def _never_back(self, scene: Scene) -> Iterator[Finding]:
        """eval() in the epoch loop, train() only before it."""
        for call in scene.methods("eval"):
            base = flow.receiver(call)
            text = dotted_text(base) if base is not None else ""
            loops = flow.loops(call)
            if not text or not loops or sets_mode(scene, call, text) is not False:
                continue
            steps = scene.steps(loops[-1])
            if not any(backward(scene, step.call) is not None for step in steps):
                continue
            if not any(dotted_text(step.call.func) == text for step in steps) or _restores(steps):
                continue
            root = flow.named_function(call) or scene.tree
            before = [one for one in flow.calls_under(root) if sets_mode(scene, one, text)]
            trained = any(
                backward(scene, step.call) is not None and not flow.exclusive(step.top, call)
                for step in steps
            )
            if before and trained and not _in_training_call(scene, loops[-1], text):
                yield self.at(call, f"{text}.train() is called before the loop only", scene)


def _restores(steps: tuple[Step, ...]) -> bool:
    """Is any mode set to training among the steps, whatever it is of?"""
    return any(
        flow.method(step.call) == "train" and not any(flow.is_false(one) for one in step.call.args)
        for step in steps
    )


def _in_training_call(scene: Scene, loop: ast.AST, text: str) -> bool:
    """Is the model handed to a function of another file, which may set its mode?"""
    return any(
        scene.target(call) is None
        and any(dotted_text(one) == text for one in call.args)
        and not scene.called(call).startswith(("torch.nn.utils", "torch.save"))
        for call in flow.calls_under(loop)
    )
