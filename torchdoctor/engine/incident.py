"""From the inputs a person names to reports, with what could not be read said and the rest still done."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO

from torchdoctor.engine.diagnose import diagnose, diagnose_runs
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.provenance import printed_here, site_of
from torchdoctor.intake import IntakeError, files_below, is_pattern, matches, read_all
from torchdoctor.model import Incident, Outcome, Report, Severity, Transcript, counted
from torchdoctor.records import Record, record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdoctor.catalog import RuleSet
    from torchdoctor.probes import ProbeSource

    Publisher = Callable[[Report, Transcript, bool], Report]

STDIN = "-"
ALL_RUNS = 0  # instead of the number of one
HERE = "Facts of this machine were used as well as the text; --offline ignores them"
READ_HERE = (
    "Facts out of files of this machine were used beside the text, and no program was run; --here asks its "
    "Python and tools too, --offline leaves all out"
)
USE_RUN = (
    "A pipe carries the text alone: torchdoctor run -- CMD also sees the exit code, the interpreter, and the "
    "stacks at Ctrl-C"
)


@record(frozen=True, slots=True)
class Answer(Record):
    """A report, and one line for each input that could not be read."""

    report: Report
    unreadable: tuple[str, ...]


@record(frozen=True, slots=True)
class Local(Record):
    """This machine as a source of facts: opened only for a log that is from here, or said to be.

    ``open`` takes whether programs may run, its Python and its tools, and the folder of packages that the log
    names. A log alone never decides the first: they do where the user is ``sure``.
    """

    open: Callable[[bool, str], ProbeSource]
    sure: bool = False


def explain(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None = None,
    local: Local | None = None,
    *,
    run: int | None = None,
    publish: Publisher | None = None,
) -> Answer:
    """One report on all inputs. It is ``unreadable`` when no input at all can be read.

    Where ``facts`` has no source of its own and the log is from this machine, ``local`` is asked. Of several
    runs the last is judged, or number ``run``: raises NoSuchRunError. ``publish`` makes of the report what
    may leave the machine.
    """
    (answer,) = _answers(paths, facts, rules, stdin, local, run, publish)
    return answer


def explain_runs(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None = None,
    local: Local | None = None,
    *,
    publish: Publisher | None = None,
) -> list[Answer]:
    """One answer for each run of the inputs, in order. Raises NoSuchRunError for several incidents."""
    return _answers(paths, facts, rules, stdin, local, ALL_RUNS, publish)


def _answers(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None,
    local: Local | None,
    run: int | None,
    publish: Publisher | None,
) -> list[Answer]:
    try:
        reading = read_all(paths, stdin, rules.literals)
    except IntakeError as error:
        complaints = [str(error)]
        if len(paths) > 1:  # the error names the first of them only
            complaints = [text for path in paths for text in explain((path,), facts, rules, stdin).unreadable]
        return [Answer(Report(Outcome.UNREADABLE, tuple(paths), notes=tuple(complaints)), tuple(complaints))]
    if run is not None and len(reading.incidents) > 1:
        from torchdoctor.engine.runs import NoSuchRunError

        files = counted(len(reading.transcript.sources), "file")
        many = f"these {files} are {counted(len(reading.incidents), 'incident')}"
        raise NoSuchRunError(f"--run takes the runs of one incident, and {many}: name the files of one")
    told = [_reports(one, facts, rules, local, run) for one in reading.incidents]
    reports = told[0] if len(told) == 1 else [together([report for (report,) in told])]
    answers = []
    for report in reports:
        complaints = [str(error) for error in reading.unreadable]
        if report.outcome is Outcome.UNREADABLE:
            complaints.extend(report.notes)
        hint = (USE_RUN,) if report.outcome is Outcome.UNRECOGNISED and "<stdin>" in report.source else ()
        report = replace(report, notes=(*reading.notes, *report.notes, *hint))
        if publish is not None:
            report = publish(report, reading.transcript, local is not None)
        answers.append(Answer(report, tuple(complaints)))
    return answers


def _reports(
    transcript: Transcript, facts: FactBook, rules: RuleSet, local: Local | None, run: int | None
) -> list[Report]:
    if local is None or facts.source is not None or not (local.sure or printed_here(transcript)):
        return _of_runs(transcript, facts, rules, run)
    from torchdoctor.probes.descendants import ended_with_us

    with ended_with_us() if local.sure else nullcontext():
        source = local.open(local.sure, site_of(transcript))
        facts = FactBook(source)
        try:
            reports = _with_checkpoints(
                _of_runs(transcript, facts, rules, run), transcript, facts, local.sure
            )
        finally:
            source.close()
    if any(report.diagnoses for report in reports):
        from torchdoctor.engine.pitfalls import with_pitfalls

        reports = [with_pitfalls(report, transcript) for report in reports]
    if not facts.asked():
        return reports
    note = HERE if local.sure else READ_HERE
    return [replace(report, notes=(*report.notes, note)) for report in reports]


def _with_checkpoints(
    reports: list[Report], transcript: Transcript, facts: FactBook, sure: bool
) -> list[Report]:
    if not any(one.family == "checkpoint" for report in reports for one in report.diagnoses):
        return reports
    from torchdoctor.engine.named_checkpoint import with_checkpoint
    from torchdoctor.probes.search_paths import current_folder

    version = facts.machine("torch.version").value
    folder = current_folder() if sure else ""
    torch = version if isinstance(version, str) else ""
    return [with_checkpoint(report, transcript, folder, torch) for report in reports]


def _of_runs(transcript: Transcript, facts: FactBook, rules: RuleSet, run: int | None) -> list[Report]:
    if run is None:
        return [diagnose(transcript, facts, rules)]
    from torchdoctor.engine.runs import chosen

    reports = diagnose_runs(transcript, facts, rules)
    return reports if run == ALL_RUNS else [chosen(reports, run)]


def together(reports: Sequence[Report]) -> Report:
    """Several incidents as one report: that on the first with a fatal diagnosis, else the first; and all."""
    fatal = (one for one in reports if any(item.severity is Severity.FATAL for item in one.diagnoses))
    incidents = tuple(
        Incident(one.source, one.outcome, one.diagnoses, one.first_failure, one.suspect) for one in reports
    )
    faults = tuple(fault for one in reports for fault in one.faults)
    return replace(next(fatal, reports[0]), incidents=incidents, faults=faults)


def explain_each(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None = None,
    local: Local | None = None,
    *,
    publish: Publisher | None = None,
    jobs: int = 1,
) -> Iterator[Answer]:
    """One answer for each file, in order, as it is done: also those in a folder, or that match a pattern.

    ``jobs`` processes share the files, where the system can fork; standard input cannot be among them then.
    """

    def one(path: str) -> Answer:
        return explain((path,), facts, rules, stdin, local, publish=publish)

    files = (
        file
        for path in paths
        for found in (is_pattern(path) and matches(path)) or [path]
        for file in files_below(found) or [found]
    )
    if jobs == 1 or not hasattr(os, "fork"):
        yield from map(one, files)
        return
    from torchdoctor.engine.jobs import in_order

    yield from in_order(list(files), one, jobs, _lost)


def _lost(path: str, reason: str) -> Answer:
    told = f"{path}: {reason}"
    return Answer(Report(Outcome.UNREADABLE, (path,), notes=(told,)), (told,))
