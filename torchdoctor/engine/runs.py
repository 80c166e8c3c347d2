"""The runs of an input: an entry for each, which one is explained, and a note on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchdoctor.extract.progress import advances, is_progress, steps_shown
from torchdoctor.model import Ending, Outcome, Report, Run, TorchdoctorError, Transcript, counted
from torchdoctor.records import replace

_ALONE = 3  # other runs that have a note each; more are counted
_WORDS = {
    Outcome.UNRECOGNISED: "ended by a failure that no rule knows",
    Outcome.NO_FAILURE: "no failure in it",
    Outcome.UNREADABLE: "not readable",
}


class NoSuchRunError(TorchdoctorError):
    """A run that the input does not hold; the text says how many there are."""


def explained(reports: Sequence[Report], parts: Sequence[Transcript]) -> int:
    """The index of the run that a person asks of: the last, or the last failure where that only begins.

    A container that is started again and again ends its log somewhere in the beginning of one more run.
    """
    last = len(parts) - 1
    if reports[last].outcome is not Outcome.NO_FAILURE or parts[last].ending is not Ending.UNKNOWN:
        return last
    texts = [event.text for event in parts[last].events]
    if any(is_progress(text) and steps_shown(text) for text in texts) or advances(texts, once=True):
        return last
    failed = (Outcome.DIAGNOSED, Outcome.UNRECOGNISED)
    return next((index for index in range(last - 1, -1, -1) if reports[index].outcome in failed), last)


def with_runs(
    reports: Sequence[Report], parts: Sequence[Transcript], index: int | None = None
) -> list[Report]:
    """The reports on all runs, in order, each with the list of them; that on the last, or on the one at
    ``index``, with a note on each other.

    One run is an input as it is.
    """
    if len(reports) == 1:
        return list(reports)
    pairs = zip(parts, reports, strict=True)
    runs = tuple(_run(number, part, told) for number, (part, told) in enumerate(pairs, 1))
    told = runs[-1 if index is None else index]
    others = [(run, report) for run, report in zip(runs, reports, strict=True) if run is not told]
    alone = len(others) <= _ALONE
    notes = [_note(run, report, told) for run, report in others] if alone else [_summed(others)]
    listed = [replace(one, runs=runs) for one in reports]
    at = told.number - 1
    listed[at] = replace(listed[at], notes=(*notes, *listed[at].notes))
    return listed


def chosen(reports: Sequence[Report], number: int) -> Report:
    """The report on run ``number``, from 1. Raises NoSuchRunError."""
    if 0 < number <= len(reports):
        return reports[number - 1]
    source = ", ".join(reports[-1].source)
    right = "--run 1, or none" if len(reports) == 1 else f"--run 1 to {len(reports)}, or all"
    raise NoSuchRunError(f"no run {number} in {source}: it holds {counted(len(reports), 'run')} ({right})")


def _run(number: int, part: Transcript, report: Report) -> Run:
    rule = report.diagnoses[0].rule if report.diagnoses else None
    events = [event for event in part.events if event.source == part.sources[0]]
    started = next((event.time for event in events if event.time), None)
    first = events[0].line if events else 1
    last = max((event.end_line for event in events), default=first)
    return Run(number, part.sources[0], first, last, started, report.outcome, rule)


def _summed(others: Sequence[tuple[Run, Report]]) -> str:
    """One note on many runs: how often each end came, most frequent first."""
    words = {**_WORDS, Outcome.NO_FAILURE: "without a failure"}
    ends = Counter(f"ended by {run.rule}" if run.rule else words[run.outcome] for run, _ in others)
    counts = ", ".join(f"{number} {end}" for end, number in ends.most_common())
    named = counted(len(others), "other run")
    return f"{named} in the input: {counts} (--run N shows one, --run all shows all)"


def _note(run: Run, report: Report, told: Run) -> str:
    named = f"run {run.number}"
    clock = (run.started or "").partition("T")[2][:5]
    if clock:
        named = f"run of {clock}"
    when = "earlier" if run.number < told.number else "later"
    head = f"{when} in {'this file' if run.file == told.file else run.file}: {named}"
    behind = f"lines {run.line} to {run.end_line}, shown by --run {run.number}"
    if not report.diagnoses:
        return f"{head}: {_WORDS[report.outcome]} ({behind})"
    evidence = report.diagnoses[0].evidence
    line = f", line {evidence[0].line}" if evidence and evidence[0].line else ""
    return f"{head} ended by {run.rule}{line} ({behind})"
