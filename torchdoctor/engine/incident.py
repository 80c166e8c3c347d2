"""From the inputs a person names to reports, with what could not be read said and the rest still done."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from torchdoctor.engine.diagnose import diagnose
from torchdoctor.intake import IntakeError, read_all
from torchdoctor.model import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdoctor.catalog import RuleSet
    from torchdoctor.engine.factbook import FactBook

STDIN = "-"


class Answer(NamedTuple):
    """A report, and one line for each input that could not be read."""

    report: Report
    unreadable: tuple[str, ...]


def explain(paths: Sequence[str], facts: FactBook, rules: RuleSet, stdin: BinaryIO | None = None) -> Answer:
    """All inputs as one incident. The report is ``unreadable`` when no input at all can be read."""
    try:
        reading = read_all(paths, stdin)
    except IntakeError as error:
        complaints = [str(error)]
        if len(paths) > 1:  # the error names the first of them only
            complaints = [text for path in paths for text in explain((path,), facts, rules, stdin).unreadable]
        return Answer(Report(Outcome.UNREADABLE, tuple(paths), notes=tuple(complaints)), tuple(complaints))
    report = diagnose(reading.transcript, facts, rules)
    complaints = [str(error) for error in reading.unreadable]
    if report.outcome is Outcome.UNREADABLE:
        complaints.extend(report.notes)
    return Answer(report, tuple(complaints))


def explain_each(
    paths: Sequence[str], facts: FactBook, rules: RuleSet, stdin: BinaryIO | None = None
) -> Iterator[Answer]:
    """One answer for each input, in order, as it is done."""
    for path in paths:
        yield explain((path,), facts, rules, stdin)
