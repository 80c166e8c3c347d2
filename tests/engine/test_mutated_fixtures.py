"""Cases changed in every way: none makes the engine raise or hang, ten forms of one event say the same."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from case_files import catalogued
from pace import bounded

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.engine import FactBook, diagnose, factbook
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.model import Event, Outcome, Report

EACH = 60

# generous: a busy machine may be ten times slower than a quiet one
LIMIT_S = 3.0


def cut(data: bytes, other: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[start:end]


def double(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data * rng.choice((2, 5, 20))


def interleave(data: bytes, other: bytes, rng: random.Random) -> bytes:
    lines = [iter(data.split(b"\n")), iter(other.split(b"\n"))]
    mixed: list[bytes] = []
    while lines:
        chosen = rng.choice(lines)
        line = next(chosen, None)
        if line is None:
            lines.remove(chosen)
        else:
            mixed.append(line)
    return b"\n".join(mixed)


def flip(data: bytes, other: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(max(1, len(changed) // 50)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Two logs run into each other in the middle of a line."""
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


@pytest.mark.parametrize(
    "change", [cut, double, interleave, flip, splice], ids=lambda change: change.__name__
)
def test_changed_fixtures_are_explained_in_bounded_time(change, rules: RuleSet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(20261128)
    inputs = [case.input()[:60_000] or b"x" for case in catalogued().values()]
    path = tmp_path / "input.txt"
    for _ in range(EACH):
        data, other = (rng.choice(inputs) for _ in range(2))
        path.write_bytes(change(data, other, rng))
        report = bounded(LIMIT_S, lambda: diagnose(intake.read([str(path)]), FactBook(), rules))
        assert report.faults == ()
        assert isinstance(report.outcome, Outcome)


def test_a_hostile_text_of_all_literals_is_bounded(rules: RuleSet, tmp_path: Path) -> None:
    path = tmp_path / "input.txt"
    path.write_text(
        "\n".join(f"RuntimeError: {literal} {literal}" for literal in rules.literals()), encoding="utf-8"
    )
    report = bounded(10 * LIMIT_S, lambda: diagnose(intake.read([str(path)]), FactBook(), rules))
    assert report.faults == ()


# Regexes of rules have a time for one text, all together
def test_what_is_spent_is_told_and_not_spent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = TextFacts(intake.read_text("RuntimeError: x\n"), FactBook(None))
    pattern = re.compile("ab")
    assert facts.search(pattern, "--ab", 4) is not None
    assert facts.search(pattern, "--ab", 3) is None  # beyond its reach
    assert facts.notes == []
    clock = iter((0.0, 2 * factbook.REGEX_S))
    monkeypatch.setattr(factbook.time, "perf_counter", lambda: next(clock))
    assert facts.search(pattern, "--ab", 4) is not None
    assert facts.search(pattern, "--ab", 4) is None
    (note,) = facts.notes
    assert "was not searched" in note


# One event tells the same in ten forms, whatever a logger, a bar or a launcher puts around it


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
TEN_FORMS_EACH = 4  # cases of a rule that are looked at
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
        if case.rule in done or case.rule in ("none", "unrecognised") or tried[case.rule] > TEN_FORMS_EACH:
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
