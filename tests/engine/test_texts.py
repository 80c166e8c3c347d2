"""Texts that are no logs: sources, rules, pages. Possible at most, and seldom that."""

from __future__ import annotations

import random
import re
from pathlib import Path

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read
from torchdoctor.model import Severity, Standing

ROOT = Path(__file__).resolve().parents[2]
# a page that shows a program's output in a fence is what a pasted issue is
SHOWS_OUTPUT = re.compile(r"^```(?:(?!^```).)*^\w+Error: ", re.DOTALL | re.MULTILINE)
MANY = 60
MOST_ALARMS = 0.2


def _own_files() -> list[Path]:
    """Pages, programs, tests, scripts and rules of this repository: they are full of error messages."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*/*.md")]
    pages = [path for path in pages if not SHOWS_OUTPUT.search(path.read_text(encoding="utf-8"))]
    others = [*ROOT.glob("torchdoctor/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("rules/*/*.toml")]
    others += ROOT.glob("deploy/*/*.sh")
    chosen = random.Random(9).sample(sorted(others), MANY - min(len(pages), 20))
    return [*sorted(pages)[:20], *chosen]


def test_texts_that_are_no_logs(rules: RuleSet) -> None:
    alarms: dict[str, Standing] = {}
    for path in _own_files():
        found = diagnose(read([str(path)]), FactBook(), rules).diagnoses
        fatal = [item for item in found if item.severity is Severity.FATAL]
        if fatal:
            alarms[str(path.relative_to(ROOT))] = fatal[0].standing
    assert Standing.CONFIRMED not in alarms.values(), alarms
    assert len(alarms) <= MOST_ALARMS * MANY, alarms
