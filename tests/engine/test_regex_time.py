"""Regexes of rules have a time for one text, all together."""

from __future__ import annotations

import re

import pytest

from torchdoctor import intake
from torchdoctor.engine import FactBook, factbook
from torchdoctor.engine.factbook import TextFacts


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
