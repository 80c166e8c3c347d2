"""An example for each rule: the lines that decided a labelled input."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from torchdoctor.catalog.remarks import Example
from torchdoctor.workbench.case import NONE, ORIGINS, UNRECOGNISED
from torchdoctor.workbench.golden import Answer

MAX_LINES = 3
MAX_LENGTH = 320
# rules for whatever message an exception has
READINGS = ("own-code-error", "interrupted")


def collect(found: Sequence[Answer]) -> dict[str, Example]:
    """For each rule the decisive lines of its first case, real ones before made ones, and the rules that
    its near misses belong to."""
    firsts: dict[str, Answer] = {}
    near: defaultdict[str, set[str]] = defaultdict(set)
    for answer in sorted(found, key=_preference):
        case = answer.case
        if case.near:
            near[case.of].update({case.rule} - {NONE, UNRECOGNISED})
        elif answer.top == case.of and _lines(answer):
            firsts.setdefault(case.of, answer)
    return {
        rule_id: Example(
            firsts[rule_id].case.id if rule_id in firsts else "",
            _lines(firsts[rule_id]) if rule_id in firsts else (),
            tuple(sorted(near[rule_id])),
        )
        for rule_id in sorted({*firsts, *near})
    }


def decisive(found: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """(rule, message) of each case whose rule a message decided; the readings of an exception have none."""
    for answer in found:
        if answer.report.diagnoses and answer.top == answer.case.rule and answer.top not in READINGS:
            first = next(iter(answer.report.diagnoses[0].evidence), None)
            if first is not None and first.line and not first.fact and not first.text.startswith('File "'):
                yield answer.top, first.text


def _preference(answer: Answer) -> tuple[int, str]:
    return ORIGINS.index(answer.case.origin), answer.case.id


def _lines(answer: Answer) -> tuple[str, ...]:
    """The quoted lines of the answer's evidence, in the order of the input; of lines alike the first."""
    lines: dict[str, tuple[int, str]] = {}
    for item in answer.report.diagnoses[0].evidence:
        text = " ".join(item.text.split())
        # of what a reading of the whole text found the line is shown, of other facts their value
        shown = not item.fact or not text.startswith(item.fact)
        if item.line and text and not item.against and shown:
            # what each rank prints differs in its numbers only
            lines.setdefault(re.sub(r"\d+", "", text), (item.line, text))
    return tuple(
        text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
        for _, text in sorted(list(lines.values())[:MAX_LINES])
    )
