"""Names, places and predictions in words."""

from __future__ import annotations

import os
from collections.abc import Sequence

from torchdoctor.ddp.observation import Place
from torchdoctor.ddp.predict import Kind, Raised, Setting

_SHOWN = 40

TITLES = {
    Kind.UNUSED: "Some parameters get no gradient, and DDP stops at the next forward",
    Kind.TWICE: "A parameter is marked ready twice in one backward",
    Kind.NO_PARAMETERS: "DDP around a module without trainable parameters",
    Kind.DEVICES: "Parameters on different kinds of devices",
    Kind.UNINITIALIZED: "Lazy parameters that have no shape yet",
    Kind.GRAPH_CHANGED: "The graph differs between batches, which static_graph=True forbids",
    Kind.SPARSE: "A gradient is sparse where DDP expects a dense one, or the other way round",
    Kind.SYNCBN: "SyncBatchNorm in a model on the CPU",
}

MESSAGES = {
    Kind.UNUSED: "Expected to have finished reduction in the prior iteration before starting a new one",
    Kind.TWICE: "Expected to mark a variable ready only once",
    Kind.NO_PARAMETERS: "DistributedDataParallel is not needed when a module doesn't have any parameter",
    Kind.DEVICES: "DistributedDataParallel's input module must be on the same type of devices",
    Kind.UNINITIALIZED: "Modules with uninitialized parameters can't be used with `DistributedDataParallel`",
    Kind.GRAPH_CHANGED: "Your training graph has changed in this iteration",
    Kind.SPARSE: "Expected variable to have sparse gradient / Expected sparse gradient to be defined / "
    "Cannot access storage of SparseTensorImpl",
    Kind.SYNCBN: "SyncBatchNorm layers only work with GPU modules",
}

USE_OR_FREEZE = (
    "Use these parameters in the loss, remove them, or requires_grad_(False) on them before wrapping."
)
FIND_UNUSED = "DistributedDataParallel(model, find_unused_parameters=True)"

ACTIONS = {
    Kind.UNUSED: f"{USE_OR_FREEZE} Only if they are left out in some batches alone: {FIND_UNUSED}.",
    Kind.TWICE: "Make activation checkpointing non-reentrant (use_reentrant=False), do not use a "
    "parameter both "
    "inside and outside of forward's outputs with find_unused_parameters=True, and share no parameter "
    "between "
    "two reentrant checkpoints; static_graph=True where every batch uses the same graph.",
    Kind.NO_PARAMETERS: "Do not wrap it: call it directly. If it is to be trained, find where it was frozen.",
    Kind.DEVICES: "Move the whole model to one kind of device before wrapping.",
    Kind.UNINITIALIZED: "Run one forward with a sample batch before wrapping, so that they get their shapes.",
    Kind.GRAPH_CHANGED: "Do not set static_graph=True for this model.",
    Kind.SPARSE: "sparse=True belongs on nn.Embedding itself, on every use of its weight, and on no "
    "weight that is "
    "used densely too (tied output layers) or left out: else set sparse=False.",
    Kind.SYNCBN: "Move the model to the GPU before wrapping, or use plain BatchNorm on the CPU.",
}


def names(items: Sequence[str], shown: int = _SHOWN) -> str:
    """The names, the first ``shown`` of them."""
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more


def verdict_of(setting: Setting, raised: Raised | None) -> str:
    """What happens under a setting."""
    if raised is None:
        return f"{setting.value}: does not raise"
    when = {
        "wrap": "when the model is wrapped",
        "forward": f"at the forward of iteration {raised.iteration}",
        "backward": f"in the backward of iteration {raised.iteration}",
    }[raised.stage]
    return f"{setting.value}: raises {when}: {MESSAGES[raised.kind]}"


def at(place: Place) -> str:
    """Below the working folder the path as one would type it."""
    try:
        relative = os.path.relpath(place.file)
    except ValueError:  # another drive
        relative = place.file
    return f"{place.file if relative.startswith(os.pardir) else relative}:{place.line}"
