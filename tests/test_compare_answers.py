"""The table that two checkouts' answers are compared in, with this checkout as both of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from case_files import put

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
