"""Which rank and host file names tell, and which files are one incident."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.intake import read_all
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
        (["container-cuda10-old-driver.txt"], [None]),
        ([f"job_cuda{n}.log" for n in range(3)], [0, 1, 2]),
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


# Which files are one incident, and why
BOOM = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 9, in step\n    {}()\nproj.{}: no units\n'
)

ONE, TWO = BOOM.format("charge", "Spent"), BOOM.format("load", "Gone")

BOX = (
    "E0309 14:00:09.5 639 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) "
    "local_rank: 1 (pid: 4001) of binary: /usr/bin/python\n"
)

KILLED = "[ 4711.5] Out of memory: Killed process {} (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"

TABLE = "Package    Version\n---------- -------\ntorch      2.7.1\n"

STACK = 'Process 7: python t.py\nPython v3.11.9 (x)\n\nThread 7 (active): "MainThread"\n    main (t.py:31)\n'


def at(time: str, text: str) -> str:
    return f"2026-03-09 {time} INFO trainer: epoch 1 begins\n{text}"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"rank_0.log": ONE, "rank_1.log": TWO}, "they hold different ranks"),
        ({"a.log": f"[rank0]: x\n{ONE}", "b.log": f"[rank1]: x\n{TWO}"}, "they hold different ranks"),
        ({"slurm-81234.a.txt": ONE, "b.txt": f"SLURM_JOB_ID: 81234\n{TWO}"}, "they name the same job, 81234"),
        ({"a.log": f"[pid 83316] up\n{ONE}", "dmesg": KILLED.format(83316)}, "the same process, 83316"),
        ({"job.log": f"[rank0]: x\n[rank1]: x\n{ONE}", "rank_1.log": TWO}, "they hold different ranks"),
        ({"train.out": ONE, "train.err": TWO}, "they are two streams of one program"),
        ({"a.log": at("14:00:05", ONE), "b.log": at("14:00:05", TWO)}, "their times overlap"),
        ({"a.log": ONE, "agent.log": BOX}, "only one of them is the log of a run"),
        ({"a.txt": STACK, "b.txt": STACK}, "they are stacks that lie together"),
        ({"a.log": ONE, "pip.txt": TABLE}, "only one of them is the log of a run"),
    ],
)
def test_what_joins_files(
    files: dict[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    reading = read_all(list(files))
    assert len(reading.incidents) == 1
    (note,) = reading.notes
    assert note.startswith(f"{len(files)} files, taken as one incident because ")
    assert note.endswith(why)


@pytest.mark.parametrize(
    "files",
    [
        {"a.log": ONE, "b.log": TWO},
        {"x/rank_0.log": ONE, "y/rank_0.log": TWO},  # two jobs of one rank
        {"slurm-81234.out": at("14:00:05", ONE), "slurm-81235.out": at("14:00:05", TWO)},
        {"rank_0.log": at("14:00:05", ONE), "rank_1.log": at("14:00:05", TWO).replace("03-09", "03-12")},
        {"a.log": at("14:00:05", ONE), "b.log": at("15:00:05", TWO)},
        {"a.log": f"[pid 83316] up\n{ONE}", "b.log": f"[pid 83317] up\n{TWO}"},
    ],
)
def test_what_nothing_joins(files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    reading = read_all(list(files))
    assert [one.sources for one in reading.incidents] == [(name,) for name in files]
    assert all(event.id == number for one in reading.incidents for number, event in enumerate(one.events))
    assert reading.notes[0].startswith("2 files, taken as 2 incidents: ")


def test_two_jobs_of_the_same_ranks_are_two_incidents(tmp_path: Path) -> None:
    for job in ("first", "second"):
        (tmp_path / job).mkdir()
        for rank in range(3):
            (tmp_path / job / f"rank_{rank}.log").write_text(ONE, encoding="utf-8")
    reading = read_all([str(tmp_path)])
    assert [{source.split("/")[-2] for source in one.sources} for one in reading.incidents] == [
        {"first"}, {"second"},
    ]  # fmt: skip
