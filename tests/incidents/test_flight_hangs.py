"""Hangs told by flight records alone: who is waited for, what it does instead, and what cannot be told."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.model import Report, Standing

SITE = "/opt/venv/lib/python3.12/site-packages/torch/"


def call(
    seq: int,
    name: str = "all_reduce",
    size: int = 262144,
    at: str = "",
    state: str = "completed",
    group: tuple[str, str] = ("0", "default_pg"),
) -> dict[str, Any]:
    """An entry as ProcessGroupNCCL writes it; gradients are averaged by a thread without Python frames."""
    file, _, line = at.rpartition(":")
    frames = (
        [
            {"filename": SITE + "distributed/distributed_c10d.py", "line": 4811, "name": name},
            {"filename": SITE + "distributed/c10d_logger.py", "line": 83, "name": "wrapper"},
            {"filename": f"/home/u/proj/{file}", "line": int(line), "name": "main"},
        ]
        if at
        else []
    )
    return {
        "frames": frames, "record_id": seq - 1, "pg_id": int(group[0]), "process_group": group,
        "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq, "profiling_name": f"nccl:{name}",
        "time_created_ns": 1_795_823_000_000_000_000 + seq * 10**8, "input_sizes": [[size]],
        "input_dtypes": ["Float"], "output_sizes": [[size]], "output_dtypes": ["Float"], "state": state,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": False,
        "timeout_ms": 600000, "is_p2p": False,
    }  # fmt: skip


def record(calls: list[dict[str, Any]], groups: dict[str, list[int]]) -> dict[str, Any]:
    status = {}
    for name in groups:
        own = [one for one in calls if one["process_group"][0] == name]
        done = [one["collective_seq_id"] for one in own if one["state"] == "completed"]
        status[name] = {
            "last_enqueued_collective": max((one["collective_seq_id"] for one in own), default=-1),
            "last_started_collective": -1,
            "last_completed_collective": max(done, default=-1),
        }
    config = {
        name: {"name": name, "desc": "default_pg" if name == "0" else f"pg{name}", "ranks": str(ranks)}
        for name, ranks in groups.items()
    }
    return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": calls}


def told(
    folder: Path, ranks: dict[int, list[dict[str, Any]]], rules: RuleSet, form: str = "pickle", **groups: Any
) -> Report:
    members = groups or {"0": sorted(ranks)}
    for rank, calls in ranks.items():
        value = record(calls, {name: list(one) for name, one in members.items()})
        path = folder / f"nccl_trace_rank_{rank}"
        if form == "json":
            path.with_suffix(".json").write_text(json.dumps(value))
        else:
            path.write_bytes(pickle.dumps(value, 2))
    return explain([str(folder)], FactBook(), rules).report


def steps(first: int, last: int) -> list[dict[str, Any]]:
    return [call(seq) for seq in range(first, last + 1)]


def waiting(seq: int) -> list[dict[str, Any]]:
    return [*steps(1, seq - 1), call(seq, state="scheduled")]


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_a_rank_that_came_early_to_a_call_of_all_ranks_had_fewer_batches(
    form: str, tmp_path: Path, rules: RuleSet
) -> None:
    """All ranks met at the barrier of line 90 after the first epoch; one stands there again too early."""
    epoch = [*steps(1, 20), call(21, "all_reduce_barrier", 1, "train.py:90")]
    ranks = {rank: [*epoch, *steps(22, 39), call(40, state="scheduled")] for rank in range(4)}
    ranks[2] = [*epoch, *steps(22, 39), call(40, "all_reduce_barrier", 1, "train.py:90", "scheduled")]
    report = told(tmp_path, ranks, rules, form)
    answer, first = report.diagnoses[0], report.first_failure
    assert (answer.rule, answer.standing) == ("ddp-uneven-inputs", Standing.CONFIRMED)
    assert (first.rank, first.tie) == (2, ())
    assert (answer.frame.file, answer.frame.line) == ("/home/u/proj/train.py", 90)


def test_a_state_that_is_gathered_is_no_step_of_training(tmp_path: Path, rules: RuleSet) -> None:
    """As two H200 showed it: rank 0 gathers the whole state in its branch, rank 1 is at the barrier."""
    gathers = call(40, "all_gather_into_tensor_coalesced", 8192, "train.py:22", "scheduled")
    state = {
        "filename": SITE + "distributed/checkpoint/state_dict.py",
        "line": 1,
        "name": "get_model_state_dict",
    }
    gathers["frames"].insert(2, state)
    barrier = call(40, "all_reduce_barrier", 1, "train.py:25", "scheduled")
    report = told(tmp_path, {0: [*steps(1, 39), gathers], 1: [*steps(1, 39), barrier]}, rules)
    assert report.diagnoses[0].rule == "collective-rank-branch"
    assert report.first_failure.rank == 0


def test_a_call_in_the_middle_of_training_is_a_branch(tmp_path: Path, rules: RuleSet) -> None:
    """Rank 1 calls a broadcast of its own and goes on with its gradients."""
    ranks = {rank: waiting(40) for rank in range(4)}
    ranks[1] = [*steps(1, 39), call(40, "broadcast", 5, "train.py:71"), call(41, state="scheduled")]
    report = told(tmp_path, ranks, rules)
    answer, first = report.diagnoses[0], report.first_failure
    assert (answer.rule, answer.standing) == ("collective-rank-branch", Standing.CONFIRMED)
    assert (first.rank, first.tie) == (1, ())
    assert "broadcast at train.py:71" in first.decided_by


def test_a_barrier_that_no_record_explains_may_be_either(tmp_path: Path, rules: RuleSet) -> None:
    """Whether all ranks come to line 88, or rank 3 alone, is in no record: both are named, and why."""
    ranks = {rank: waiting(40) for rank in range(4)}
    ranks[3] = [*steps(1, 39), call(40, "all_reduce_barrier", 1, "train.py:88", "scheduled")]
    report = told(tmp_path, ranks, rules)
    assert {one.rule for one in report.diagnoses[:2]} == {"collective-rank-branch", "ddp-uneven-inputs"}
    assert {one.standing for one in report.diagnoses[:2]} == {Standing.POSSIBLE}
    missing = " ".join(text for one in report.diagnoses[:2] for text in one.missing)
    assert "all_reduce_barrier at train.py:88" in missing
    assert (report.first_failure.rank, report.first_failure.tie) == (3, ())


def test_a_rank_that_issues_no_more_calls_is_slow_or_done(tmp_path: Path, rules: RuleSet) -> None:
    ranks = {rank: waiting(40) for rank in range(8)}
    ranks[5] = steps(1, 39)
    report = told(tmp_path, ranks, rules)
    assert [one.rule for one in report.diagnoses[:2]] == ["dist-timeout-long-rank0-work", "ddp-uneven-inputs"]
    assert {one.standing for one in report.diagnoses[:2]} == {Standing.POSSIBLE}
    assert all(one.missing for one in report.diagnoses[:2])
    assert (report.first_failure.rank, report.first_failure.tie) == (5, ())
    assert "never called collective 40" in report.first_failure.decided_by


def test_where_the_late_rank_stands_is_read_from_its_own_dump(tmp_path: Path, rules: RuleSet) -> None:
    """As two H200 showed it: two threads of rank 1 wait for each other's lock, faulthandler printed both."""
    ranks = {rank: waiting(40) for rank in range(2)}
    ranks[1] = [*steps(1, 38), call(39, at="loop.py:22")]
    (tmp_path / "rank_1.log").write_text(
        "Timeout (0:00:12)!\nThread 0x00007fefdd8df6c0 (most recent call first):\n"
        '  File "/home/u/proj/train.py", line 13 in flush\n'
        '  File "/usr/lib/python3.12/threading.py", line 1030 in _bootstrap\n\n'
        "Thread 0x00007ff313bc5140 (most recent call first):\n"
        '  File "/home/u/proj/train.py", line 27 in <module>\n'
    )
    report = told(tmp_path, ranks, rules)
    assert report.first_failure.rank == 1
    assert report.diagnoses[0].frame.line == 27


