"""Findings about files and live processes for people: the verdict, each finding with its proof, the rest.

Plain lines, no library. Texts are data and are cleaned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from torchdoctor.model import Diagnosis, Fact, Outcome, Report, Severity, Standing, counted
from torchdoctor.render import words
from torchdoctor.render.clean import clean
from torchdoctor.render.lines import INDENT, wrap, write
from torchdoctor.typed import prompt

_MARKS = {Severity.FATAL: "✗", Severity.WARNING: "!", Severity.INFO: "·"}
_SHOWN = 6
_FIXES = 3


def render_findings(
    report: Report,
    *,
    stream: TextIO,
    clear: str = "Nothing found",
    width: int = 80,
    color: bool = False,
    verbose: bool = False,
) -> None:
    """Write the report; ``clear`` is the verdict when nothing is wrong. Raises OSError as the stream does."""
    write(_lines(report, clear, max(width, 40), verbose), stream, color)


def _lines(report: Report, clear: str, width: int, verbose: bool) -> Iterator[tuple[str, str]]:
    yield from _marked(*_verdict(report, clear), width)
    for one in report.diagnoses:
        yield "", ""
        doubt = "" if one.standing is Standing.CONFIRMED else f", {one.standing.value}"
        yield from _marked(_MARKS[one.severity], f"{one.title}  [{one.rule}{doubt}]", width)
        yield from (("", line) for line in _body(one, width, verbose))
    if report.suspect is not None:
        yield "", ""
        yield from (("", line) for line in wrap(report.suspect.message, width, 2))
    if report.not_checked:
        yield "", ""
        yield "?", "Could not tell:"
        for item in report.not_checked[: None if verbose else _SHOWN]:
            yield from (("", line) for line in wrap(f"{item.id}: {item.reason}", width, 2))
    if report.notes:
        yield "", ""
        for note in report.notes:
            yield from (("", line) for line in wrap(note, width, 2, indent="  "))
    if verbose:
        yield from (("", line) for line in _tables(report.facts, width))


def _verdict(report: Report, clear: str) -> tuple[str, str]:
    fatal = sum(one.severity is Severity.FATAL for one in report.diagnoses)
    warnings = sum(one.severity is Severity.WARNING for one in report.diagnoses)
    if fatal or warnings:
        parts = [counted(fatal, "problem")] * bool(fatal) + [counted(warnings, "warning")] * bool(warnings)
        return ("✗" if fatal else "!"), ", ".join(parts)
    if report.outcome is Outcome.UNRECOGNISED:
        return "?", "Could not be judged"
    return "✓", clear


def _body(one: Diagnosis, width: int, verbose: bool) -> Iterator[str]:
    last = ""
    for item in one.evidence[: None if verbose else _SHOWN]:
        place = words.place(item, one.rank)
        yield from wrap(item.text + (f"  ({place})" if place and place != last else ""), width, 2)
        last = place
    if len(one.evidence) > _SHOWN and not verbose:
        yield f"{INDENT}and {len(one.evidence) - _SHOWN} more (-v shows them)"
    if one.frame is not None:
        yield from wrap(f"--> {words.frame(one.frame)}  {one.frame.code}".rstrip(), width, 4)
    for text in one.missing:
        yield from wrap(f"Could not be told: {text}", width, 2)
    for fix in one.fixes[: None if verbose else _FIXES]:
        risk = f" ({words.RISKS.get(fix.risk, fix.risk)})" if fix.risk != "safe" else ""
        yield from wrap(f"Do: {fix.do}{risk}", width, 4)
        if fix.run:
            yield f"{INDENT}{INDENT}{prompt(fix.run)}{clean(fix.run)}"
    if one.decide_note:
        yield from wrap(one.decide_note, width)
    if one.decide_with:
        yield f"{INDENT}{prompt(one.decide_with)}{clean(one.decide_with)}"
    if verbose and one.why:
        yield from wrap(" ".join(one.why.split()), width)


def _tables(facts: tuple[Fact, ...], width: int) -> Iterator[str]:
    """All facts; one that is a list of rows has a line for each."""
    for fact in facts:
        rows = (
            fact.value
            if isinstance(fact.value, tuple) and any(isinstance(one, tuple) for one in fact.value)
            else ()
        )
        yield ""
        head = f"{fact.name}  {fact.source}" if rows else f"{fact.name} = {fact.value}  {fact.source}"
        yield from wrap(head, width, 2, indent="  ")
        for row in rows:
            cells = row if isinstance(row, tuple) else (row,)
            yield from wrap("  ".join(str(cell) for cell in cells), width, 2)


def _marked(mark: str, text: str, width: int) -> Iterator[tuple[str, str]]:
    head, *more = list(wrap(text, width - 2, 2, indent="")) or [""]
    yield mark, head
    yield from (("", f"  {line}") for line in more)
