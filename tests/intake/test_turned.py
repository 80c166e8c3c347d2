"""Texts whose lines stand newest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read, read_text

STACK = [
    "Traceback (most recent call last):",
    '  File "/home/user/app/train.py", line 12, in <module>',
    "    main()",
    '  File "/home/user/app/train.py", line 7, in main',
    "    loss.backward()",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "./start.sh: line 4: 31 Killed python train.py",
]
STAMPED = [f"ERROR 2026-02-01T10:00:0{n}.1{n}Z {line}" for n, line in enumerate(STACK)]


def test_a_traceback_that_stands_from_below_is_read_and_keeps_its_lines(
    rules: RuleSet, tmp_path: Path
) -> None:
    log = tmp_path / "viewer.txt"
    log.write_text("\n".join(reversed(STAMPED)) + "\n")
    for transcript in (read([str(log)]), read_text(log.read_text(), str(log))):
        report = diagnose(transcript, FactBook(), rules)
        found = report.diagnoses[0]
        assert found.frame is not None
        assert (found.frame.line, found.evidence[0].line) == (7, 2)
        assert any("newest first" in note for note in report.notes)


def test_entries_of_several_lines_keep_the_order_of_these() -> None:
    entries = [f"2026-02-01 10:00:{9 - n:02d} step {n}\n  the rest of {n}" for n in range(9)]
    transcript = read_text("a command\n" + "\n".join(entries))
    texts = "\n".join(event.text for event in transcript.events)
    assert texts.index("step 8") < texts.index("the rest of 8") < texts.index("step 0")


@pytest.mark.parametrize(
    "lines",
    [
        STAMPED,
        STAMPED + STAMPED,  # two files in one: the times fall once
        [f"2026-02-{9 - n:02d} 10:00:00 release\n text\n text\n text" for n in range(9)],  # a list of changes
    ],
)
def test_a_text_in_its_order_stays(lines: list[str]) -> None:
    assert not read_text("\n".join(lines)).orders
