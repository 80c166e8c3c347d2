"""Results of checks for people: the verdict first, then what failed with its proof and what to do.

Plain lines, no library: ``check`` is to start fast. Texts are data and are cleaned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from torchdoctor.model import CheckResult, Evidence, Report, Verdict
from torchdoctor.render.lines import INDENT, wrap, write

MARKS = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✗", Verdict.UNKNOWN: "?", Verdict.SKIP: "–"}
_UNTOLD_SHOWN = 6


def render_checks(
    report: Report,
    *,
    stream: TextIO,
    subject: str = "",
    width: int = 80,
    color: bool = False,
    verbose: bool = False,
) -> None:
    """Write the results. ``subject`` says what was examined. Raises OSError as the stream does."""
    lines = _lines(report, subject, max(width, 40), verbose)
    write(((MARKS[verdict] if verdict else "", text) for verdict, text in lines), stream, color)


def _lines(report: Report, subject: str, width: int, verbose: bool) -> Iterator[tuple[Verdict | None, str]]:
    bad = [one for one in report.checks if one.verdict in (Verdict.FAIL, Verdict.WARN)]
    good = [one for one in report.checks if one.verdict is Verdict.PASS]
    head, *more = wrap(summary(report), width - 2, indent="", hang=2)
    yield worst(report), head
    yield from ((None, line) for line in more)
    if subject:
        yield from ((None, line) for line in wrap(subject, width, hang=2, indent="  "))
    for group, members in grouped(bad):
        if group:
            yield None, ""
            yield None, f"{group}:"
        for one in members:
            yield None, ""
            head, *more = wrap(f"{one.title}  [{one.id}]", width - 2, indent="", hang=2)
            yield one.verdict, head
            yield from ((None, line) for line in more)
            yield from ((None, line) for line in _body(one, width, verbose))
    if report.not_checked:
        yield None, ""
        yield Verdict.UNKNOWN, "Could not determine:"
        together: dict[str, list[str]] = {}
        for item in report.not_checked:
            together.setdefault(item.reason.removeprefix("could not tell: "), []).append(item.id)
        shown = list(together.items())[: None if verbose else _UNTOLD_SHOWN]
        for reason, ids in shown:
            yield from ((None, line) for line in wrap(f"{', '.join(ids)}: {reason}", width, hang=2))
        if len(shown) < len(together):
            left = len(report.not_checked) - sum(len(ids) for _, ids in shown)
            yield None, f"{INDENT}and {left} more (-v shows them)"
    if report.notes:
        yield None, ""
        yield None, "Notes:"
        for note in report.notes:
            yield from ((None, line) for line in wrap(note, width, hang=2))
    for group, members in grouped(good) if verbose else ():
        yield None, ""
        yield None, f"Checked, nothing found: {group}" if group else "Checked, nothing found:"
        for one in members:
            for at, line in enumerate(wrap(f"{one.id}: {one.observed}", width - 2, indent="", hang=2)):
                yield (None, INDENT[:2] + line) if at else (one.verdict, line)
            yield from ((None, line) for line in wrap(f"looked for: {one.title}", width, hang=2))


def grouped(results: Iterable[CheckResult]) -> tuple[tuple[str, tuple[CheckResult, ...]], ...]:
    """Results under what they are about, in the order in which the groups come first."""
    found: dict[str, list[CheckResult]] = {}
    for one in results:
        found.setdefault((one.group or "").capitalize(), []).append(one)
    return tuple((group, tuple(members)) for group, members in found.items())


def worst(report: Report) -> Verdict:
    """The verdict whose mark stands before all: the worst one, unknown where nothing passed."""
    verdicts = {one.verdict for one in report.checks}
    bad = (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)
    untold = Verdict.UNKNOWN if report.not_checked and Verdict.PASS not in verdicts else Verdict.PASS
    return next((one for one in bad if one in verdicts), untold)


def summary(report: Report) -> str:
    """``1 problem, 12 checks passed``."""
    numbers = {
        verdict: sum(one.verdict is verdict for one in report.checks)
        for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS)
    }
    parts = [
        _count(numbers[Verdict.FAIL], "problem", "problems"),
        _count(numbers[Verdict.WARN], "warning", "warnings"),
        _count(numbers[Verdict.PASS], "check passed", "checks passed"),
        _count(len(report.not_checked), "could not be determined", "could not be determined"),
    ]
    return ", ".join(part for part in parts if part) or "nothing to check"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}" if number else ""


def _body(one: CheckResult, width: int, verbose: bool) -> Iterator[str]:
    # what was observed stands in the evidence with its source, unless there is none
    texts = [item.text + (f"  ({_place(item)})" if item.file else "") for item in one.evidence]
    for text in texts or ([one.observed] if one.observed else []):
        yield from wrap(text, width, hang=2)
    if one.reason:
        yield from wrap(one.reason if verbose else _first_sentences(one.reason), width)
    if one.action:
        yield from wrap(f"Do: {one.action}", width, hang=4)


def _first_sentences(text: str, limit: int = 240) -> str:
    """As many whole sentences as fit, at least one."""
    words = " ".join(text.split())
    end = words.find(". ")
    while 0 <= end < limit:
        following = words.find(". ", end + 1)
        if not 0 <= following < limit:
            return words[: end + 1]
        end = following
    return words


def _place(item: Evidence) -> str:
    return f"{item.file}:{item.line}" if item.line else str(item.file)
