"""One event tells the same in ten forms, whatever a logger, a bar or a launcher puts around it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from case_files import catalogued

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.model import Event, Outcome, Report

BAR = " 12%|█▏        | 118/1000 [00:31<03:52,  3.80it/s]"
FORMS: dict[str, Callable[[str], str]] = {
    "bare": lambda text: text,
    "behind a label": lambda text: f"Error: {text}",
    "behind words": lambda text: f"Error while running the job: {text}",
    "logging": lambda text: f"2026-03-04 10:11:12,345 - trainer - ERROR - {text}",
    "glog": lambda text: f"E0304 10:11:12.345678  4711 trainer.cc:88] {text}",
    "uvicorn": lambda text: f"ERROR:    {text}",
    "behind a bar": lambda text: f"{BAR}{text}",
    "indented": lambda text: "\n".join(f"    {line}" for line in text.split("\n")),
    "json": lambda text: json.dumps({"time": "2026-03-04T10:11:12Z", "level": "error", "message": text}),
    "before srun": lambda text: f"{text}\nsrun: error: node7: task 3: Exited with exit code 1",
}
rules = cache(load)
EACH = 4  # cases of a rule that are looked at
MARKS = re.compile(r"NCCL WARN|Xid \(|\[Errno \d|ssertion .{1,200} failed", re.DOTALL)


def answer(text: str) -> Report:
    return diagnose(intake.read_text(text), FactBook(), rules())


def rule_of(report: Report) -> str:
    return report.diagnoses[0].rule if report.diagnoses else report.outcome.value


def deciding(text: str) -> Event | None:
    """The event that the first evidence of the answer stands in."""
    transcript = intake.read_text(text)
    found = diagnose(transcript, FactBook(), rules()).diagnoses
    line = found[0].evidence[0].line if found and found[0].evidence else None
    return next((one for one in transcript.events if line and one.line <= line <= one.end_line), None)


def events() -> Iterator[tuple[str, str]]:
    """(rule, event), one for each rule that one exception, assertion, NCCL's or the driver's line decides."""
    done: set[str] = set()
    tried: Counter[str] = Counter()
    for case in catalogued().values():
        tried[case.rule] += 1
        if case.rule in done or case.rule in ("none", "unrecognised") or tried[case.rule] > EACH:
            continue
        data = case.input()
        event = deciding(data.decode("utf-8", "replace")) if len(data) < 6_000 else None
        if event is None or event.quoted or not (event.type or MARKS.search(event.text[:400])):
            continue
        text = f"{event.type}: {event.text}" if event.type else event.text
        if rule_of(answer(text)) == case.rule:
            done.add(case.rule)
            yield case.rule, text


@pytest.fixture(scope="module")
def decided() -> list[tuple[str, str]]:
    found = list(events())
    assert len(found) >= 150
    return found


@pytest.mark.parametrize("form", FORMS)
def test_an_event_is_known_in_every_form(form: str, decided: list[tuple[str, str]]) -> None:
    reports = [(rule, answer(FORMS[form](text))) for rule, text in decided]
    assert [rule for rule, report in reports if report.outcome is Outcome.NO_FAILURE] == []
    others = [(rule, rule_of(report)) for rule, report in reports if rule_of(report) != rule]
    assert len(others) <= 0.03 * len(decided), others
