"""What live processes, each made to hang in a known way, are said to wait for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hang import programs
from hang.live import ranks, running

from torchdoctor import hang
from torchdoctor.model import Outcome, Report, Severity

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def text(report: Report) -> str:
    return "\n".join(item.text for one in report.diagnoses for item in one.evidence)


def rules(report: Report) -> list[str]:
    return [one.rule for one in report.diagnoses]


def settled(pids: list[int], seconds: float = 0.4) -> Report:
    time.sleep(seconds)
    return hang.examine(pids)


def test_it_waits_for_input() -> None:
    with running(programs.STDIN) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-stdin"]
    assert 'input("overwrite? ")' in text(report)
    assert report.diagnoses[0].frame.function == "ask"


def test_it_waits_for_input_of_a_terminal() -> None:
    controller, terminal = os.openpty()
    try:
        with running(programs.STDIN, stdin=terminal) as process:
            assert rules(settled([process.pid])) == ["hang-stdin"]
    finally:
        os.close(controller)
        os.close(terminal)


def test_it_stands_in_a_debugger() -> None:
    with running(programs.DEBUGGER) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-debugger"]
    assert report.diagnoses[0].frame.function == "train"


def test_two_threads_wait_for_each_other() -> None:
    with running(programs.LOCK_ORDER) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-lock-order"]
    assert report.diagnoses[0].standing.value == "confirmed"
    assert "holding first" in text(report)
    assert "holding second" in text(report)


def test_the_interpreters_lock_is_kept_in_native_code() -> None:
    with running(programs.GIL) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-gil"]
    assert "PyDLL" in text(report)


def test_uninterruptible_sleep() -> None:
    with running(programs.VFORK) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-file-system"]
    assert "child of vfork" in text(report)


def test_a_lock_of_a_build_that_nobody_holds(tmp_path: Path) -> None:
    with running(programs.STALE_LOCK, env={"TORCH_EXTENSIONS_DIR": str(tmp_path)}) as process:
        report = settled([process.pid], 1.0)
    assert rules(report) == ["extension-stale-lock"]
    assert f"{tmp_path}/mine/lock" in text(report)
    assert report.diagnoses[0].fixes[0].run == f"rm {tmp_path}/mine/lock"


def test_a_lock_of_a_build_that_goes_on(tmp_path: Path) -> None:
    compiler = tmp_path / "cc1plus"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", compiler)
    args = (str(tmp_path), str(compiler))
    with (
        running(programs.LOCK_OF_A_BUILD, *args, "build") as builder,
        running(programs.LOCK_OF_A_BUILD, *args, "wait") as waiter,
    ):
        report = settled([waiter.pid])
        own = hang.examine([builder.pid])
    assert rules(report) == ["hang-build-running"]
    assert f"held by process {builder.pid}" in text(report)
    assert report.outcome is Outcome.NO_FAILURE
    assert own.outcome is not Outcome.DIAGNOSED


def test_a_lock_of_the_system_that_another_process_holds(tmp_path: Path) -> None:
    """Of an extension it is named by its rule; of anything else the holder is told, and no rule."""
    cache = tmp_path / "torch_extensions"
    cache.mkdir()
    for folder, rule in ((cache, ["extension-stale-lock"]), (tmp_path, [])):
        with (
            running(programs.OS_LOCK, str(folder), "hold") as holder,
            running(programs.OS_LOCK, str(folder), "wait") as waiter,
        ):
            report = settled([waiter.pid])
        assert rules(report) == rule
        told = text(report) if rule else report.suspect.message  # type: ignore[union-attr]
        assert str(holder.pid) in told
        assert f"{folder}/lock" in told


def test_a_worker_that_reads_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data")
    with running(programs.LOADER_STUCK, str(tmp_path / "data")) as process:
        report = settled([process.pid], 1.0)
    assert rules(report)[0] == "dataloader-hang"
    assert "__getitem__" in report.diagnoses[0].evidence[0].text
    assert "sys.argv[1]" in report.diagnoses[0].frame.code


def test_a_worker_that_was_killed() -> None:
    with running(programs.LOADER_KILLED) as process:
        report = settled([process.pid])
    assert rules(report) == ["dataloader-hang"]
    assert (
        "is dead" in report.diagnoses[0].evidence[0].text
        or "none of its workers" in report.diagnoses[0].evidence[0].text
    )


def test_a_worker_that_was_stopped(tmp_path: Path) -> None:
    import signal

    os.mkfifo(tmp_path / "data")
    with running(programs.LOADER_STUCK, str(tmp_path / "data")) as process:
        workers = [
            int(pid) for pid in subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True).split()
        ]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        report = settled([process.pid])
    assert rules(report) == ["dataloader-hang"]
    assert "is stopped" in report.diagnoses[0].evidence[0].text


def test_a_child_forked_while_a_lock_was_held() -> None:
    with running(programs.FORK) as process:
        report = settled([process.pid])
    assert rules(report) == ["multiprocess-fork-hang"]
    assert "in child" in text(report)


def test_a_child_forked_after_openmp() -> None:
    with running(programs.FORK_OPENMP, env={"OMP_NUM_THREADS": "2"}) as process:
        report = settled([process.pid])
    assert rules(report) == ["multiprocess-fork-hang"]
    assert "in work" in text(report)


@pytest.mark.parametrize(
    ("world", "kind", "away"), [(2, "never", "0"), (4, "never", "0"), (4, "first", "1, 2, 3")]
)
def test_a_collective_under_a_test_of_the_rank(world: int, kind: str, away: str) -> None:
    with ranks(programs.RANKS, world, kind, wait_for=(1,) if kind == "first" else (0,)) as pids:
        report = settled(pids, 1.5)
    assert rules(report) == ["collective-rank-branch"]
    found = report.diagnoses[0]
    assert "all_reduce" in found.evidence[0].text
    assert f"rank{'s' if ',' in away else ''} {away} stand" in found.evidence[0].text


def test_ranks_in_different_collectives() -> None:
    with ranks(programs.RANKS, 2, "other") as pids:
        report = settled(pids, 2.0)
    assert rules(report)[0] == "collective-rank-branch"
    assert report.diagnoses[0].rank is None


def test_a_rank_that_never_came() -> None:
    with ranks(programs.RENDEZVOUS, 3, started=2, wait_for=(0, 1)) as pids:
        report = settled(pids, 1.5)
    assert rules(report) == ["dist-rendezvous-timeout"]
    assert "rank 2" in text(report)


def test_a_step_that_is_slow() -> None:
    with running(programs.SLOW) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-slow"]
    assert report.outcome is Outcome.NO_FAILURE
    assert report.diagnoses[0].severity is Severity.INFO


def test_a_service_that_idles() -> None:
    with running(programs.IDLE) as process:
        report = settled([process.pid])
    assert rules(report) == ["hang-idle"]
    assert report.outcome is Outcome.NO_FAILURE


def test_a_compilation() -> None:
    with running(programs.COMPILE) as process:
        for _ in range(5):  # how long torch imports before it compiles is the machine's affair
            report = settled([process.pid], 4.0)
            if rules(report) != ["hang-slow"]:
                break
    assert rules(report) == ["hang-compile-running"]


def test_a_kernel_without_an_end() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    with running(programs.CUDA) as process:
        report = settled([process.pid], 1.0)
    assert rules(report) == ["hang-cuda-sync"]


def test_a_rank_that_keeps_the_gpu_of_another_waiting() -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("no two GPUs here")
    with ranks(programs.RANKS_ON_GPUS, 2, wait_for=(1,)) as pids:
        report = settled(pids, 3.0)
    assert rules(report) == ["collective-rank-branch"]
    assert "rank 1 stands elsewhere" in text(report)
    assert report.diagnoses[0].rank == 1
    assert "wait_for_disk" in text(report)
