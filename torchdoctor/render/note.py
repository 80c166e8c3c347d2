"""A few lines under a traceback that people have just read: the cause, where it is, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.model import Severity
from torchdoctor.render import words
from torchdoctor.render.lines import INDENT, wrap
from torchdoctor.typed import prompt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Diagnosis, Report

_MARKS = {Severity.FATAL: "✗", Severity.WARNING: "!", Severity.INFO: "?"}


def note(report: Report, width: int = 100) -> Iterator[tuple[str, str]]:
    """(mark, text) lines for ``render.lines.write``; none for a report without a diagnosis.

    Of the evidence only what was read out of memory is shown: the rest is the traceback itself.
    """
    if not report.diagnoses:
        return
    first = report.diagnoses[0]
    head, *more = wrap(
        f"torchdoctor: {first.title}  [{first.rule}, {words.standing(first)}]", width - 2, indent="", hang=2
    )
    yield _MARKS[first.severity], head
    yield from (("", line) for line in (*more, *_body(first, width)))


def text(report: Report, width: int = 100) -> str:
    """The same as one text, in all characters that it has."""
    return "\n".join(f"{mark} {line}" if mark else line for mark, line in note(report, width))


def _body(item: Diagnosis, width: int) -> Iterator[str]:
    if item.frame is not None:
        yield from wrap(f"--> {words.frame(item.frame)}  {item.frame.code.strip()}".rstrip(), width, 4)
    for one in item.evidence:
        if one.fact and one.fact.startswith("memory."):
            yield from wrap(one.text, width, 4, indent=INDENT * 2)
    for fix in item.fixes:
        risk = f" ({words.RISKS.get(fix.risk, fix.risk)})" if fix.risk != "safe" else ""
        yield from wrap(f"Do: {' '.join(fix.do.split())}{risk}", width, 4)
        for line in (fix.run or "").splitlines():
            yield from wrap(f"{prompt(line)}{line}", width, 4, indent=INDENT * 2)
