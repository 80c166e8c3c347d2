"""The shape of a message: what is left of a line when numbers, names and quotations are taken out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from torchdoctor.model import Report
from torchdoctor.workbench.case import TEXTS, Case
from torchdoctor.workbench.golden import Answer

MAX_SHAPE = 240

# in this order: what is quoted, then places, then names that people and programs make up, then numbers
_QUOTED = re.compile(r"'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"|`[^`\n]{0,400}`|“[^”\n]{0,400}”")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~+@%-]*[/\\][\w./\\~+@%<>=:-]+")
_NAME = re.compile(r"\b\w*[_.]\w[\w.]*|\b[a-z]+[A-Z]\w*|\b\w*\d\w*")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d[\d.,:eE+-]*")
_BRACKETED = re.compile(r"\[[^\]\[]*\]|\([^()]*\)|\{[^{}]*\}")
_SPACE = re.compile(r"\s+")


def shape(text: str) -> str:
    """A line without quotations, paths, made-up names and numbers."""
    text = _QUOTED.sub("'", text)
    text = _PATH.sub("/", text)
    text = _NUMBER.sub("0", text)
    text = _NAME.sub("_", text)
    for _ in range(2):  # lists of sizes, tuples within them
        text = _BRACKETED.sub("[]", text)
    return _SPACE.sub(" ", text).strip()[:MAX_SHAPE]


def decisive(case: Case, report: Report) -> str:
    """The shape of the line that decided the answer; of a text without one, the shapes of its lines.

    Two cases of a rule with one shape show the same thing.
    """
    suspect = report.suspect
    found = report.diagnoses[0].evidence if report.diagnoses else (suspect.evidence,) if suspect else ()
    for item in found:
        if item.line and item.text.strip() and not item.against:
            return shape(item.text)
    lines = case.input().decode("utf-8", "replace").splitlines()
    return "\n".join(dict.fromkeys(shape(line) for line in lines))[: 20 * MAX_SHAPE]


def key(case: Case, report: Report) -> tuple[object, ...]:
    """What a case shows: its file, what is expected of the answer, and the shape of the line that decides."""
    return case.of, case.rule, case.standing, case.rank, case.suspect, decisive(case, report)


def repeated(answers: Sequence[Answer], known: Collection[str]) -> dict[str, str]:
    """Each new case that is neither real nor shows what no other does: its id -> that of the other.

    New is a case that is not among ``known``. What people wrote has no decisive line and is left out.
    """
    shown: dict[tuple[object, ...], str] = {}
    judged = [answer for answer in answers if answer.case.of != TEXTS]

    def is_new(answer: Answer) -> bool:
        return answer.case.origin == "reconstructed" and answer.case.id not in known

    for answer in judged:
        if not is_new(answer):
            shown.setdefault(key(answer.case, answer.report), answer.case.id)
    found: dict[str, str] = {}
    for answer in filter(is_new, judged):
        other = shown.setdefault(key(answer.case, answer.report), answer.case.id)
        if other != answer.case.id:
            found[answer.case.id] = other
    return found
