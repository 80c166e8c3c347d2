"""Findings as workflow commands of GitHub Actions, which shows them beside the lines of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.model import Severity
from torchdoctor.render.clean import clean

if TYPE_CHECKING:
    from torchdoctor.model import Diagnosis, Report

_LEVELS = {Severity.FATAL: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def to_github(report: Report) -> str:
    """One line a finding, in the order of the report; "" for a report without one."""
    return "".join(f"{_line(item)}\n" for item in report.diagnoses)


def _line(item: Diagnosis) -> str:
    where: list[str] = []
    if item.frame is not None:
        frame = item.frame
        where.append(f"file={_property(frame.file)}")
        numbers = (("line", frame.line), ("col", frame.column), ("endLine", frame.end_line))
        where += [f"{name}={number}" for name, number in numbers if number]
        if frame.end_line == frame.line and frame.end_column:
            where.append(f"endColumn={frame.end_column}")
    where.append(f"title=torchdoctor {_property(item.rule)}")
    says = "; ".join(one.text for one in item.evidence)
    return f"::{_LEVELS[item.severity]} {','.join(where)}::{_data(f'{item.title}: {says}')}"


def _data(text: str) -> str:
    return clean(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
