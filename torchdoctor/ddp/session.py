"""``MODULE:FACTORY`` in a child of the user's interpreter, and what came of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from torchdoctor.ddp.observation import failure, observation
from torchdoctor.ddp.report import failed_result, report_of
from torchdoctor.ddp.wording import names
from torchdoctor.model import (
    Blame,
    CheckResult,
    Evidence,
    NotChecked,
    Outcome,
    Report,
    TorchdoctorError,
    Verdict,
)
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Command
from torchdoctor.probes.machine import Outcome as Ended

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "run_factory.py")
LIMIT_S = 300.0
FACTORY_CHECK = "ddp-factory"


class FactoryError(TorchdoctorError):
    """What was named is no factory, or does not give a model, batches and a loss function."""


def check_factory(name: str, python: str, limit_s: float = LIMIT_S) -> Report:
    """Call the factory in a child of ``python`` and check what it gives. Blocks up to the limit.

    Raises FactoryError for a name of another form, a factory that is not there and a result of another form.
    """
    where, _, attribute = name.rpartition(":")
    if not where or not re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", attribute):
        raise FactoryError(
            f"{name}: expected MODULE:FACTORY or FILE.py:FACTORY, where FACTORY() returns (model, "
            f"inputs, loss_fn)"
        )
    argv = (python, PROGRAM, name, str(limit_s))
    command = Command("ddp", argv, limit_s + 3.0, reports=True, named=True)
    machine = LiveMachine()
    try:
        return _read(name, python, machine.finish(command))
    finally:
        machine.close()


def _read(name: str, python: str, ended: Ended) -> Report:
    last: dict[str, Any] = {}
    for line in ended.lines:
        last.update(line)
    if "mistake" in last:
        raise FactoryError(str(last["mistake"]))
    if "seen" in last:
        assert isinstance(last["seen"], Mapping)
        return report_of(observation(last["seen"]))
    if "error" in last:
        error = failure(last["error"])
        assert error is not None
        if error.type == "SystemExit":
            return _failed(name, f"ends the process (SystemExit: {error.message})", ended)
        found = failed_result(FACTORY_CHECK, name, error)
        if isinstance(found, NotChecked):
            return Report(Outcome.NO_FAILURE, not_checked=(found,))
        return Report(Outcome.DIAGNOSED, checks=(found,))
    if ended.start_error or not last:
        words = (
            ended.start_error or ended.stderr.strip()[-500:] or f"exit code {ended.exit_code}, and no word"
        )
        result = CheckResult(
            FACTORY_CHECK,
            Verdict.FAIL,
            f"{name} could not be run: the interpreter does not start",
            Blame.ENVIRONMENT,
            observed=words,
            expected="a Python that can be run",
            evidence=(Evidence(f"{python}: {words}"),),
            action="Name the interpreter that runs your program: --python PATH.",
        )
        return Report(Outcome.DIAGNOSED, checks=(result,))
    if ended.timed_out or "Timeout (" in ended.stderr:
        return _failed(name, f"did not end within {ended.seconds:.0f} s, and was ended", ended)
    if ended.signal is not None:
        from torchdoctor.probes.probe import signal_name

        return _failed(name, f"crashes the interpreter: {signal_name(ended.signal)}", ended)
    return _failed(name, ended.note or f"ends the process with code {ended.exit_code}", ended)


def _failed(name: str, words: str, ended: Ended) -> Report:
    _, _, dump = ended.stderr.rpartition("(most recent call first):")
    folder = os.path.dirname(PROGRAM)
    frames = [
        (file, int(line), function)
        for file, line, function in re.findall(r'^  File "([^"]+)", line (\d+) in (.+)$', dump, re.MULTILINE)
        if not file.startswith((folder, "<frozen"))
    ]
    evidence = [
        Evidence(f"last seen at {file}:{line} in {function}", file, line)
        for file, line, function in frames[:8]
    ]
    if not frames:
        printed = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        evidence += [Evidence(f"printed: {line}") for line in printed[-4:]]
    result = CheckResult(
        FACTORY_CHECK,
        Verdict.FAIL,
        f"{name} {words.splitlines()[0]}",
        Blame.USER,
        observed=names([words]),
        expected="the factory returns (model, inputs, loss_fn)",
        evidence=tuple(evidence),
        action="Let the factory build the model and its batches and nothing else: no training, no "
        "process group.",
    )
    return Report(Outcome.DIAGNOSED, checks=(result,))
