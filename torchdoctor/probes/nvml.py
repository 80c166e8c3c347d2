"""Driver and GPUs as NVML tells them, in a process of our own interpreter; else as nvidia-smi does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from torchdoctor.model import Fact, Reason
from torchdoctor.probes import nvidia_smi
from torchdoctor.probes.driver import any_sign
from torchdoctor.probes.machine import Command, NotRecorded, Outcome
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reported, stage_state

_NAMES = tuple(CATALOGUE["nvml"])
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "nvml.py")


def command(context: Context) -> Command | None:
    """The program that asks NVML; None when nothing of an NVIDIA driver is to be seen."""
    if not any_sign(context):
        return None
    # -I -S: nothing of the user's environment may change what we run; the one package it needs is named.
    argv = (sys.executable, "-I", "-S", _PROGRAM, _folder_of_pynvml())
    return Command("nvml", argv, context.limits.nvml_s, reports=True)


def _folder_of_pynvml() -> str:
    from importlib.util import find_spec

    spec = find_spec("pynvml")
    return os.path.dirname(spec.origin) if spec is not None and spec.origin else ""


def _outcome(context: Context) -> Outcome | None:
    """How the program ended; None when there was no reason to start it."""
    machine = context.machine
    try:
        ran = Command("nvml", (), 0.0) if machine.running("nvml") else command(context)
        return machine.finish(ran) if ran is not None else None
    except NotRecorded:
        if not machine.running(nvidia_smi.LABEL):
            raise
        return Outcome(start_error="not recorded")


def _look(context: Context) -> Iterator[Fact]:
    outcome = _outcome(context)
    if outcome is None:
        for name in _NAMES:
            yield Fact.absent(name, "NVML", "no NVIDIA driver is visible")
        return
    found = dict(reported(outcome, _NAMES, "NVML"))
    reason, detail = failure(outcome)
    if stage_state(outcome, "pynvml") or outcome.start_error:
        reason, detail = Reason.NOT_INSTALLED, "only NVML tells it, and nvidia-ml-py was not there"
        found.update(nvidia_smi.facts(context))
    ended = stage_state(outcome, "nvml") == "end"
    yield from found.values()
    error = found.get("driver.nvml_error")
    if error is not None and error.value:
        reason, detail = Reason.CRASHED, f"NVML: {error.value}"
    for name in _NAMES:
        if name in found:
            continue
        if name == "driver.nvml_error" and not ended:
            yield Fact.known(name, f"NVML did not answer: {detail}", "NVML")
        else:
            yield Fact.unknown(name, reason, "NVML", detail)


PROBES = (Probe(_NAMES, Cost.SLOW, _look, command),)
