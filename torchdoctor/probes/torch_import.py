"""What happens on `import torch` in the examined interpreter, and what torch then says of itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache

from torchdoctor.model import Fact, Reason
from torchdoctor.probes.interpreter import TARGET
from torchdoctor.probes.machine import Command, Outcome
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reported, signal_name, stage_state

_NAMES = tuple(CATALOGUE["torch_import"])
_HOW = tuple(name for name in _NAMES if name.startswith("torch.import_") and name != "torch.imported_version")
IMPORT, CUDA = "import", "import+cuda"
UNFINISHED = "import torch was not finished"


def command(context: Context, stages: str = IMPORT) -> Command:
    """The program that imports torch; the longer one, when that runs already."""
    machine, limits = context.machine, context.limits
    if stages == IMPORT and machine.running(CUDA):
        stages = CUDA
    limit_s = limits.import_s + (limits.cuda_s if stages == CUDA else 0.0)
    argv = (context.python, TARGET, f"{stages}@{limits.import_s:g},{limits.cuda_s:g}")
    # The program ends itself at its limits; ours is for one that cannot.
    return Command(stages, argv, limit_s + 2.0, reports=True)


def _look(context: Context) -> Iterator[Fact]:
    outcome = context.machine.finish(command(context))
    source = "import torch"
    found = dict(reported(outcome, _NAMES, source))
    if nothing_to_import(found):
        for name in _NAMES:
            yield Fact.absent(name, source, "torch is not installed")
        return
    for fact in _course(outcome, found, source):
        found.setdefault(fact.name, fact)
    yield from found.values()
    reason, detail = failure(outcome)
    if found["torch.import_outcome"].value == "hang":
        reason, detail = Reason.TIMED_OUT, UNFINISHED
    elif found["torch.import_outcome"].value not in ("ok", "unknown"):
        detail = "the import failed"
    for name in _NAMES:
        if name in found:
            continue
        if name in _HOW:
            yield Fact.absent(name, source)
        else:
            yield Fact.unknown(name, reason, source, detail)


def nothing_to_import(found: Mapping[str, Fact]) -> bool:
    """Was there no torch at all? One that lacks a part of itself says "No module named 'torch._C'"."""
    error, where = found.get("torch.import_error"), found.get("torch.import_where")
    if error is None or where is None or error.value != "ModuleNotFoundError: No module named 'torch'":
        return False
    return str(where.value).rpartition(":")[0].endswith(os.path.basename(TARGET))


def _course(outcome: Outcome, found: dict[str, Fact], source: str) -> Iterator[Fact]:
    """How the import went, where the program could not say so itself."""
    words = last_words(outcome.stderr)
    if words:
        yield Fact.known("torch.import_output", words, source)
    if "torch.import_outcome" in found:
        return
    if stage_state(outcome, "import") != "begin":
        reason, detail = failure(outcome)
        for name in ("torch.import_ok", "torch.import_outcome"):
            yield Fact.unknown(name, reason, source, detail)
        return
    hangs = unfinished(outcome)
    stack = _stack(outcome.stderr)
    # a cold network disk takes longer than any limit: that it is not done yet is no failure
    late = f"not finished after {outcome.seconds:.0f} s" + (f", at {stack.splitlines()[0]}" if stack else "")
    ok = "torch.import_ok"
    yield Fact.unknown(ok, Reason.TIMED_OUT, source, late) if hangs else Fact.known(ok, False, source)
    yield Fact.known("torch.import_seconds", outcome.seconds, source)
    if stack:
        yield Fact.known("torch.import_stack", stack, source)
    if hangs:
        yield Fact.known("torch.import_outcome", "hang", source)
    elif outcome.signal is not None:
        name = signal_name(outcome.signal)
        yield Fact.known("torch.import_outcome", "signal", source)
        yield Fact.known("torch.import_signal", name, source)
        yield Fact.known("torch.import_error", words or f"ended by {name}", source)
    elif outcome.note:
        yield Fact.known("torch.import_outcome", "error", source)
        yield Fact.known("torch.import_error", outcome.note, source)
    else:
        code = outcome.exit_code if outcome.exit_code is not None else -1
        yield Fact.known("torch.import_outcome", "exit", source)
        yield Fact.known("torch.import_exit_code", code, source)
        yield Fact.known(
            "torch.import_error", words or f"the import ended the process with code {code}", source
        )


def unfinished(outcome: Outcome) -> bool:
    """Was the import still going on when it was ended for its time limit?"""
    return stage_state(outcome, "import") == "begin" and (outcome.timed_out or "Timeout (" in outcome.stderr)


def last_words(text: str) -> str:
    """The last lines a person would quote, without the stack that follows them."""
    head = _stack_begins().split(text, maxsplit=1)[0]
    lines = [line.rstrip() for line in head.splitlines() if line.strip()]
    return "\n".join(lines[-8:])[-2000:]


@cache
def _stack_begins() -> re.Pattern[str]:
    # what faulthandler writes above a stack
    return re.compile(r"^(?:Fatal Python error|Timeout \(|(?:Current thread|Thread) 0x)", re.MULTILINE)


def _stack(text: str) -> str:
    """The frames that faulthandler wrote, our own left out."""
    found = re.findall(r'^  File "([^"]+)", line (\d+) in (.+)$', text, flags=re.MULTILINE)
    frames = [
        f"{file}:{line} in {function}"
        for file, line, function in found
        if file != TARGET and not file.startswith("<frozen importlib")
    ]
    return "\n".join(frames[:12])


PROBES = (Probe(_NAMES, Cost.SLOW, _look, command),)
