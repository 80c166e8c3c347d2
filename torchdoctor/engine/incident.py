"""From the inputs a person names to reports, with what could not be read said and the rest still done."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.provenance import printed_here
from torchdoctor.intake import IntakeError, is_pattern, matches, read_all
from torchdoctor.model import Outcome, Report
from torchdoctor.records import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdoctor.catalog import RuleSet
    from torchdoctor.model import Transcript
    from torchdoctor.probes import ProbeSource

    # report, what was read, whether the log may be from this machine -> what may leave the machine
    Publisher = Callable[[Report, Transcript, bool], Report]

STDIN = "-"
HERE = "Facts of this machine were used as well as the text; --offline ignores them"
READ_HERE = (
    "Facts out of files of this machine were used beside the text, and no program was run; --here asks its "
    "Python and tools too, --offline leaves all out"
)


class Answer(NamedTuple):
    """A report, and one line for each input that could not be read."""

    report: Report
    unreadable: tuple[str, ...]


class Local(NamedTuple):
    """This machine as a source of facts: opened only for a log that is from here, or said to be.

    ``open`` takes whether programs may run, its Python and its tools. A log alone never decides that: they do
    where the user is ``sure``.
    """

    open: Callable[[bool], ProbeSource]
    sure: bool = False


def explain(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None = None,
    local: Local | None = None,
    *,
    publish: Publisher | None = None,
) -> Answer:
    """All inputs as one incident. The report is ``unreadable`` when no input at all can be read.

    Where ``facts`` has no source of its own and the log is from this machine, ``local`` is asked.
    ``publish`` makes of the report what may leave the machine.
    """
    try:
        reading = read_all(paths, stdin, rules.literals)
    except IntakeError as error:
        complaints = [str(error)]
        if len(paths) > 1:  # the error names the first of them only
            complaints = [text for path in paths for text in explain((path,), facts, rules, stdin).unreadable]
        return Answer(Report(Outcome.UNREADABLE, tuple(paths), notes=tuple(complaints)), tuple(complaints))
    if local is not None and facts.source is None and (local.sure or printed_here(reading.transcript)):
        report = _with_machine(reading.transcript, local, rules)
        if report.diagnoses:
            from torchdoctor.engine.pitfalls import with_pitfalls

            report = with_pitfalls(report, reading.transcript)
    else:
        report = diagnose(reading.transcript, facts, rules)
    complaints = [str(error) for error in reading.unreadable]
    if report.outcome is Outcome.UNREADABLE:
        complaints.extend(report.notes)
    if publish is not None:
        report = publish(report, reading.transcript, local is not None)
    return Answer(report, tuple(complaints))


def _with_machine(transcript: Transcript, local: Local, rules: RuleSet) -> Report:
    from torchdoctor.probes.descendants import ended_with_us

    with ended_with_us() if local.sure else nullcontext():
        source = local.open(local.sure)
        facts = FactBook(source)
        try:
            report = diagnose(transcript, facts, rules)
        finally:
            source.close()
    note = HERE if local.sure else READ_HERE
    return replace(report, notes=(*report.notes, note)) if facts.asked() else report


def explain_each(
    paths: Sequence[str],
    facts: FactBook,
    rules: RuleSet,
    stdin: BinaryIO | None = None,
    local: Local | None = None,
    *,
    publish: Publisher | None = None,
) -> Iterator[Answer]:
    """One answer for each input, in order, as it is done; a folder is one, a pattern all that it matches."""
    for path in paths:
        for one in (is_pattern(path) and matches(path)) or [path]:
            yield explain((one,), facts, rules, stdin, local, publish=publish)
