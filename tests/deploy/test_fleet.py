"""The recipes for many machines: the function that engines call, and the array of Slurm jobs."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from case_files import case_text

from torchdoctor.fleet.batch import report_lines

ROOT = Path(__file__).resolve().parents[2]
RULE = "cuda-assert-label-range"


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    for number in range(5):
        text = case_text(f"{RULE}/h200x2-label-rank0") if number % 2 else "epoch 1\nTraining finished.\n"
        (tmp_path / f"job {number}.log").write_text(text)
    return [str(tmp_path / f"job {number}.log") for number in range(5)]


def outcomes(lines: list[str]) -> list[tuple[str, str]]:
    reports = [json.loads(line) for line in lines]
    assert all(report["schema"] == "torchdoctor.report/1" for report in reports)
    return [(report["source"][0], report["outcome"]) for report in reports]


def test_paths_and_contents_give_the_same_answers(logs: list[str]) -> None:
    lines = report_lines([*logs, "nowhere.log"])
    assert outcomes(lines)[1::4] == [(logs[1], "diagnosed"), ("nowhere.log", "unreadable")]
    contents = [Path(path).read_bytes() for path in logs]
    assert outcomes(report_lines(logs, contents)) == outcomes(lines[:5])
    with pytest.raises(ValueError, match="zip"):
        report_lines(logs, contents[:1])


def recipe(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "deploy" / "fleet" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_functions_of_ray_and_spark(logs: list[str]) -> None:
    expected = report_lines(logs)
    assert recipe("ray_data").explain({"path": logs}) == {"report": expected}
    assert list(recipe("spark").explain([{"path": logs[:2]}, {"path": logs[2:]}])) == [
        {"report": expected[:2]}, {"report": expected[2:]},
    ]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="needs bash")
def test_each_task_of_an_array_takes_its_share(logs: list[str], tmp_path: Path) -> None:
    (tmp_path / "logs.txt").write_text("".join(f"{path}\n" for path in [*logs, "nowhere.log"]))
    program = tmp_path / "torchdoctor"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchdoctor "$@"\n')
    program.chmod(0o755)
    found: list[str] = []
    for task in (3, 5):
        subprocess.run(
            [ROOT / "deploy" / "fleet" / "slurm_array.sh", "logs.txt", "."], cwd=tmp_path, check=True,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ, "PYTHONPATH": str(ROOT), "TORCHDOCTOR": str(program),
                "SLURM_CPUS_PER_TASK": "2",
                "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "3",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
        )  # fmt: skip
        found += (tmp_path / f"{(task - 3) // 2}.jsonl").read_text().splitlines()
    assert sorted(outcomes(found)) == sorted(outcomes(report_lines([*logs, "nowhere.log"])))
