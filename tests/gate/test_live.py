"""The passive set as it runs: over a stand-in for NVML, and beside file systems that hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from gate_machines import ROOT, Altered
from printed import Printed

from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Blame

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


def test_a_recording_of_a_real_h100_is_fit(printed: Printed) -> None:
    recording = Path(__file__).parent / "recorded" / "h100.json"
    words = ["--tier", "passive", "--gpus", "1", "--facts", str(recording), "--format", "json"]
    verdict = json.loads(printed(["gate", *words]))
    assert verdict["verdict"] == "fit"
    assert [one["check"] for one in verdict["findings"] if one["weight"] != "info"] == ["ulimits"]


# File systems that hang: each is asked by a process of its own, and holds nobody up
# the program itself, with a statvfs that hangs, fails or takes its time for some places
PROGRAM = """
import os, runpy, sys, time
real = os.statvfs
def statvfs(place):
    if place == "/hung": time.sleep(60)
    if place == "/slow": time.sleep(0.3)
    if place == "/stale": raise OSError(116, "Stale file handle")
    return real("/")
os.statvfs = statvfs
lines = [f"36 35 98:0 / {place} rw - {kind} source rw" for place, kind in (
    ("/", "ext4"), ("/hung", "nfs4"), ("/slow", "nfs4"), ("/stale", "nfs4"), ("/proc", "ext4"))]
opened = open
def fake(path, *rest, **more):
    if path == "/proc/self/mountinfo":
        import io
        return io.StringIO("\\n".join(lines))
    return opened(path, *rest, **more)
import builtins
builtins.open = fake
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_what_hangs_is_named_and_the_others_are_told(tmp_path: Path) -> None:
    report = tmp_path / "report"
    program = ROOT / "torchdoctor" / "probes" / "child" / "mounts.py"
    begun = time.monotonic()
    argv = [sys.executable, "-c", PROGRAM, str(program), "1.0", str(report)]
    assert subprocess.run(argv, timeout=30, check=False).returncode == 0
    assert time.monotonic() - begun < 5
    told = {one["name"]: one["value"] for one in map(json.loads, report.read_text().splitlines())}
    assert told["mounts.hung"] == [["/hung", "nfs4", "rw,rw"]]
    answers = {row[0]: row[3] for row in told["mounts.answers"]}
    assert set(answers) == {"/", "/slow", "/stale"}
    assert answers["/stale"] == "Stale file handle"
    assert isinstance(answers["/slow"], list)
    it = Altered()
    for name, value in told.items():
        it.put(name, value)
    it.put("mounts.answers", [row for row in told["mounts.answers"] if row[0] == "/slow"])
    outcome = it.judge()
    assert (outcome.verdict, outcome.exit_code()) == (Verdict.INCONCLUSIVE, 12)
    (found,) = outcome.findings
    assert (found.tag, found.blame) == ("mount-hung", Blame.FABRIC)
    assert "/hung (nfs4): no answer within 1 s" in found.observed


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "fuse.sshfs", "weka"])
def test_a_file_server_that_is_down_drains_no_node(kind: str) -> None:
    it = Altered()
    it.put("mounts.hung", [["/home", kind, "rw"]])
    assert it.judge().verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("place", "kind", "verdict", "blame"),
    [
        ("/", "ext4", Verdict.UNFIT, Blame.NODE),
        ("/var", "xfs", Verdict.UNFIT, Blame.NODE),
        ("/scratch", "xfs", Verdict.UNFIT, Blame.NODE),  # the policy names it
        ("/data", "xfs", Verdict.FIT, Blame.NODE),  # filled on purpose
        ("/home", "nfs4", Verdict.FIT, Blame.FABRIC),  # of all nodes alike
    ],
)
def test_whose_disk_is_full(place: str, kind: str, verdict: Verdict, blame: Blame) -> None:
    it = Altered()
    it.policy = Policy("site.toml", {"mounts": ["/scratch", "/home"]})
    others = [one for one in ("/scratch", "/home") if one != place]
    answers = [[one, "nfs4", "rw", [10**13, 10**12, 10**7, 10**6, False]] for one in others]
    it.put("mounts.answers", [[place, kind, "rw", [10**13, 10**8, 10**7, 10**6, False]], *answers])
    outcome = it.judge()
    assert outcome.verdict is verdict
    (found,) = [one for one in outcome.findings if one.tag == "disk-full"]
    assert found.blame is blame
