"""Which rank, local rank and host a set of file names tells."""

from __future__ import annotations

import pytest

from torchdoctor.intake.file_names import Place, Ranks, places
from torchdoctor.intake.placing import spoken
from torchdoctor.intake.transcript import read_text

RUNS = ((1, "8a"), (2, "x7"))  # machines, and the random part of a run's folder


def told(names: list[str], speech: dict[int, int] | None = None, several: bool = False) -> list[Place]:
    said = speech or {}
    return places(names, [Ranks(said.get(index), several) for index in range(len(names))])


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        ([f"logs/rank_{n}.log" for n in range(4)], [0, 1, 2, 3]),
        ([f"slurm-812377_{n}.out" for n in range(8)], list(range(8))),
        ([f"run/{n}.err" for n in (3, 0, 2, 1)], [3, 0, 2, 1]),
        ([f"train-worker-{n}.log" for n in range(3)], [0, 1, 2]),
        (["job-master-0.log", "job-worker-0.log", "job-worker-1.log"], [0, 1, 2]),
        ([f"out/none_ab12/attempt_0/{n}/stderr.log" for n in range(4)], [0, 1, 2, 3]),
        ([f"node{h:02d}_rank{8 * h + n}.log" for h in range(2) for n in range(8)], list(range(16))),
        ([f"gpu-{h}-{n}.txt" for h in (17, 23) for n in range(4)], list(range(8))),
        ([f"h{h}/attempt_0/{n}/{s}.log" for h in (1, 2) for n in range(2) for s in ("stdout", "stderr")],
         [0, 0, 1, 1, 2, 2, 3, 3]),
        ([f"/tmp/n4x/gpu-00{h}/none_{w}/attempt_0/{n}/err.log" for h, w in RUNS for n in (0, 1)],
         [0, 1, 2, 3]),
        ([f"/tmp/tmpv0rt7xnl/h{h}/{w}/attempt_0/{n}/err.log" for h, w in RUNS for n in (0, 1)],
         [0, 1, 2, 3]),
        ([f"rank-branch-rank0/nccl_trace_rank_{n}" for n in (0, 1)], [0, 1]),
        (["rank-branch-rank1-detail/launcher.log"], [None]),
        (["gpu-001/agent.log", "gpu-002/agent.log"], [None, None]),
        ([f"node-{h}/local_rank_{n}.log" for h in range(2) for n in range(2)], [0, 1, 2, 3]),
        ([f"2026-11-27_12-00-0{n}_7781_rank{n}.log" for n in range(3)], [0, 1, 2]),
        (["rank13.log"], [13]),
        (["epoch12.log"], [None]),
        (["train_2024.log", "train_2025.log"], [None, None]),
        (["seed1.log", "seed7.log", "seed42.log"], [None, None, None]),
    ],
)  # fmt: skip
def test_ranks_of_names(names: list[str], ranks: list[int | None]) -> None:
    assert [place.rank for place in told(names)] == ranks


def test_the_text_decides_which_number_is_the_rank() -> None:
    names = [f"log_{a}_{b}.txt" for a, b in ((0, 3), (1, 2), (2, 1), (3, 0))]
    assert [place.rank for place in told(names, {0: 3, 2: 1})] == [3, 2, 1, 0]
    assert [place.rank for place in told(names, {0: 0, 2: 2})] == [0, 1, 2, 3]


def test_a_count_from_one_is_put_right_by_the_text() -> None:
    names = [f"worker{n}.log" for n in (0, 1, 2)]
    assert [place.rank for place in told(names, {0: 1, 1: 2})] == [1, 2, 3]


def test_files_with_several_ranks_are_machines() -> None:
    found = told([f"slurm-99-node{n:02d}.out" for n in (4, 5)], several=True)
    assert found == [Place(None, None, "node04"), Place(None, None, "node05")]


def test_hosts_of_names() -> None:
    found = told([f"gpu-node-{h:02d}_rank{2 * h + n}.log" for h in range(2) for n in range(2)])
    assert [place.host for place in found] == ["gpu-node-00"] * 2 + ["gpu-node-01"] * 2
    assert [place.rank for place in found] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("[rank3]: boom\n[rank3]: bang", 3),
        ("INFO rank=5 step=1\nINFO rank=5 step=2", 5),
        ("RANK=2 WORLD_SIZE=8", 2),
        ("received from rank 1\nglobal rank 4 ready", 4),
        ("local_rank: 1", None),
        ("waiting on rank 3", None),
    ],
)
def test_the_rank_that_speaks(text: str, rank: int | None) -> None:
    assert spoken(read_text(text).events).rank == rank


def test_several_speak() -> None:
    assert spoken(read_text("[rank3]: boom\n[rank1]: bang").events).several
