"""What DistributedDataParallel would raise on a model, found on one process before anything is launched.

``torchdoctor.ddp.check`` runs in the user's process, ``torchdoctor ddp MODULE:FACTORY`` in a child of the
user's interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdoctor.model import Report, TorchdoctorError

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch


class CallError(TorchdoctorError):
    """``check`` was given something that is not a model, batches and a loss function."""


def check(
    model: torch.nn.Module, inputs: Any, loss_fn: Callable[[Any], torch.Tensor] | None = None
) -> Report:
    """One forward and one backward per batch, and what DDP would raise under each of its settings.

    ``inputs``: a tuple of positional arguments, a dict of named ones, one tensor, or a list of such batches.
    ``loss_fn(outputs)`` gives a tensor of one element; without one the output's own ``loss`` is taken, an
    output of one element, or the sum of all outputs. Parameters, gradients, buffers, hooks, attributes and
    random generators are left as they were. What the model raises stands in the report; a call with anything
    but a model, batches and a callable raises CallError.
    """
    from torchdoctor.ddp.child.examine import Mistake, examine
    from torchdoctor.ddp.observation import observation
    from torchdoctor.ddp.report import report_of

    try:
        seen = examine(model, inputs, loss_fn)
    except Mistake as error:
        raise CallError(str(error)) from None
    return report_of(observation(seen))
