"""The generated suite in small, and single incidents whose answer turns on one piece of evidence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from incidents import causes
from incidents.suite import build, rank_files, score
from incidents.world import World

from torchdoctor.catalog import RuleSet, rules_directory
from torchdoctor.catalog.loader import read_groups
from torchdoctor.engine import FactBook
from torchdoctor.engine.echo import PEER_CAUSES
from torchdoctor.engine.incident import explain
from torchdoctor.model import Outcome, Part, Report, Role

FLIGHT = Path(__file__).resolve().parent / "flight"


def report_of(folder: Path, files: dict[str, str], rules: RuleSet) -> Report:
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return explain(paths, FactBook(), rules).report


def test_the_suite_is_answered(tmp_path: Path) -> None:
    """Two rounds over all kinds; benchmarks/incidents.py makes as many as are wanted."""
    labels = build(tmp_path, 36, seed=4)
    found = score(labels)
    assert found.wrong == []
    assert len({label.kind for label in labels}) == 18
    assert len({label.layout for label in labels}) == 5


def test_incidents_of_one_cause_in_four_layouts(tmp_path: Path) -> None:
    found = causes.score(causes.build(tmp_path, 32, seed=5))
    assert found.wrong == []
    assert (found.decidable, found.tied) == (28, 4)


def test_a_rank_that_came_late_is_in_no_other_branch(tmp_path: Path, rules: RuleSet) -> None:
    world = World("late", 3, 8, 4)
    report = explain(
        rank_files(world.incident("late"), tmp_path, world, random.Random(1)), FactBook(), rules
    ).report
    assert report.diagnoses[0].rule == "nccl-timeout"
    assert report.first_failure.decided_by == "it came to the collective when the others had given up"


def test_the_suite_can_be_answered_wrongly(tmp_path: Path) -> None:
    (label, *_) = build(tmp_path, 1)
    assert label.rank is not None
    assert label.judged(label.rank, [])
    assert not label.judged(label.rank + 1, [])
    assert not label.judged(label.rank, [label.rank, label.rank + 1])
    assert not label.judged(None, [])


def test_causes_that_also_answer_a_peers_death_are_those_of_the_group(rules: RuleSet) -> None:
    group = read_groups(rules_directory(), [])["peer-death"]
    assert {name for name in group if rules.role(name) is Role.CAUSE} == PEER_CAUSES


OWN = 'Traceback (most recent call last):\n  File "/w/train.py", line 9, in step\nproj.Spent: no units left\n'
CLOSED = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 5, in step\n    dist.all_reduce(x)\n'
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer "
    "[10.2.0.17]:41822\n"
)


def test_a_failure_no_rule_knows_is_named_with_its_echoes(tmp_path: Path, rules: RuleSet) -> None:
    files = {f"rank_{rank}.log": CLOSED for rank in range(4)} | {"rank_2.log": OWN}
    report = report_of(tmp_path, files, rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert (report.suspect.type, report.suspect.rank, report.suspect.frame.line) == ("proj.Spent", 2, 9)
    assert [(moment.rank, moment.role) for moment in report.timeline] == [
        (2, Part.FIRST), (0, Part.ECHO), (1, Part.ECHO), (3, Part.ECHO),
    ]  # fmt: skip
    assert report.timeline[0].text == "proj.Spent: no units left"


def stamped(*lines: tuple[str, str]) -> str:
    return "".join(f"2026-03-09 14:00:{clock} INFO trainer: {text}\n" for clock, text in lines)


def watchdog(rank: int, seq: int, op: str, numel: int, last: int | None = None) -> str:
    last = seq if last is None else last
    return (
        f"[rank{rank}]:[E0309 14:10:00.000{rank} ProcessGroupNCCL.cpp:689] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, "
        f"NumelOut={numel}, Timeout(ms)=600000) ran for 600089 milliseconds before timing out.\n"
        f"[rank{rank}]:[E0309 14:10:00.000{rank} ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) "
        f"Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: "
        f"last enqueued work: {last}, last completed work: {seq - 1}\n"
    )


def test_flight_records_of_a_rank_branch(rules: RuleSet) -> None:
    """Captured with two GPUs: rank 0 averages a number of its own while rank 1 goes on with the next step."""
    report = explain([str(FLIGHT / "rank_0"), str(FLIGHT / "rank_1")], FactBook(), rules).report
    assert report.diagnoses[0].rule == "collective-rank-branch"
    assert (report.first_failure.rank, report.first_failure.tie) == (0, ())
    assert {item.rank for item in report.diagnoses[0].evidence} == {0, 1}


FAILED = """Traceback (most recent call last):
  File "fit.py", line 3, in <module>
    f()
