"""Incidents of several files: ``answers.cases`` holds what the ranks left, and what is answered to it.

A file begins with ``@@ name``; behind ``---`` stands the answer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from case_files import rewrite, table
from report_lines import shown

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain

PATH = Path(__file__).with_name("answers.cases")


def answer(lines: list[str], folder: Path, rules: RuleSet) -> list[str]:
    for part in "\n".join(["", *lines]).split("\n@@ ")[1:]:
        name, _, text = part.partition("\n")
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return list(shown(explain(sorted(map(str, folder.iterdir())), FactBook(), rules).report))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in table(PATH)])
def test_answers(lines: list[str], expected: list[str], tmp_path: Path, rules: RuleSet) -> None:
    assert answer(lines, tmp_path, rules) == expected


if __name__ == "__main__":  # records the answers as they are now, to be reviewed as a diff
    rewrite(PATH, lambda _, lines: answer(lines, Path(tempfile.mkdtemp()), load()))
