"""Processes left over on the GPUs: found by job, launcher and parent; nothing else is ever ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from torchdoctor.cli.main import main
from torchdoctor.gate import cleanup
from torchdoctor.gate.cleanup import Standing, ended, exit_code, holders, lines
from torchdoctor.gate.facts import Facts, Known
from torchdoctor.model import Reason, State

SLEEP = "import time; time.sleep(77)"
# starts a process, writes its number, and leaves it behind
LEAVE = """
import subprocess, sys
quiet = {{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": {apart}}}
print(subprocess.Popen([sys.executable, "-c", {sleep!r}], **quiet).pid)
"""


@pytest.fixture
def begun() -> Iterator[list[int]]:
    found: list[int] = []
    yield found
    for pid in found:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def left(begun: list[int], apart: bool, **variables: str) -> int:
    """A process whose parent has ended; ``apart``: in a session of its own, as nohup and torchrun do."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVE.format(sleep=SLEEP, apart=apart)],
        env={**os.environ, **variables}, capture_output=True, text=True, check=True, start_new_session=True,
    )  # fmt: skip
    begun.append(int(done.stdout))
    return begun[-1]


def on_gpus(*pids: int) -> Facts:
    rows = [[gpu, pid, 3 << 30, "compute"] for gpu, pid in enumerate(pids)]
    return Facts({"gpu.processes": Known(State.KNOWN, rows)})


def reapers(pid: int) -> frozenset[str]:
    """What takes over here what has lost its parent."""
    parent = psutil.Process(pid).parent()
    return frozenset((parent.name(),)) if parent is not None else frozenset()


def standing(pid: int, runs: bool | None = None) -> tuple[Standing, str]:
    (one,) = holders(on_gpus(pid), lambda job: runs, reapers(pid))
    return one.standing, one.why


def test_what_lost_its_launcher_or_the_leader_of_its_group_is_left_over(begun: list[int]) -> None:
    assert standing(left(begun, True, LOCAL_RANK="1"))[0] is Standing.LEFT_OVER
    assert standing(left(begun, False))[0] is Standing.LEFT_OVER


def test_what_was_detached_on_purpose_is_not(begun: list[int]) -> None:
    assert standing(left(begun, True)) == (
        Standing.UNKNOWN, "it has no job and no parent: a service, or detached on purpose",
    )  # fmt: skip


def test_a_child_of_a_living_program_is_in_use(begun: list[int]) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as process:
        begun.append(process.pid)
        (one,) = holders(on_gpus(process.pid), lambda job: None)
        assert (one.standing, one.why.startswith(f"process {os.getpid()} (")) == (Standing.IN_USE, True)
        process.kill()


@pytest.mark.parametrize(
    ("runs", "expected"), [(True, Standing.IN_USE), (False, Standing.LEFT_OVER), (None, Standing.UNKNOWN)]
)
def test_the_job_decides_where_there_is_one(runs: bool | None, expected: Standing, begun: list[int]) -> None:
    found = standing(left(begun, False, SLURM_JOB_ID="4711"), runs)
    assert found[0] is expected
    assert "job 4711" in found[1]


def test_a_process_of_another_container_cannot_be_told() -> None:
    (one,) = holders(on_gpus(4_194_303), lambda job: None)
    assert (one.standing, one.user) == (Standing.UNKNOWN, "")


def test_only_what_is_left_over_is_ended(begun: list[int]) -> None:
    over, stays = left(begun, False), left(begun, True)
    found = holders(on_gpus(over, stays), lambda job: None, reapers(over))
    assert exit_code(found) == 1
    after = ended(found)
    assert {one.pid: one.standing for one in after} == {over: Standing.ENDED, stays: Standing.UNKNOWN}
    deadline = time.monotonic() + 5
    while psutil.pid_exists(over) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(over) or psutil.Process(over).status() == psutil.STATUS_ZOMBIE
    assert psutil.pid_exists(stays)
    assert exit_code([one for one in after if one.pid == over]) == 0
    assert [mark for mark, _ in lines(after)][:2].count("✓") == 1


def test_a_number_that_another_process_has_now_is_left_alone(begun: list[int]) -> None:
    over = left(begun, False)
    (one,) = holders(on_gpus(over), lambda job: None, reapers(over))
    assert one.begun_s is not None
    ended([cleanup.replace(one, begun_s=one.begun_s - 100)])
    assert psutil.Process(over).status() != psutil.STATUS_ZOMBIE


def test_what_slurm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue = tmp_path / "squeue"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert cleanup.slurm_runs("17") is None
    for script, runs in (
        ("echo RUNNING", True),
        ("exit 0", False),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", False),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", None),
    ):
        squeue.write_text(f"#!/bin/sh\n{script}\n")
        squeue.chmod(0o755)
        assert cleanup.slurm_runs("17") is runs, script
    assert cleanup.slurm_runs("17; x") is None


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cleanup, "look", lambda: on_gpus(4_194_303))
    assert main(["gate", "cleanup", "--format", "json"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["processes"]
    assert (one["pid"], one["gpus"], one["standing"]) == (4_194_303, [0], "not determined")
    monkeypatch.setattr(cleanup, "look", lambda: on_gpus())
    assert main(["gate", "cleanup", "--kill"]) == 0
    assert capsys.readouterr().out == "✓ No process is on the GPUs (exit code 0)\n"
    silent = Known(State.UNKNOWN, None, Reason.TIMED_OUT, "timed out")
    monkeypatch.setattr(cleanup, "look", lambda: Facts({"gpu.processes": silent}))
    assert main(["gate", "cleanup"]) == 2
    assert "which processes use the GPUs: timed out" in capsys.readouterr().err
