"""Findings in source code, for people: the verdict, then each place with its line and the way out."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, TextIO

from torchdoctor.model import Severity, counted
from torchdoctor.render.clean import clean, encodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Diagnosis, Frame, Report

_COLORS = {"✗": "31", "!": "33", "✓": "32"}
_CODE_CELLS = 400


def render_pitfalls(
    report: Report,
    *,
    stream: TextIO,
    subject: str = "",
    width: int = 80,
    color: bool = False,
    statistics: bool = False,
) -> None:
    """Write the findings, or with ``statistics`` how many there are of each id. Raises OSError."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in _lines(report, subject, max(width, 40), statistics):
        text = encodable(line, encoding)
        mark = line[:1]
        if color and mark in _COLORS:
            sign = encodable(mark, encoding)
            text = f"\x1b[{_COLORS[mark]}m{sign}\x1b[0m{text[len(sign) :]}"
        stream.write(text.rstrip() + "\n")


def _lines(report: Report, subject: str, width: int, statistics: bool) -> Iterator[str]:
    yield from _wrap(f"{_mark(report)} {_verdict(report)}{subject}", width, "  ")
    if statistics:
        yield from _counts(report)
    else:
        told: set[str] = set()
        for item in report.diagnoses:
            yield ""
            yield from _finding(item, width, item.rule not in told)
            told.add(item.rule)
    if report.notes:
        yield ""
        yield "Notes:"
        for note in report.notes:
            yield from _wrap(f"  {clean(note)}", width, "    ")


def _mark(report: Report) -> str:
    if any(item.severity is Severity.FATAL for item in report.diagnoses):
        return "✗"
    return "!" if report.diagnoses else "✓"


def _verdict(report: Report) -> str:
    bad = sum(1 for item in report.diagnoses if item.severity is Severity.FATAL)
    warnings = len(report.diagnoses) - bad
    if not report.diagnoses:
        return "No pitfall found"
    parts = [counted(bad, "problem")] if bad else []
    parts += [counted(warnings, "warning")] if warnings else []
    return ", ".join(parts)


def _counts(report: Report) -> Iterator[str]:
    counts = Counter((item.rule, item.title) for item in report.diagnoses)
    column = max((len(rule) for rule, _ in counts), default=0)
    for (rule, title), count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        yield f"{count:7,}  {rule:<{column}}  {title}"


def _finding(item: Diagnosis, width: int, first: bool) -> Iterator[str]:
    """One finding; what it means and how to mend it is told where its id comes up first."""
    mark = "✗" if item.severity is Severity.FATAL else "!"
    frame = item.frame
    assert frame is not None
    yield from _wrap(f"{mark} {clean(place(frame))}: {clean(item.title)}  [{item.rule}]", width, "  ")
    yield from _code(frame, width)
    for one in item.evidence:
        yield from _wrap(f"    {clean(one.text)}", width, "    ")
    if first:
        yield from _wrap(f"    Why: {clean(item.why)}", width, "    ")
        for fix in item.fixes:
            yield from _wrap(f"    Do: {clean(fix.do)}", width, "    ")


def place(frame: Frame) -> str:
    """``file:line:column``; in a notebook the cell before the line."""
    cell = f":{frame.function.partition(',')[0]}" if frame.file.endswith(".ipynb") else ""
    column = f":{frame.column}" if frame.column else ""
    return f"{frame.file}{cell}:{frame.line}{column}"


def _code(frame: Frame, width: int) -> Iterator[str]:
    code = frame.code[:_CODE_CELLS].replace("\t", " ")
    if not code.strip():
        return
    indent = len(code) - len(code.lstrip())
    number = f"{frame.line:>6} | "
    begin = max((frame.column or 1) - 1 - indent, 0)
    last = (frame.end_column or 1) - 1 - indent if frame.end_line == frame.line else len(code) - indent
    shown = clean(code[indent:])
    room = max(width - len(number), 20)
    cut = 0
    if begin > room - 10:
        cut = begin - room // 2
        shown = "…" + shown[cut + 1 :]
    if len(shown) > room:
        shown = shown[: room - 1] + "…"
    begin -= cut
    carets = max(1, min(last - cut, len(shown)) - begin)
    yield f"{number}{shown}"
    yield f"{'| ':>9}{' ' * begin}{'^' * carets}"


def _wrap(text: str, width: int, hang: str) -> list[str]:
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(), width, initial_indent=indent, subsequent_indent=hang,
        break_long_words=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip
