"""What needs a GPU, on looks that are put together by hand: synchronising, and NCCL that is being set up."""

from __future__ import annotations

import pytest

from torchdoctor.hang import judge, procfs
from torchdoctor.hang.look import Seen
from torchdoctor.hang.procfs import Process, Task
from torchdoctor.hang.stacks import Dump, Stack
from torchdoctor.model import Frame

C10D = "/env/torch/distributed/distributed_c10d.py"


def frame(file: str, line: int, function: str, code: str = "") -> Frame:
    return Frame(file, line, function, code, "" if file.startswith("/home") else "torch")


def seen(
    pid: int, *frames: Frame, rank: int = 0, world: int = 2, tasks: tuple[str, ...] = (), cpu: float = 0.0
) -> Seen:
    environment = (("RANK", str(rank)), ("WORLD_SIZE", str(world)))
    threads = [Task(pid, "python", "R" if cpu else "S", "", "running" if cpu else "futex", -1, 0.0)]
    threads += [Task(pid + 1 + number, name, "S") for number, name in enumerate(tasks)]
    later = [
        Task(one.tid, one.name, one.state, "", one.call, -1, cpu if one.tid == pid else 0.0)
        for one in threads
    ]
    before = Process(pid, 1, 0, "python", "S", 5, ("python", "train.py"), tuple(threads), environment)
    after = Process(pid, 1, 0, "python", "S", 5, ("python", "train.py"), tuple(later), environment)
    dump = Dump((Stack(pid, "MainThread", tuple(frames)),))
    return Seen(before, after, dump, dump, 1.5)


@pytest.fixture(autouse=True)
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "maps", lambda pid, *names: True)
    monkeypatch.setattr(procfs, "open_files", lambda pid: {7: "/dev/nvidia0"})


STEP = frame("/home/me/train.py", 40, "step", "loss.item()")


def test_synchronise() -> None:
    one = seen(100, STEP, frame("/env/torch/cuda/__init__.py", 900, "synchronize"), cpu=1.5)
    found, _ = judge.judge([one], [100])
    assert [(wait.rule, wait.standing.value) for wait in found] == [("hang-cuda-sync", "confirmed")]


def test_item() -> None:
    found, _ = judge.judge([seen(100, STEP, cpu=1.5)], [100])
    assert [(wait.rule, wait.standing.value) for wait in found] == [("hang-cuda-sync", "possible")]


def test_work_on_the_processor_is_no_wait_for_the_gpu() -> None:
    work = frame("/home/me/train.py", 41, "step", "total += value")
    found, _ = judge.judge([seen(100, work, cpu=1.5)], [100])
    assert [wait.rule for wait in found] == ["hang-slow"]


def all_reduce(pid: int, rank: int, *tasks: str) -> Seen:
    return seen(
        pid, frame("/home/me/train.py", 50, "main",
            "dist.all_reduce(x)"), frame(C10D, 83, "wrapper"), frame(C10D, 3068, "all_reduce"),
        rank=rank, tasks=tasks,
    )  # fmt: skip


def test_nccl_is_being_set_up() -> None:
    found, _ = judge.judge(
        [all_reduce(100, 0, "pt_nccl_watchdg"), all_reduce(200, 1, "pt_nccl_watchdg")], [100, 200]
    )
    assert [wait.rule for wait in found] == ["hang-nccl-init"]
    assert "ranks 0, 1 stand in all_reduce" in found[0].says[0]


def test_nccl_that_is_ready_is_not() -> None:
    ready = ("pt_nccl_watchdg", "NCCL Service  0")
    found, unsaid = judge.judge([all_reduce(100, 0, *ready), all_reduce(200, 1, *ready)], [100, 200])
    assert "hang-nccl-init" not in [wait.rule for wait in found]
    assert len(unsaid) == 2


def test_one_rank_elsewhere_comes_before_nccl() -> None:
    away = seen(
        200, frame("/home/me/train.py", 60, "save", "fsync(file)"), rank=1, tasks=("pt_nccl_watchdg",)
    )
    found, _ = judge.judge([all_reduce(100, 0, "pt_nccl_watchdg"), away], [100, 200])
    assert [wait.rule for wait in found] == ["collective-rank-branch"]
    assert "rank 1 stands elsewhere" in found[0].says[0]
    assert found[0].pid == 200
    assert found[0].frame.function == "save"


@pytest.mark.parametrize(("ranks", "blamed"), [(2, 0), (3, 900)])
def test_of_ranks_in_different_calls_the_fewest_are_to_blame(ranks: int, blamed: int) -> None:
    other = seen(900, frame("/home/me/train.py", 70, "main"), frame(C10D, 2900, "broadcast"), rank=ranks - 1)
    waiting = [all_reduce(100 * (rank + 1), rank) for rank in range(ranks - 1)]
    found, _ = judge.judge([*waiting, other], [100])
    assert [(wait.rule, wait.pid) for wait in found] == [("collective-rank-branch", blamed)]


