"""The passive set as it runs, over a stand-in for NVML: what its programs read, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gate_machines import ROOT

from torchdoctor.cli.main import main

FAKE = Path(__file__).with_name("fake")


def passive(tmp_path: Path, told: dict[str, Any], *words: str) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "verdict.json"
    env = {**os.environ, "PYTHONPATH": f"{FAKE}:{ROOT}", "FAKE_NVML": json.dumps(told)}
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        env.pop(name, None)
    argv = [sys.executable, "-m", "torchdoctor", "gate", "--tier", "passive", "-o", str(file), *words]
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (0, 10, 11, 12), done.stderr
    return done.returncode, json.loads(file.read_text(encoding="utf-8"))


def tags(verdict: dict[str, Any], weight: str = "fail") -> set[str]:
    return {one["tag"] for one in verdict["findings"] if one["weight"] == weight}


# what a machine that builds this may have of its own is no fault of the GPUs that are stood in for
QUIET = (
    "[thresholds]\nshm_fail_bytes = 0\nshm_warn_bytes = 0\ndisk_free_fail_bytes = 0\n"
    "clock_offset_fail_s = 1e9\n"
    '[checks.kernel-log]\non_unknown = "ignore"\n[checks.mounts]\nweight = "warn"\n'
)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "site.toml"
    path.write_text(QUIET, encoding="utf-8")
    return str(path)


def test_gpus_that_are_well(tmp_path: Path, policy: str) -> None:
    code, verdict = passive(tmp_path, {"gpus": 2}, "--gpus", "2", "--policy", policy)
    assert code == 0, verdict
    assert [one["pci"] for one in verdict["gpus"]] == ["0000:01:00", "0000:02:00"]
    assert verdict["seconds"]["passive"] < 3


def test_a_narrow_link_and_memory_errors(tmp_path: Path, policy: str) -> None:
    code, verdict = passive(tmp_path, {"gpus": 2, "width": [16, 8], "ecc": {"0": 3}}, "--policy", policy)
    assert code == 10
    assert tags(verdict) == {"pcie-width", "ecc"}


def test_one_gpu_too_few(tmp_path: Path, policy: str) -> None:
    code, verdict = passive(tmp_path, {"gpus": 1}, "--gpus", "2", "--policy", policy)
    assert (code, tags(verdict)) == (10, {"gpu-count"})


def test_a_lost_gpu(tmp_path: Path, policy: str) -> None:
    code, verdict = passive(tmp_path, {"gpus": 2, "lost": [1]}, "--policy", policy)
    assert (code, tags(verdict)) == (10, {"gpu-lost"})


def test_an_nvml_that_crashes_is_no_verdict(tmp_path: Path, policy: str) -> None:
    code, verdict = passive(tmp_path, {"crash": True}, "--gpus", "2", "--policy", policy)
    assert code == 12
    assert "nvml" in {one["check"] for one in verdict["not_checked"] if one["required"]}


def test_the_jobs_python_sees_the_jobs_gpus_alone(tmp_path: Path, policy: str) -> None:
    python = tmp_path / "python3"
    python.write_text(
        f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES" >> {tmp_path}/seen\nexit 1\n', encoding="utf-8"
    )
    python.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": f"{FAKE}:{ROOT}", "FAKE_NVML": '{"gpus": 4}', "SLURM_JOB_GPUS": "2"}
    env.pop("CUDA_VISIBLE_DEVICES", None)
    argv = [sys.executable, "-m", "torchdoctor", "gate", "--python", str(python), "--policy", policy]
    subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False)
    assert set((tmp_path / "seen").read_text().split()) == {"GPU-2"}


def test_a_recording_gives_the_same_verdict(tmp_path: Path, policy: str) -> None:
    saved = tmp_path / "saved.json"
    told = {"gpus": 2, "width": [16, 8]}
    code, verdict = passive(tmp_path, told, "--policy", policy, "--save", str(saved))
    again, replayed = passive(tmp_path, {}, "--policy", policy, "--facts", str(saved))
    assert (code, verdict["findings"]) == (again, replayed["findings"])


def test_a_policy_learned_from_a_node_holds_for_it(tmp_path: Path) -> None:
    from gate_machines import MACHINES

    for machine in MACHINES.values():
        argv = [sys.executable, "-m", "torchdoctor", "gate"]
        learn = [*argv, "policy", "learn", "--facts", str(machine)]
        done = subprocess.run(learn, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        path = tmp_path / "learned.toml"
        path.write_text(done.stdout, encoding="utf-8")
        for words in (
            ["policy", "check", str(path)],
            ["--tier", "passive", "--facts", str(machine), "--policy", str(path)],
        ):
            done = subprocess.run(
                [*argv, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stdout


def test_a_recording_of_a_real_h100_is_fit(capsys: pytest.CaptureFixture[str]) -> None:
    recording = Path(__file__).parent / "recorded" / "h100.json"
    words = ["--tier", "passive", "--gpus", "1", "--facts", str(recording), "--format", "json"]
    assert main(["gate", *words]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "fit"
    assert [one["check"] for one in verdict["findings"] if one["weight"] != "info"] == ["ulimits"]
