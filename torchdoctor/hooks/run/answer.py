"""The report on a run: what it printed, how it ended, what was seen of it, and the machine that it ran on."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

from torchdoctor import catalog
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.incident import STDIN, Local, explain
from torchdoctor.engine.select import INTERRUPTED
from torchdoctor.model import PROCESS_ENDED, Outcome, Report, Role, Severity, Standing
from torchdoctor.number import count
from torchdoctor.records import replace

if TYPE_CHECKING:
    from torchdoctor.hooks.run.stops import Stop
    from torchdoctor.intake.live import Output
    from torchdoctor.probes import ProbeSource


def closing_words(code: int) -> str:
    """The last line of the log, as PyCharm and others have it; ``code`` is negative for a signal."""
    if code >= 0:
        return f"{PROCESS_ENDED}{code}"
    name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
    return f"{PROCESS_ENDED}{128 - code} (interrupted by signal {-code}: {name})"


def local(python: str) -> Local:
    """This machine, with the interpreter of the command; "" where it is not known."""
    from torchdoctor.probes.opening import InterpreterError, open_for_log, resolve

    def probes(programs: bool, site: str) -> ProbeSource:
        try:
            return open_for_log(resolve(python) if python else None, programs, site)
        except InterpreterError:  # the command took it away
            return open_for_log(None, programs, site)

    return Local(probes, sure=True)


def of_run(
    output: Output,
    logs: Sequence[str],
    machine: Local | None,
    stops: Sequence[Stop] = (),
    *,
    stopped: bool = False,
) -> Report:
    """What happened. ``logs`` are further files of the same run; ``stopped``: it ended because of a stop."""
    rules, _ = catalog.load_with_packs()
    answer = explain((STDIN, *logs), FactBook(None), rules, cast("BinaryIO", output), machine)
    return _with_stops(answer.report, stops, stopped)


def _with_stops(report: Report, stops: Sequence[Stop], stopped: bool) -> Report:
    """What a process was seen to wait for is the cause of a stop, unless the text holds one that is sure."""
    if not stops:
        return report
    last = stops[-1].report
    notes = [f"{stop.occasion}: {place}" for stop in stops for place in stop.standing]
    notes += [f"{item.id}: {item.reason}" for item in last.not_checked]
    waits = last.diagnoses if last.outcome is Outcome.DIAGNOSED or (stopped and not report.diagnoses) else ()
    if waits:
        sure = [
            one for one in report.diagnoses if one.rule != INTERRUPTED and one.role is Role.CAUSE
            and one.severity is Severity.FATAL and one.standing is Standing.CONFIRMED
        ]  # fmt: skip
        others = [one for one in report.diagnoses if one not in sure and one.rule != INTERRUPTED]
        found = (*sure, *waits, *others) if stopped else (*report.diagnoses, *waits)
        report = replace(report, outcome=Outcome.DIAGNOSED, diagnoses=found, suspect=None)
    elif report.outcome is not Outcome.DIAGNOSED and last.suspect is not None and stopped:
        report = replace(report, outcome=Outcome.UNRECOGNISED, suspect=last.suspect)
    return replace(report, notes=(*notes, *report.notes))


def written(report: Report, form: str, stream: int | None = None) -> str:
    """The report in one of the formats, for a file or for what a descriptor leads to."""
    if form == "json":
        from torchdoctor.render.json import to_json

        return to_json(report) + "\n"
    if form == "markdown":
        from torchdoctor.render.markdown import documents

        return documents([report], headings=[]) + "\n"
    from torchdoctor.render.text import render

    text = io.StringIO()
    on_terminal = stream is not None and os.isatty(stream)
    size = os.get_terminal_size(stream) if on_terminal and stream is not None else (100, sys.maxsize)
    named = count(os.environ.get("COLUMNS")) if stream is not None else None
    asked = stream is not None and bool(os.environ.get("FORCE_COLOR"))
    able = asked or (on_terminal and os.environ.get("TERM") != "dumb")
    color = able and not os.environ.get("NO_COLOR")
    render(report, stream=text, width=named or size[0] or 80, height=size[1] or 24, color=color)
    return text.getvalue()
