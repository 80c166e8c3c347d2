"""What torch and the driver's library say when CUDA is started in the examined interpreter.

CUDA is started the way torch starts it, which makes no context and takes no GPU memory, but asks the driver:
on a machine with eight GPUs or a sick driver that takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import Fact, Reason
from torchdoctor.probes.machine import Command
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reported, stage_state
from torchdoctor.probes.torch_import import CUDA, UNFINISHED, last_words, nothing_to_import, unfinished
from torchdoctor.probes.torch_import import command as import_command

_NAMES = tuple(CATALOGUE["torch_cuda"])


def command(context: Context) -> Command:
    return import_command(context, CUDA)


def _look(context: Context) -> Iterator[Fact]:
    outcome = context.machine.finish(command(context))
    source = "torch.cuda"
    if nothing_to_import(reported(outcome, CATALOGUE["torch_import"], source)):
        for name in _NAMES:
            yield Fact.absent(name, source, "torch is not installed")
        return
    found = reported(outcome, _NAMES, source)
    yield from found.values()
    reason, detail = failure(outcome)
    if unfinished(outcome):
        reason, detail = Reason.TIMED_OUT, UNFINISHED
    state = stage_state(outcome, "cuda")
    if state == "" and stage_state(outcome, "import") == "end":
        reason, detail = Reason.NOT_INSTALLED, "torch did not import"
    for name in _NAMES:
        if name in found:
            continue
        if state == "end":
            yield Fact.absent(name, source)
        elif name == "torch.cuda_error" and state == "begin":
            words = last_words(outcome.stderr)
            yield Fact.known(name, f"CUDA did not start: {detail}" + (f"\n{words}" if words else ""), source)
        else:
            yield Fact.unknown(name, reason, source, detail)


PROBES = (Probe(_NAMES, Cost.SLOW, _look, command),)
