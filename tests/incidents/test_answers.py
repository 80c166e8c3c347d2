"""Incidents of several files: ``answers.cases`` holds what the ranks left, and what is answered to it.

A file begins with ``@@ name``; behind ``---`` stands the answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from case_files import table
from report_lines import shown

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain

CASES = table(Path(__file__).with_name("answers.cases"))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_answers(lines: list[str], expected: list[str], tmp_path: Path, rules: RuleSet) -> None:
    for part in "\n".join(["", *lines]).split("\n@@ ")[1:]:
        name, _, text = part.partition("\n")
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    paths = sorted(map(str, tmp_path.iterdir()))
    assert list(shown(explain(paths, FactBook(), rules).report)) == expected
