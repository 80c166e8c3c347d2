"""The same message in texts of many forms: talked about, and reported by somebody whom it befalls."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake.transcript import read_text

TEXTS = Path(__file__).with_name("spoken.txt")


def texts() -> list[tuple[str, str, str]]:
    """(name, the rule or "none", text) of each."""
    parts = re.split(r"(?m)^=== (\S+) (\S+)\n", TEXTS.read_text(encoding="utf-8"))[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


@pytest.mark.parametrize(
    ("name", "rule", "text"), texts(), ids=lambda value: value if " " not in value else ""
)
def test_a_report_is_told_from_talk(name: str, rule: str, text: str) -> None:
    diagnoses = diagnose(read_text(text), FactBook(), load()).diagnoses
    assert (diagnoses[0].rule if diagnoses else "none") == rule


def test_they_come_in_pairs() -> None:
    pairs = Counter(name for name, _, _ in texts() if not name.startswith("met-"))
    assert len(pairs) >= 45
    assert set(pairs.values()) == {2}
