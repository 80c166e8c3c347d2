"""What an operator reads and does: steps, explanations, processes that are left over."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from gate_machines import MACHINES, Altered, xid
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.gate import checks_active, cleanup
from torchdoctor.gate.cleanup import Standing, ended, exit_code, holders, lines
from torchdoctor.gate.facts import Facts, Known, record
from torchdoctor.gate.finding import Action, Finding, Weight
from torchdoctor.gate.steps import _OF_ACTION, steps
from torchdoctor.gate.supervisor import Run, Wish
from torchdoctor.gate.text import render
from torchdoctor.model import Blame, Reason, State
from torchdoctor.probes.machine import Outcome

NODE = str(MACHINES["hgx-h100x8"])


def test_names_of_before_still_work_and_are_not_shown(tmp_path: Path, printed: Printed) -> None:
    file = tmp_path / "v.json"
    words = ["gate", "--tier", "passive"]
    assert main([*words, f"--replay={NODE}", "--verdict-file", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["verdict"] == "fit"
    assert "--replay" not in printed([*words, "--help"])


def test_a_limit_of_ones_own_only_shortens(printed: Printed) -> None:
    words = ["gate", "--tier", "passive", "--facts", NODE, "--format", "json", "--time-limit"]
    assert json.loads(printed([*words, "5"]))["limit_s"] == 5
    assert "--time-limit 11: tier passive ends after 10 s by itself" in printed.errors([*words, "11"], 2)


def test_a_machine_without_nvlink_has_nothing_undetermined_about_it() -> None:
    it = Altered("h100")
    assert it.known["gpu.nvlinks_active"].why == "no GPU answers this"
    assert "nvlink" not in {one.check for one in it.judge().untold}
    it.forget("gpu.nvlinks_active")
    assert "nvlink" in {one.check for one in it.judge().untold}


def test_each_action_has_steps_and_each_command_its_holes_filled() -> None:
    assert set(_OF_ACTION) == set(Action)
    for action in Action:
        one = Finding("x", "t", Weight.FAIL, Blame.NODE, action, "a;b", 3, "GPU-1", "0000:1b:00")
        runs = [step.run for step in steps(one, "gpu 7", "v.json")]
        assert runs[0] == "scontrol update NodeName='gpu 7' State=DRAIN Reason=torchdoctor:'a;b'"
        assert runs[-1] == "scontrol update NodeName='gpu 7' State=RESUME"
        assert not any("{" in run for run in runs)
        assert all(shlex.split(run) for run in runs if run)


def test_steps_of_others_faults_drain_nothing() -> None:
    for one in (
        Finding("caches", "t", Weight.FAIL, Blame.ENVIRONMENT, Action.CLEAN_UP),
        Finding("ecc", "t", Weight.WARN, Blame.NODE, Action.INSPECT),
    ):
        assert not [step for step in steps(one, "gpu7", "v.json") if "scontrol" in step.run]
    assert [step for step in steps(one, "gpu7") if "--id" in step.run] == []  # no GPU is known


def test_explain_says_what_to_do_next() -> None:
    it = Altered()
    it.log(xid(79))
    text = [line for _, line in render(it.judge(), 100, explain=True, file="/var/v.json")]
    at = next(number for number, line in enumerate(text) if "Boot it when its jobs have ended." in line)
    assert text[at + 1].strip() == "scontrol reboot ASAP host-1"
    assert "         torchdoctor gate verify /var/v.json" in text


def test_what_ran_when_the_limit_struck_is_said() -> None:
    it = Altered()
    it.active({"now": ["p2p@cuda:0", "nccl@cuda"]}, done=False, timed_out=True)
    (why,) = [one.reason for one in checks_active.judge(look_of(it)) if one.check == "active"]  # type: ignore[union-attr]
    assert why.endswith("while p2p@cuda:0, nccl@cuda ran")


def look_of(it: Altered) -> Any:
    from torchdoctor.gate import passive
    from torchdoctor.gate.facts import Facts

    return passive.look_at(Facts(it.known, it.ended), it.policy)


def test_progress_names_time_and_limit() -> None:
    said: list[str] = []
    Run(Wish("quick", limit_s=20.0), begun=0.0, time_s=0.0, show=said.append).tell("hbm@cuda:1")
    assert said[0].endswith("of at most 20 s  hbm@cuda:1")


def recorded(tmp_path: Path, *log: str, uuid: str = "") -> str:
    """A recording with these lines in its kernel log; ``uuid`` takes the place of GPU 1's."""
    ended = dict(Altered().ended)
    kernel = ended["gate-kernel-log"]
    added = [[5000.0, line] for line in log]
    lines = [
        {**line, "value": [*line["value"], *added]} if line.get("name") == "kernel.lines" else line
        for line in kernel.lines
    ]
    text = record({**ended, "gate-kernel-log": replace(kernel, lines=tuple(lines))})
    path = tmp_path / f"machine{len(list(tmp_path.iterdir()))}.json"
    path.write_text(text.replace("GPU-00000000-0000-0000-0000-000000000002", uuid) if uuid else text, "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("now", "uuid", "code", "state"),
    [
        ((), "", 0, "passes"),
        ((xid(79),), "", 10, "fails"),
        ((), "GPU-11111111-2222-3333-4444-555555555555", 12, "not the same GPU"),
        ((xid(79, pci="0000:52:00"),), "", 10, "passes"),  # another fails now
    ],
)
def test_verify_looks_at_what_failed_on_the_same_gpu(
    now: tuple[str, ...],
    uuid: str,
    code: int,
    state: str,
    tmp_path: Path,
    printed: Printed,
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = str(tmp_path / "v.json")
    words = ["gate", "--tier", "passive", "--facts", recorded(tmp_path, xid(79)), "-o", verdict]
    assert main(words) == 10
    capsys.readouterr()
    again = ["gate", "verify", verdict, "--facts", recorded(tmp_path, *now, uuid=uuid)]
    told = json.loads(printed([*again, "--format", "json"], code))
    assert [one["state"] for one in told["checks"]] == [state]
    assert (told["exit_code"], told["now"]["schema"]) == (code, "torchdoctor.gate/1")
    assert len(told["new"]) == (state == "passes" and code == 10)
    text = printed(again, code)
    assert text.startswith({"passes": "✓ ", "fails": "✗ "}.get(state, "? ") + f"xid {state}")
    assert ("(was: Xid 79: " in text) == (state == "passes")  # its title tells of the fault of then


def test_verify_of_what_cannot_be_looked_at_again(tmp_path: Path, printed: Printed) -> None:
    verdict, blind = str(tmp_path / "v.json"), tmp_path / "blind.json"
    assert main(["gate", "--tier", "passive", "--facts", NODE, "-o", verdict]) == 0
    assert "nothing failed in this verdict" in printed.errors(["gate", "verify", verdict, "--facts", NODE], 2)
    assert main(["gate", "--tier", "passive", "--facts", recorded(tmp_path, xid(79)), "-o", verdict]) == 10
    blind.write_text(record({"gate-node": Altered().ended["gate-node"]}), encoding="utf-8")
    assert main(["gate", "verify", verdict, "--facts", str(blind)]) == 12
    (tmp_path / "v.json").write_text('{"schema": "x"}')
    assert "is not a verdict of schema" in printed.errors(["gate", "verify", verdict], 2)


def test_who_holds_memory_is_named_and_no_recording_keeps_the_name() -> None:
    it = Altered()
    it.gpu("gpu.memory_used_bytes", 1, 40_000_000_000)
    it.put("gpu.processes", [[1, 4242, 40_000_000_000, "compute"]])
    it.put("gpu.owners", [[4242, "python", "mia", 7200, True]])
    (found,) = [one for one in it.judge().findings if one.check == "leftovers"]
    assert found.observed == "40.0 GB used by process 4242 (python of mia)"
    # little memory, and half of the GPU: whoever starts a job there gets the other half
    it.gpu("gpu.memory_used_bytes", 1, 1_100_000_000)
    it.gpu("gpu.utilization", 1, 100)
    (found,) = [one for one in it.judge().findings if one.check == "leftovers"]
    assert (found.weight, found.action) == (Weight.FAIL, Action.END_PROCESS)
    assert found.observed == "1.1 GB used by process 4242 (python of mia), 100 % busy"
    told = Outcome(
        exit_code=0, lines=({"name": "gpu.owners", "value": [[4242, "python", "mia", 7200, True]]},)
    )
    assert "mia" not in record({"gate-nvml": told})


# Processes left over on the GPUs: found by job, launcher and parent; nothing else is ever ended


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
    until = time.monotonic() + 10
    while not psutil.Process(begun[-1]).environ() and time.monotonic() < until:
        time.sleep(0.01)  # the kernel tells that a program was loaded before its variables can be read
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


def test_the_command(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr(cleanup, "look", lambda: on_gpus(4_194_303))
    (one,) = json.loads(printed(["gate", "cleanup", "--format", "json"], 1))["processes"]
    assert (one["pid"], one["gpus"], one["standing"]) == (4_194_303, [0], "not determined")
    monkeypatch.setattr(cleanup, "look", lambda: on_gpus())
    assert printed(["gate", "cleanup", "--kill"]) == "✓ No process is on the GPUs (exit code 0)\n"
    silent = Known(State.UNKNOWN, None, Reason.TIMED_OUT, "timed out")
    monkeypatch.setattr(cleanup, "look", lambda: Facts({"gpu.processes": silent}))
    assert "which processes use the GPUs: timed out" in printed.errors(["gate", "cleanup"], 2)