IndexError: Target 9 is out of bounds.
"""
LAUNCHER = (
    "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 0 (pid: 88119) "
    "of binary: /usr/bin/python\n"
)


@pytest.mark.parametrize(
    ("text", "ranks", "by"),
    [
        ("[rank 3] waiting\n[rank 1] waiting\n" + FAILED, (0, 1, 2, 3), "these report no other one's"),
        (FAILED + LAUNCHER, (), "the only rank that the text names"),
    ],
)
def test_a_failure_without_a_rank_is_given_to_no_rank_by_default(
    text: str, ranks: tuple[int, ...], by: str, tmp_path: Path, rules: RuleSet
) -> None:
    first = report_of(tmp_path, {"out.log": text}, rules).first_failure
    assert first is not None
    assert (first.rank, first.tie) == (0, ranks)
    assert by in first.decided_by


@pytest.mark.parametrize(("kind", "seed"), [("oom", 5), ("branch", 6), ("half-and-half", 9)])
def test_the_ranks_in_the_middle_of_many_are_judged_too(
    kind: str, seed: int, tmp_path: Path, rules: RuleSet
) -> None:
    """A message that hundreds of ranks print is an echo on each of them, not on the first ones alone."""
    world = World(kind, seed, 256, 8)
    case = world.incident(kind)
    files = rank_files(case, tmp_path, world, random.Random(3))
    first = explain(files, FactBook(), rules).report.first_failure
    assert (first.tie if case.tie else first.rank) == (case.tie or case.rank)
    assert case.tie or not first.tie


def test_what_no_rule_knows_on_the_first_rank_comes_before_what_one_knows_on_a_later(
    tmp_path: Path, rules: RuleSet
) -> None:
    later = OWN.replace("proj.Spent: no units left", "KeyError: 'lr'")
    files = {
        "rank_0.log": stamped(("09.000", "step=3"), ("10.000", "failed")) + OWN,
        "rank_1.log": stamped(("29.000", "step=9"), ("40.000", "failed")) + later,
    }
    report = report_of(tmp_path, files, rules)
    assert (report.outcome, report.first_failure.rank) == (Outcome.UNRECOGNISED, 0)
    assert (report.suspect.type, report.suspect.rank) == ("proj.Spent", 0)
    assert any("own-code-error" in note for note in report.notes)


def test_a_warning_of_a_rank_that_ended_well_in_its_other_stream_is_a_note(
    tmp_path: Path, rules: RuleSet
) -> None:
    """torchrun --redirects 3: the warning stands in stderr.log, the end in stdout.log."""
    warned = (
        "/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py:83: UserWarning: barrier(): "
        "using the device under current context. You can specify `device_id` in `init_process_group` to mute "
        "this warning.\n  return func(*args, **kwargs)\n"
    )
    out = "ranks/none_x/attempt_0/{0}/stdout.log"
    files = {out.format(rank): f"rank {rank}: step 0\nrank {rank}: finished\n" for rank in range(2)}
    report = report_of(tmp_path, {**files, "ranks/none_x/attempt_0/0/stderr.log": warned}, rules)
    assert (report.outcome, report.diagnoses) == (Outcome.NO_FAILURE, ())
    cut = {**files, "ranks/none_x/attempt_0/1/stdout.log": "rank 1: step 0 loss 1.0\n"}
    report = report_of(tmp_path, {**cut, "ranks/none_x/attempt_0/0/stderr.log": warned}, rules)
    assert [one.rule for one in report.diagnoses] == ["dist-barrier-device"]
