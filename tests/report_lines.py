"""A report in short lines, for tables of texts and what is answered to them."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import Diagnosis, Frame, Report, Suspect
from torchdoctor.render import unknown


def shown(report: Report) -> Iterator[str]:
    yield report.outcome.value
    yield from map(diagnosed, report.diagnoses)
    if report.suspect is not None:
        yield suspected(report.suspect)
        if report.suspect.reading is not None:
            yield unknown.reading(report.suspect.reading)
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
