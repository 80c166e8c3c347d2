"""Losses that are given what they do not expect."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.layers import last
from torchdoctor.lint.names import words
from torchdoctor.lint.shapes import column_or_flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_F = "torch.nn.functional."
_SOFTMAX = frozenset(
    ("softmax", "log_softmax", "torch.nn.Softmax", "torch.nn.LogSoftmax", "Softmax", "LogSoftmax")
)
_SIGMOID = frozenset(("sigmoid", "torch.nn.Sigmoid"))
# loss -> (what its input must not have gone through, what that is called, what it is to be)
_REFUSED = {
    "cross_entropy": (_SOFTMAX, "softmax", "it applies log_softmax itself and wants raw scores"),
    "CrossEntropyLoss": (_SOFTMAX, "softmax", "it applies log_softmax itself and wants raw scores"),
    "binary_cross_entropy_with_logits": (
        _SIGMOID,
        "sigmoid",
        "it applies sigmoid itself and wants raw scores",
    ),
    "BCEWithLogitsLoss": (_SIGMOID, "sigmoid", "it applies sigmoid itself and wants raw scores"),
    "nll_loss": (
        frozenset(("torch.nn.Linear", "linear", "softmax", "torch.nn.Softmax")),
        "no log_softmax",
        "it wants log-probabilities",
    ),
    "NLLLoss": (
        frozenset(("torch.nn.Linear", "linear", "softmax", "torch.nn.Softmax")),
        "no log_softmax",
        "it wants log-probabilities",
    ),
}
_REGRESSIONS = words(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss "
    "BCEWithLogitsLoss"
)


def losses(scene: Scene) -> Iterator[tuple[ast.Call, str]]:
    """All calls of losses of torch, with their names, as functions or through objects."""
    for call in scene.index.calls:
        name = scene.called(call)
        if name.startswith(_F) and len(call.args) + len(call.keywords) > 1:
            yield call, name.removeprefix(_F)
        elif (
            not name
            and (call.args or call.keywords)
            and isinstance(call.func, ast.Name | ast.Attribute | ast.Call)
        ):
            made = {scene.called(one) if isinstance(one, ast.Call) else "" for one in scene.values(call.func)}
            only = made.pop() if len(made) == 1 else ""
            if only.startswith("torch.nn.") and only.endswith("Loss"):
                yield call, only.removeprefix("torch.nn.")


class SoftmaxBeforeCrossEntropy(Check):
    id = "softmax-before-cross-entropy"
    title = "A loss is given activations that it does not expect"
    why = """CrossEntropyLoss takes raw scores and applies log_softmax itself, BCEWithLogitsLoss its sigmoid;
    NLLLoss takes log-probabilities. Applied twice, or not at all, the loss still falls, with gradients that
    are too small or wrong: training is slow, and stops at a worse model."""
    fix = (
        "Give CrossEntropyLoss and BCEWithLogitsLoss the output of the last linear layer; apply softmax or "
        "sigmoid only to predict.",
        "With log_softmax as the last layer, use NLLLoss; with sigmoid, BCELoss.",
    )
    words = ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss", "BCEWithLogits")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call, name in losses(scene):
            if name not in _REFUSED:
                continue
            given = flow.argument(call, 0, "input")
            while isinstance(given, ast.Subscript) and not isinstance(given.slice, ast.Constant):
                given = given.value  # some rows of it
            refused, what, wants = _REFUSED[name]
            found = last(scene, given) if given is not None else []
            if found and all(one is not None and one.name in refused for one in found):
                first = found[0]
                assert first is not None
                yield self.at(call, f"{wants}; its input has {what} (line {first.call.lineno})", scene)


class LossBroadcast(Check):
    id = "loss-broadcast"
    title = "Output (N, 1) and target (N,) are broadcast to (N, N)"
    why = """The loss subtracts them as any tensors: (N, 1) minus (N,) is a matrix of all pairs. The mean over
    it pulls every prediction to the mean of the targets; torch only warns (Using a target size that is
    different to the input size). The BCE losses refuse it."""
    fix = ("Make the shapes equal: criterion(output.squeeze(-1), target), or target.unsqueeze(1).",)
    cause = "target-shape"
    words = ("loss", "Loss")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call, name in losses(scene):
            if name not in _REGRESSIONS:
                continue
            output, target = flow.argument(call, 0, "input"), flow.argument(call, 1, "target")
            if output is None or target is None:
                continue
            shapes = {column_or_flat(scene, output), column_or_flat(scene, target)}
            if shapes == {"column", "flat"}:
                yield self.at(call, "one of them is a column (N, 1), the other has one dimension (N,)", scene)
