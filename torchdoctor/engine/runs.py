"""The runs of an input that stand before the one that is judged."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.model import Outcome, Report, Run, Transcript
from torchdoctor.records import replace

_WORDS = {
    Outcome.UNRECOGNISED: "ended by a failure that no rule knows",
    Outcome.NO_FAILURE: "no failure in it",
    Outcome.UNREADABLE: "not readable",
}


def with_earlier(report: Report, transcript: Transcript, earlier: Sequence[Report]) -> Report:
    """The report on the last run, with a note and an entry in ``runs`` for each of those before it."""
    parts = [*transcript.earlier, transcript]
    reports = [*earlier, report]
    pairs = zip(parts, reports, strict=True)
    runs = tuple(_run(number, part, told) for number, (part, told) in enumerate(pairs, 1))
    notes = tuple(_note(run, told) for run, told in zip(runs, earlier, strict=False))
    return replace(report, runs=runs, notes=(*notes, *report.notes))


def _run(number: int, part: Transcript, report: Report) -> Run:
    rule = report.diagnoses[0].rule if report.diagnoses else None
    started = next((event.time for event in part.events if event.time), None)
    first = part.events[0].line if part.events else 1
    last = max((event.end_line for event in part.events), default=first)
    return Run(number, part.sources[0], first, last, started, report.outcome, rule)


def _note(run: Run, report: Report) -> str:
    when = f" of {run.started[11:16]}" if run.started and len(run.started) >= 16 else ""
    head = f"earlier in this file: run {run.number}{when}, lines {run.line} to {run.end_line}"
    if not report.diagnoses:
        return f"{head}: {_WORDS[report.outcome]}"
    evidence = report.diagnoses[0].evidence
    line = f", line {evidence[0].line}" if evidence and evidence[0].line else ""
    return f"{head}: ended by {run.rule}{line}"
