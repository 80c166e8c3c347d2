"""What is answered to a text: ``answers.cases`` holds texts that are no case of a rule, and their answers.

A case begins with ``=== what it shows``; behind ``---`` stands the answer: each diagnosis with its rank, its
frame, the lines of its evidence and what it leads to, or the suspect; then the runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from case_files import table

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis, Frame, Report, Suspect
from torchdoctor.render import words


def shown(report: Report) -> Iterator[str]:
    yield report.outcome.value
    yield from map(diagnosed, report.diagnoses)
    if report.suspect is not None:
        yield suspected(report.suspect)
        if report.suspect.reading is not None:
            yield words.reading(report.suspect.reading)
    if report.first_failure is not None:
        first = report.first_failure
        yield f"first: rank {first.rank}, by {first.decided_by}" + "".join(f" ={rank}" for rank in first.tie)
    for run in report.runs:
        yield f"run {run.line}-{run.end_line}: {run.outcome.value} {run.rule or ''}".rstrip()


def diagnosed(item: Diagnosis) -> str:
    lines = ",".join(str(one.line) for one in item.evidence if one.line is not None)
    rank = "" if item.rank is None else f" rank {item.rank}"
    chain = "".join(f" > {link.rule}" for link in item.leads_to)
    return (
        f"{item.rule} {item.standing.value} {item.role.value}{rank} lines {lines}{placed(item.frame)}{chain}"
    )


def suspected(suspect: Suspect) -> str:
    rank = "" if suspect.rank is None else f" rank {suspect.rank}"
    return f"suspect{rank} line {suspect.evidence.line}: {suspect.evidence.text}{placed(suspect.frame)}"


def placed(frame: Frame | None) -> str:
    if frame is None:
        return ""
    return f" at {frame.file}:{frame.line} {frame.function}{f' [{frame.package}]' if frame.package else ''}"


CASES = table(Path(__file__).with_name("answers.cases"))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_answers(lines: list[str], expected: list[str], rules: RuleSet) -> None:
    assert list(shown(diagnose(read_text("\n".join(lines)), FactBook(), rules))) == expected


def test_a_run_that_is_cut_says_where(rules: RuleSet) -> None:
    steps = "".join(f"epoch 1 step {number} loss 2.{number}\n" for number in (10, 20, 30))
    cut = "No failure in what is here; the log ends at epoch 1 step 30 without an end"
    assert diagnose(read_text(steps), FactBook(), rules).notes == (cut,)
    assert diagnose(read_text(f"{steps}Training finished.\n"), FactBook(), rules).notes == ()
