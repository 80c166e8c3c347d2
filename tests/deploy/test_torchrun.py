"""The gate started by torchrun: one process of a node looks, the others go on, a verdict stops the job."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HEALTHY = ROOT / "tests" / "gate" / "machines" / "hgx-h100x8.json"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torchrun")


def torchrun(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "NODE_NAME": "worker-7"}
    gate = ["gate", "--tier", "passive", "--facts", str(HEALTHY), "-o", f"{folder}/", *options]
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "-m", "torchdoctor", *gate],
        capture_output=True, text=True, env=environ, timeout=120, cwd=ROOT,
    )  # fmt: skip


def test_four_processes_of_a_fit_node_write_one_verdict(tmp_path: Path) -> None:
    ran = torchrun(tmp_path)
    assert ran.returncode == 0, ran.stderr
    (verdict,) = tmp_path.iterdir()
    assert verdict.name == "worker-7.json"
    assert json.loads(verdict.read_text())["verdict"] == "fit"
    merged = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "gate", "merge", str(tmp_path), "--nodes", "worker-[7-8]"],
        capture_output=True, text=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert merged.returncode == 12  # worker-8 said nothing
    assert [line.split()[:2] for line in merged.stdout.splitlines()[1:3]] == [
        ["worker-8", "undetermined"],
        ["worker-7", "fit"],
    ]


def test_an_unfit_verdict_ends_the_launch(tmp_path: Path) -> None:
    ran = torchrun(tmp_path, "--gpus", "16")
    assert ran.returncode != 0
    (verdict,) = tmp_path.iterdir()
    assert json.loads(verdict.read_text())["exit_code"] in (10, 11)
    assert "exitcode" in ran.stderr