def test_its_stack_beside_the_records_settles_it(tmp_path: Path, rules: RuleSet) -> None:
    ranks = {rank: waiting(40) for rank in range(4)}
    ranks[1] = steps(1, 39)
    (tmp_path / "stack_rank1.txt").write_text(
        "Process 4101: python train.py\nPython v3.11.9 (/usr/bin/python3.11)\n\n"
        'Thread 4101 (active): "MainThread"\n    tokenize (prepare.py:57)\n    main (train.py:31)\n'
        "    <module> (train.py:80)\n"
    )
    report = told(tmp_path, ranks, rules)
    answer = report.diagnoses[0]
    assert (answer.rule, answer.rank) == ("dist-timeout-long-rank0-work", 1)
    assert (answer.frame.file, answer.frame.line) == ("prepare.py", 57)


def test_a_rank_without_a_record_is_named(tmp_path: Path, rules: RuleSet) -> None:
    ranks = {rank: waiting(40) for rank in range(3)}
    report = told(tmp_path, ranks, rules, **{"0": range(4)})
    assert report.diagnoses[0].rule == "nccl-timeout"
    assert (report.first_failure.rank, report.first_failure.tie) == (3, ())
    assert "record is not there" in report.first_failure.decided_by


def test_waiting_is_followed_from_group_to_group(tmp_path: Path, rules: RuleSet) -> None:
    """Rank 0 waits for rank 1, which waits for rank 3 in another group; rank 3 is busy."""
    one, two = ("1", "tp"), ("2", "dp")
    ranks = {
        0: [call(9, group=one), call(10, group=one, state="scheduled")],
        1: [call(9, group=one), call(5, group=two), call(6, group=two, state="scheduled")],
        2: [call(7, group=("3", "tp"))],
        3: [call(7, group=("3", "tp")), call(5, group=two)],
    }
    report = told(tmp_path, ranks, rules, **{"1": [0, 1], "2": [1, 3], "3": [2, 3]})
    assert (report.first_failure.rank, report.first_failure.tie) == (3, ())
    assert report.diagnoses[0].rule == "dist-timeout-long-rank0-work"


