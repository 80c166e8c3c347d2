"""Reports for GitHub Actions: annotations beside the lines of a change, and a summary of the step.

Commands, their escaping and the limit of ten a level and step are those of
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from torchdoctor.model import Diagnosis, Outcome, Severity, Suspect, Verdict
from torchdoctor.records import replace
from torchdoctor.render.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import CheckResult, Frame, Report

_Framed = TypeVar("_Framed", Diagnosis, Suspect)
LIMIT = 10  # annotations of a level that GitHub shows of one step
_LEVELS = {Severity.FATAL: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_CHECKS = {Verdict.FAIL: "error", Verdict.WARN: "warning"}


class _Annotation(NamedTuple):
    level: str
    title: str
    text: str
    frame: Frame | None = None


def to_github(report: Report) -> str:
    """One line a finding, in the order of the report; "" for a report without one.

    What is beyond the limit of its level is only counted.
    """
    lines: list[str] = []
    counts = dict.fromkeys(_LEVELS.values(), 0)
    for one in _annotations(report):
        counts[one.level] += 1
        if counts[one.level] <= LIMIT:
            lines.append(_line(one))
    left = sum(max(count - LIMIT, 0) for count in counts.values())
    if left:
        lines.append(f"and {left} more, beyond the {LIMIT} of a level that GitHub shows")
    return "".join(f"{line}\n" for line in lines)


def in_workspace(report: Report, root: str) -> Report:
    """The report with files below ``root``, GITHUB_WORKSPACE, as the repository names them in frames."""
    start = root.rstrip("/") + "/"

    def named(item: _Framed) -> _Framed:
        if item.frame is None or not root or not item.frame.file.startswith(start):
            return item
        return replace(item, frame=replace(item.frame, file=item.frame.file[len(start) :]))

    suspect = named(report.suspect) if report.suspect is not None else None
    return replace(report, diagnoses=tuple(map(named, report.diagnoses)), suspect=suspect)


def step_summary(report: Report) -> str:
    """Markdown for the file GITHUB_STEP_SUMMARY, far below its limit of 1 MiB."""
    from torchdoctor.render import markdown

    if not report.checks and not report.not_checked:
        return markdown.to_markdown(report)
    from torchdoctor.render.checks import MARKS, summary, worst

    lines = [f"### {MARKS[worst(report)]} torchdoctor: {summary(report)}", ""]
    for one in report.checks:
        if one.verdict in _CHECKS:
            told = _joined(one.title, _observed(one), one.action and f"Do: {one.action}")
            lines.append(f"- {MARKS[one.verdict]} `{one.id}` {markdown.escape(told)}")
    lines += [f"- ? `{one.id}`: {markdown.escape(one.reason)}" for one in report.not_checked]
    text = "\n".join(lines)
    return text[: markdown.LIMIT].rpartition("\n")[0] + "\n" if len(text) > markdown.LIMIT else text + "\n"


def _annotations(report: Report) -> Iterator[_Annotation]:
    for item in report.diagnoses:
        says = "; ".join(one.text for one in item.evidence)
        yield _Annotation(_LEVELS[item.severity], item.rule, _joined(item.title, says), item.frame)
    if report.outcome is Outcome.UNRECOGNISED and report.suspect is not None:
        who = report.suspect
        kind = f"{who.type}: " if who.type else ""
        yield _Annotation("error", "a failure that no rule knows", kind + who.message, who.frame)
    for one in report.checks:
        if one.verdict in _CHECKS:
            action = one.action and f"Do: {one.action}"
            yield _Annotation(_CHECKS[one.verdict], one.id, _joined(one.title, _observed(one), action))


def _joined(title: str, says: str, action: str | None = None) -> str:
    return "\n".join(part for part in (f"{title}: {says}" if says else title, action) if part)


def _observed(one: CheckResult) -> str:
    return "; ".join(dict.fromkeys(item.text for item in one.evidence)) or one.observed or ""


def _line(one: _Annotation) -> str:
    where: list[str] = []
    frame = one.frame
    if frame is not None:
        where.append(f"file={_property(frame.file)}")
        numbers = (("line", frame.line), ("col", frame.column), ("endLine", frame.end_line))
        where += [f"{name}={number}" for name, number in numbers if number]
        if frame.end_line == frame.line and frame.end_column:
            where.append(f"endColumn={frame.end_column}")
    where.append(f"title=torchdoctor {_property(one.title)}")
    return f"::{one.level} {','.join(where)}::{_data(one.text)}"


def _data(text: str) -> str:
    """The text in one line, where its line ends are ``%0A``."""
    return "%0A".join(clean(line).replace("%", "%25") for line in text.splitlines())


def _property(text: str) -> str:
    return clean(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
