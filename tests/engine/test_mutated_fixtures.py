"""No input makes the engine raise or hang: cases changed in every way, and a time for regexes."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from case_files import catalogued
from pace import bounded

from torchdoctor import intake
from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.engine import FactBook, diagnose, factbook
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.model import Outcome

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