def test_two_ranks_that_wait_for_each_other_are_a_circle(tmp_path: Path, rules: RuleSet) -> None:
    one, two = ("1", "tp"), ("2", "dp")
    ranks = {
        0: [call(4, group=two), call(9, group=one), call(10, group=one, state="scheduled")],
        1: [call(9, group=one), call(4, group=two), call(5, group=two, state="scheduled")],
    }
    report = told(tmp_path, ranks, rules, **{"1": [0, 1], "2": [0, 1]})
    assert report.diagnoses[0].rule == "collective-rank-branch"
    assert report.first_failure.tie == (0, 1)
    assert "wait for each other" in report.first_failure.decided_by


def test_a_call_that_has_not_begun_on_one_gpu(tmp_path: Path, rules: RuleSet) -> None:
    ranks = {rank: [*steps(1, 39), call(40, state="started")] for rank in range(4)}
    ranks[2] = waiting(40)
    report = told(tmp_path, ranks, rules)
    assert report.diagnoses[0].rule == "nccl-timeout"
    assert (report.first_failure.rank, report.first_failure.tie) == (2, ())


def test_all_in_the_same_call_is_no_fault_of_one(tmp_path: Path, rules: RuleSet) -> None:
    report = told(tmp_path, {rank: waiting(40) for rank in range(4)}, rules)
    assert [one.rule for one in report.diagnoses] == ["nccl-timeout"]
    assert len(report.first_failure.tie) == 4


def test_finished_records_are_no_failure(tmp_path: Path, rules: RuleSet) -> None:
    report = told(tmp_path, {rank: steps(1, 30) for rank in range(4)}, rules)
    assert report.diagnoses == ()
    assert report.first_failure is None


def test_the_ranks_of_a_large_group_are_read_whole(tmp_path: Path, rules: RuleSet) -> None:
    ranks = {rank: waiting(4) for rank in (0, 1, 1500)}
    ranks[1023] = steps(1, 3)
    report = told(tmp_path, ranks, rules, **{"0": range(2048)})
    assert (report.first_failure.rank, report.first_failure.tie) == (1023, ())
