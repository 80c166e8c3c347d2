"""NVML's own binding over a library that answers little, or fails: what the passive set makes of both."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from gate_machines import ROOT

SOURCE = Path(__file__).with_name("fake") / "nvml_stub.c"

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="no pynvml"),
    pytest.mark.skipif(sys.platform != "linux", reason="a shared library of Linux"),
]
# what the machine that runs this has of its own is no fault of these GPUs
QUIET = (
    "[expect]\ngpus = 2\n[thresholds]\nshm_fail_bytes = 0\ndisk_free_fail_bytes = 0\n"
    "clock_offset_fail_s = 1e9\n"
    '[checks.kernel-log]\non_unknown = "ignore"\n[checks.mounts]\nweight = "warn"\n'
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    argv = ["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
    subprocess.run(argv, check=True, timeout=60)
    return folder


def looked(library: Path, tmp_path: Path, stub: str) -> tuple[int, dict[str, Any], float]:
    policy, file = tmp_path / "site.toml", tmp_path / "verdict.json"
    policy.write_text(QUIET)
    env = {**os.environ, "LD_LIBRARY_PATH": str(library), "STUB": stub}
    env.pop("CUDA_VISIBLE_DEVICES", None)
    words = ["gate", "--tier", "passive", "--policy", str(policy), "-o", str(file)]
    begun = time.monotonic()
    argv = [sys.executable, "-m", "torchdoctor", *words]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(file.read_text()), time.monotonic() - begun


def tags(verdict: dict[str, Any]) -> set[str]:
    return {one["tag"] for one in verdict["findings"] if one["weight"] == "fail"}


def test_a_driver_that_knows_few_questions_is_neither_fit_by_silence_nor_broken(
    library: Path, tmp_path: Path
) -> None:
    code, verdict, _ = looked(library, tmp_path, "")
    assert [one["pci"] for one in verdict["gpus"]] == ["0008:01:00", "0008:02:00"]
    assert tags(verdict) == set()
    assert code == 12
    assert {one["check"] for one in verdict["not_checked"] if one["required"]} == {"ecc"}
    silent = {one["check"] for one in verdict["not_checked"]}
    assert {"ecc", "remap", "throttle", "recovery-action", "temperature", "leftovers"} <= silent


def test_a_narrow_link_of_one_gpu(library: Path, tmp_path: Path) -> None:
    code, verdict, _ = looked(library, tmp_path, "narrow")
    assert (code, tags(verdict)) == (10, {"pcie-width"})
    assert [one["pci"] for one in verdict["findings"] if one["weight"] == "fail"] == ["0008:02:00"]


def test_a_lost_gpu(library: Path, tmp_path: Path) -> None:
    code, verdict, _ = looked(library, tmp_path, "lost")
    assert (code, tags(verdict)) == (10, {"gpu-lost"})


def test_a_library_of_another_version_than_the_driver(library: Path, tmp_path: Path) -> None:
    code, verdict, _ = looked(library, tmp_path, "mismatch")
    assert code == 10
    assert "nvml" in tags(verdict)


@pytest.mark.parametrize("stub", ["hang", "crash"])
def test_a_library_that_hangs_or_crashes_is_no_verdict(stub: str, library: Path, tmp_path: Path) -> None:
    code, verdict, seconds = looked(library, tmp_path, stub)
    assert (code, tags(verdict)) == (12, set())
    assert "nvml" in {one["check"] for one in verdict["not_checked"] if one["required"]}
    assert seconds < 12
