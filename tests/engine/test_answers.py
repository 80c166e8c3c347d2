"""What is answered to a text: ``answers.cases`` holds texts that are no case of a rule, and their answers.

A case begins with ``=== what it shows``; behind ``---`` stands the answer: each diagnosis with its rank, its
frame, the lines of its evidence and what it leads to, or the suspect; then the runs.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from case_files import rewrite, table
from report_lines import shown

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text

PATH = Path(__file__).with_name("answers.cases")


def answer(lines: list[str], rules: RuleSet) -> list[str]:
    return list(shown(diagnose(read_text("\n".join(lines)), FactBook(), rules)))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in table(PATH)])
def test_answers(lines: list[str], expected: list[str], rules: RuleSet) -> None:
    assert answer(lines, rules) == expected


def test_a_run_that_is_cut_says_where(rules: RuleSet) -> None:
    steps = "".join(f"epoch 1 step {number} loss 2.{number}\n" for number in (10, 20, 30))
    cut = "No failure in what is here; the log ends at epoch 1 step 30 without an end"
    assert diagnose(read_text(steps), FactBook(), rules).notes == (cut,)
    assert diagnose(read_text(f"{steps}Training finished.\n"), FactBook(), rules).notes == ()


def test_a_run_that_only_began_says_that_nothing_tells_its_end(rules: RuleSet) -> None:
    began = "node1:4120:4377 [0] NCCL INFO comm 0x55d0 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"
    (note,) = diagnose(read_text(began), FactBook(), rules).notes
    assert note.startswith("Nothing here tells how it ended")
    assert diagnose(read_text("| NVIDIA-SMI 550.54 |\n"), FactBook(), rules).notes == ()


def test_each_run_is_judged_once(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nKeyError: 'lr'\n"
    transcript = read_text(f"$ python t.py\n{failed}" * 3)
    module = import_module("torchdoctor.engine.diagnose")
    judge, judged = module._judged, []
    monkeypatch.setattr(module, "_judged", lambda *given: judged.append(given) or judge(*given))
    assert len(diagnose(transcript, FactBook(), rules).runs) == len(judged) == 3


if __name__ == "__main__":  # records the answers as they are now, to be reviewed as a diff
    rewrite(PATH, lambda _, lines: answer(lines, load()))