def test_a_rank_that_works_is_waited_for() -> None:
    """The others wait in a collective for one that computes: slow, not stuck."""
    away = seen(200, frame("/home/me/train.py", 60, "evaluate", "metric(x)"), rank=1)
    moved = Dump((Stack(200, "MainThread", (frame("/home/me/train.py", 61, "evaluate", "metric(y)"),)),))
    away = Seen(away.first, away.second, away.before, moved, 1.5)
    found, _ = judge.judge([all_reduce(100, 0), away], [100, 200])
    assert [wait.rule for wait in found] == ["hang-slow"]
    assert "rank 1 works, and rank 0 waits in all_reduce" in found[0].says[0]


SYNCHRONISES = (
    frame("/home/me/train.py", 51, "main", "torch.cuda.synchronize()"),
    frame("/env/torch/cuda/__init__.py", 900, "synchronize"),
)
READY = ("pt_nccl_watchdg", "NCCL Service  0")


def test_a_rank_that_never_reached_the_collective_of_others_that_wait_for_their_gpu() -> None:
    """As two H200 showed it: all_reduce of NCCL returns at once, and the wait is in synchronize."""
    late = seen(100, *SYNCHRONISES, tasks=READY, cpu=1.5)
    away = seen(200, frame("/home/me/train.py", 60, "wait_for_disk", "time.sleep(0.5)"), rank=1, tasks=READY)
    found, unsaid = judge.judge([late, away], [100, 200])
    assert [wait.rule for wait in found] == ["collective-rank-branch"]
    assert found[0].says[0] == "rank 0 waits for the GPU, and rank 1 stands elsewhere"
    assert found[0].frame.function == "wait_for_disk"
    assert unsaid == []


def test_a_rank_that_waits_for_its_gpu_while_another_has_ended() -> None:
    """As two H200 showed it: rank 0 had printed its result and gone, rank 1 stood in synchronize."""
    for world, answer in ((1, ("hang-cuda-sync", 200)), (2, ("collective-rank-branch", 0))):
        left = seen(200, *SYNCHRONISES, rank=world - 1, world=world, tasks=READY, cpu=1.5)
        found, _ = judge.judge([left], [200])
        assert [(wait.rule, wait.pid) for wait in found] == [answer]
    assert found[0].says[0] == "rank 1 of 2 waits for the GPU; not seen on this node: rank 0"


def test_a_rank_that_works_is_waited_for_on_the_gpu_too() -> None:
    late = seen(100, *SYNCHRONISES, tasks=READY, cpu=1.5)
    away = seen(200, frame("/home/me/train.py", 60, "evaluate", "metric(x)"), rank=1, tasks=READY)
    moved = Dump((Stack(200, "MainThread", (frame("/home/me/train.py", 61, "evaluate", "metric(y)"),)),))
    found, _ = judge.judge([late, Seen(away.first, away.second, away.before, moved, 1.5)], [100, 200])
    assert [wait.rule for wait in found] == ["hang-slow"]
    assert found[0].says[0] == "rank 1 works, and rank 0 waits for the GPU"


@pytest.mark.parametrize("tasks", [(), READY])
def test_ranks_that_all_wait_for_their_gpus_wait_for_the_gpu(tasks: tuple[str, ...]) -> None:
    both = [seen(pid, *SYNCHRONISES, rank=rank, tasks=tasks) for pid, rank in ((100, 0), (200, 1))]
    found, _ = judge.judge(both, [100, 200])
    assert {wait.rule for wait in found} == {"hang-cuda-sync"}


def test_without_a_communicator_a_kernel_is_what_does_not_end() -> None:
    late = seen(100, *SYNCHRONISES, cpu=1.5)
    away = seen(200, frame("/home/me/train.py", 60, "wait_for_disk", "time.sleep(0.5)"), rank=1)
    found, _ = judge.judge([late, away], [100, 200])
    assert [wait.rule for wait in found] == ["hang-cuda-sync"]


def test_a_network_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "file_of", lambda pid, number: "/data/shard-7.bin")
    monkeypatch.setattr(procfs, "mount_of", lambda path: ("/data", "nfs4"))
    one = seen(100, frame("/home/me/train.py", 9, "load", "file.read()"))
    stuck = (Task(100, "python", "D", "nfs_wait_bit_killable", "read", 5),)
    process = Process(100, 1, 0, "python", "D", 5, ("python", "train.py"), stuck, ())
    found, _ = judge.judge([Seen(process, process, one.before, one.after, 1.5)], [100])
    assert [wait.rule for wait in found] == ["hang-file-system"]
    assert "it waits for /data/shard-7.bin, on /data (nfs4)" in found[0].says
