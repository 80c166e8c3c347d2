"""Which files are one incident, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.intake import read_all

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
