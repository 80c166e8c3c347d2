"""Match blocks that are asked of the whole text: when they are, how they stand, what they point at."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.readings import MAX_EVENTS
from torchdoctor.extract.readings import threads
from torchdoctor.extract.readings.passage import Passage
from torchdoctor.intake import read
from torchdoctor.model import Diagnosis, Outcome, Report, Role, Severity, Standing

RULES = load()

QUESTION = """Why is the CPU part of my code slower with torchrun than with python?

Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid overload

augment: 412.0 s   (python alone: 38.2 s)
"""
FAILURE = """Traceback (most recent call last):
  File "train.py", line 4, in <module>
    y = net(x)
ZeroDivisionError: division by zero
"""
MESSAGE = "RuntimeError: CUDA error: device-side assert triggered\n"


def report(tmp_path: Path, text: str) -> Report:
    file = tmp_path / "question.txt"
    file.write_text(text, encoding="utf-8")
    return diagnose(read([str(file)]), FactBook(), RULES)


def answer(tmp_path: Path, text: str) -> Diagnosis:
    found = report(tmp_path, text)
    assert found.outcome is Outcome.DIAGNOSED
    return found.diagnoses[0]


def test_a_remark_is_the_cause_where_its_effect_is_shown(tmp_path: Path) -> None:
    first = answer(tmp_path, QUESTION)
    assert (first.rule, first.role, first.severity) == ("omp-threads-one", Role.CAUSE, Severity.INFO)
    assert first.standing is Standing.POSSIBLE
    assert first.reasons[0].startswith("nothing failed; figures, settings or code")


def test_without_the_effect_it_stays_a_remark(tmp_path: Path) -> None:
    found = report(tmp_path, QUESTION.replace("38.2", "401.0"))
    assert found.outcome is Outcome.NO_FAILURE
    assert any("omp-threads-one" in note for note in found.notes)


def test_the_evidence_quotes_the_lines_of_the_facts(tmp_path: Path) -> None:
    evidence = answer(tmp_path, QUESTION).evidence
    assert [(item.line, item.fact) for item in evidence[:2]] == [(5, "threads.slower"), (3, "threads.one")]
    assert evidence[0].text == "augment: 412.0 s   (python alone: 38.2 s)"


@pytest.mark.parametrize("failure", [FAILURE, MESSAGE])
def test_nothing_is_read_between_the_lines_of_a_failure(tmp_path: Path, failure: str) -> None:
    assert "omp-threads-one" not in [item.rule for item in report(tmp_path, QUESTION + failure).diagnoses]


def test_nothing_is_read_out_of_a_long_log(tmp_path: Path) -> None:
    filler = "".join(f"epoch {number} loss 0.{number}\n" for number in range(MAX_EVENTS))
    assert report(tmp_path, QUESTION + filler).outcome is Outcome.NO_FAILURE


def test_quoted_code_takes_part(tmp_path: Path) -> None:
    text = """Why does it still use all cards?

```python
import torch, os
print(torch.cuda.device_count())
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
print(torch.cuda.device_count())
```

4
4
"""
    first = answer(tmp_path, text)
    assert first.rule == "cuda-visible-set-late"
    assert first.fixes[0].do.startswith("print(torch.cuda.device_count()) comes before CUDA_VISIBLE_DEVICES")


def test_a_good_ending_does_not_hide_what_is_shown(tmp_path: Path) -> None:
    first = answer(tmp_path, QUESTION + "Training finished successfully.\nepoch 10 done\n")
    assert first.rule == "omp-threads-one"


def test_what_people_say_of_an_ending_is_no_failure(tmp_path: Path) -> None:
    assert answer(tmp_path, QUESTION + "\nI killed it after an hour.\n").rule == "omp-threads-one"


def test_a_fault_of_one_reading_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(passage: Passage) -> None:
        raise ValueError(f"{len(passage.lines)} lines")

    monkeypatch.setattr(threads, "read", broken)
    text = QUESTION + "\n>>> loss\ntensor(nan)\n"
    found = report(tmp_path, text)
    assert [item.rule for item in found.diagnoses] == ["loss-nan"]
    assert any(fault.startswith("reading threads: ValueError") for fault in found.faults)
