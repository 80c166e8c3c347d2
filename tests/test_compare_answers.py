"""The benchmarks' own logic: the table of answers, and the programs that fail on GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from case_files import put
from planted_modules import loaded

from torchdoctor.workbench.cases import read_all

ROOT = Path(__file__).resolve().parent.parent

SCRIPT = ROOT / "benchmarks" / "compare_answers.py"

LABELS = (
    "case\tcause\talso\n"
    "ag-1.txt\tcuda-assert-label-range\t\n"
    "ag-2.txt\tunrecognised\t\n"
    "neg-1.txt\tnone-of-the-above\t\n"
)

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/home/u/train.py", line 41, in <module>\n    step()\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels.tsv").write_text(LABELS)
    (tmp_path / "ag-1.txt").write_text(TRACEBACK + "IndexError: Target 12 is out of bounds.\n")
    (tmp_path / "ag-2.txt").write_text(TRACEBACK + "ZorkError: the frobnicator is out of phase\n")
    (tmp_path / "neg-1.txt").write_text("epoch 1 loss 0.5\nepoch 2 loss 0.4\n")
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60
    )


def test_one_tree_answers_alike(folder: Path) -> None:
    done = run(str(ROOT), str(ROOT), str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].split()[:6] == ["all", "3", "3", "3", "100.00", "%"]


def test_what_changed_is_told_by_field_and_by_label(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    run(str(ROOT), str(ROOT), str(folder), "--keep", str(kept))
    rows = [json.loads(line) for line in (kept / "old.jsonl").read_text().splitlines()]
    by_case = {row["case"]: row["answer"] for row in rows}
    by_case["ag-1.txt"].update(rule="none", outcome="no-failure", frame=None)
    by_case["neg-1.txt"].update(rule="cuda-assert-label-range", severity="fatal", outcome="diagnosed")
    by_case["ag-2.txt"]["evidence"] = ["9: another line"]
    (kept / "old.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    done = run(str(kept / "old.jsonl"), str(ROOT), str(folder))
    assert done.returncode == 1
    told = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line][1:]
    assert [(row[0], row[2], row[4]) for row in told] == [
        ("better", "ag-1.txt", "outcome"),
        ("better", "ag-1.txt", "rule"),
        ("better", "ag-1.txt", "frame"),
        ("same-rule", "ag-2.txt", "evidence"),
        ("better", "neg-1.txt", "outcome"),
        ("better", "neg-1.txt", "rule"),
    ]
    assert told[2][5:] == ["-", "/home/u/train.py:41 in <module>"]
    assert "1 no-failure -> cuda-assert-label-range" in done.stdout


def test_a_tree_that_the_interpreter_does_not_take_is_an_error(folder: Path, tmp_path: Path) -> None:
    done = run(str(ROOT), str(tmp_path), str(folder))
    assert done.returncode == 2
    assert f"{tmp_path}: this interpreter takes torchdoctor from" in done.stderr


def test_cases_are_compared_by_their_names(tmp_path: Path) -> None:
    text = TRACEBACK + "IndexError: Target 12 is out of bounds.\n"
    put(tmp_path, "cuda-assert-label-range/one", "cuda-assert-label-range", text, origin="captured")
    put(tmp_path, "unknown/one", "unrecognised", TRACEBACK + "ZorkError: out of phase\n")
    kept = tmp_path / "kept"
    done = run(str(ROOT), str(ROOT), str(tmp_path), "--keep", str(kept))
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in (kept / "new.jsonl").read_text().splitlines()]
    assert {row["case"]: (row["answer"]["rule"], row["answer"]["outcome"]) for row in rows} == {
        "cuda-assert-label-range/one": ("cuda-assert-label-range", "diagnosed"),
        "unknown/one": ("none", "unrecognised"),
    }


# The programs that fail on GPUs: each is sound, and the harness keeps only what bears its label
PROGRAMS = """\
#### fails-as-told
rule: loss-nan
kit: steps
says: nan
-- train.py
from lib.steps import step

step(3)
#### does-not-fail
rule: loss-nan
-- train.py
print("all is well")
#### fails-otherwise
rule: loss-nan
says: nan
-- train.py
raise KeyError("x")
#### never-ends
rule: dataloader-hang
limit: 1
-- train.py
import time
time.sleep(60)
#### ends-well
rule: none
-- train.py
print("WARNING: retry")
#### lacks-something
rule: no-kernel-image
needs: a_package_of_no_name
-- train.py
@@@@ steps
-- lib/steps.py
def step(number):
    raise ValueError(f"step {number}: loss is nan")  #!here
"""


@pytest.fixture
def harness() -> ModuleType:
    return loaded(ROOT / "benchmarks" / "real_failures.py")


def test_the_programs_are_sound(harness: ModuleType) -> None:
    assert harness.faults(harness.read_programs()) == []


def test_a_label_goes_with_what_bears_it(
    harness: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "some.txt").write_text(PROGRAMS, encoding="utf-8")
    monkeypatch.setattr(harness, "PROGRAMS", programs)
    out = tmp_path / "out"
    outcomes = harness.run_all(harness.read_programs(), out, 3, "2.11.0", "a card", 60)
    said = {one.case.name: one.left_out or one.unplanned for one in outcomes}
    assert said["fails-as-told"] == said["ends-well"] == ""
    assert said["does-not-fail"] == "exit code 0: it did not fail"
    assert said["fails-otherwise"] == "it does not say 'nan'"
    assert said["never-ends"] == "ran out of time"
    assert said["lacks-something"] == "no package a_package_of_no_name in this Python"
    assert len(read_all(str(out / "aside"))[0]) == 3
    cases, problems = read_all(str(out / "cases"))
    assert not problems
    found = {(one.of, one.rule, one.frame) for one in cases}
    assert found == {("gpu", "loss-nan", "steps.py:2"), ("clean", "none", None)}
    text = next(one for one in cases if one.of == "gpu").input().decode()
    assert "ValueError: step 3: loss is nan" in text
    assert "#!here" not in text
    assert str(tmp_path) not in text
    assert "/rf-" not in text


def test_a_wrong_key_is_told_with_its_case(
    harness: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.txt").write_text(
        "#### one\nrule: loss-nan\nruns: python\n-- train.py\n", encoding="utf-8"
    )
    monkeypatch.setattr(harness, "PROGRAMS", tmp_path)
    with pytest.raises(harness.ProgramError, match=r"some.txt: one: no such key: 'runs: python'"):
        harness.read_programs()


def test_results_can_be_written(harness: ModuleType) -> None:
    case = harness.Case("a", 1, {"rule": "none"})
    assert json.loads(json.dumps(harness.Outcome(case, 1.26, 0).as_data()))["seconds"] == 1.3
