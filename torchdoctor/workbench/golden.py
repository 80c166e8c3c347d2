"""What the engine answers to every case, as a table that changes are reviewed in."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import Report
from torchdoctor.workbench.case import NONE, Case, facts, transcript

PLACE = os.path.join("tests", "golden", "top1.tsv")
_HEAD = "case\ttop-1\tstanding\tuser frame"


@dataclass(frozen=True, slots=True)
class Answer:
    """A case and the report on it."""

    case: Case
    report: Report

    @property
    def top(self) -> str:
        return self.report.diagnoses[0].rule if self.report.diagnoses else NONE

    @property
    def row(self) -> tuple[str, str, str]:
        """Rule, else the outcome, standing and user frame (FILE_NAME:LINE); "-" for what there is not."""
        if not self.report.diagnoses:
            return self.report.outcome.value, "-", "-"
        first = self.report.diagnoses[0]
        frame = "-"
        if first.frame is not None:
            name = first.frame.file.replace("\\", "/").rpartition("/")[2]
            frame = f"{name}:{first.frame.line}"
        return first.rule, first.standing.value, " ".join(frame.split())


def answers(cases: Iterable[Case], rules: RuleSet) -> list[Answer]:
    """The report on each case, judged by its text and the recording of its machine, if it has one."""
    return [Answer(case, diagnose(transcript(case), FactBook(facts(case)), rules)) for case in cases]


def table(found: Sequence[Answer], without: Collection[str] = ()) -> str:
    """The golden file: one line a case, in order of their names, but for some ids."""
    rows = sorted((answer.case.id, *answer.row) for answer in found if answer.case.id not in without)
    return "\n".join([_HEAD, *("\t".join(row) for row in rows)]) + "\n"


def _read(text: str) -> Mapping[str, str]:
    return dict(line.split("\t", 1) for line in text.splitlines()[1:] if "\t" in line)


def recorded(path: str | None) -> frozenset[str]:
    """The ids of the cases in a golden file; none where there is no such file."""
    try:
        with open(path or os.devnull, encoding="utf-8") as file:
            return frozenset(_read(file.read()))
    except FileNotFoundError:
        return frozenset()


def differences(path: str, now: str) -> list[str]:
    """One line for each case whose answer is not the one recorded in the golden file."""
    shown = os.path.basename(path)
    try:
        with open(path, encoding="utf-8") as file:
            recorded = _read(file.read())
    except OSError as error:
        return [f"{path}: {error.strerror}; `torchdoctor rules lint --update-golden` writes it"]
    current = _read(now)
    found = [
        f"{shown}: {name} is recorded as {_in_words(recorded[name])}, is now {_in_words(row)}"
        for name, row in current.items()
        if name in recorded and recorded[name] != row
    ]
    found.extend(f"{shown}: {name} is not recorded" for name in current if name not in recorded)
    found.extend(f"{shown}: {name} is recorded and gone" for name in recorded if name not in current)
    if found:
        found.append(f"{shown}: if all this is meant, `torchdoctor rules lint --update-golden` records it")
    return found


def _in_words(row: str) -> str:
    return ", ".join(part for part in row.split("\t") if part != "-")
