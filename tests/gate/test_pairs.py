"""Finding the node that breaks a job across nodes: nobody is to blame for a partner, or a switch."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from gate_machines import ROOT
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.fleet import merge
from torchdoctor.gate.pairs import Isolation, PairError, Trial, isolate, next_round, read, switches_of

World = Callable[[str, str], "bool | None"]


def played(nodes: list[str], world: World, switches: dict[str, str] | None = None) -> tuple[Isolation, int]:
    """Test as the plan says until it says nothing more."""
    tests: list[Trial] = []
    rounds = 0
    while planned := next_round(nodes, tests):
        rounds += 1
        assert rounds <= len(nodes) + 3
        used = [node for pair in planned for node in pair]
        assert len(used) == len(set(used)), "a node is in one test at a time"
        tests += [Trial((first, second), world(first, second), "timed out") for first, second in planned]
    return isolate(nodes, tests, switches), rounds


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def broken(*bad: str) -> World:
    return lambda first, second: first not in bad and second not in bad


@pytest.mark.parametrize("count", [2, 3, 4, 7, 64])
def test_nodes_that_all_work_need_one_round_or_two(count: int) -> None:
    found, rounds = played(names(count), broken())
    assert (found.verdict, found.blamed, found.untold) == (Verdict.FIT, (), ())
    assert rounds == 1 + count % 2  # the odd one is tested with one that works


@pytest.mark.parametrize("bad", [["n2"], ["n1", "n2"], ["n1", "n4"], ["n7"]])
@pytest.mark.parametrize("count", [7, 8, 33])
def test_a_bad_node_is_found_and_its_first_partner_is_not(bad: list[str], count: int) -> None:
    found, rounds = played(names(count), broken(*bad))
    assert [node for node, _ in found.blamed] == bad
    assert found.verdict is Verdict.UNFIT
    assert set(found.working) == set(names(count)) - set(bad)
    assert rounds <= 4
    for _, why in found.blamed:
        assert "which work with others: timed out" in why


def test_two_failures_with_two_partners_that_work_are_needed() -> None:
    one = [Trial(("n1", "n2"), False), Trial(("n3", "n4"), True), Trial(("n1", "n3"), True)]
    found = isolate(names(4), one)
    assert (found.blamed, found.untold) == ((), ("n2",))  # it failed with n1 alone
    assert isolate(names(4), [*one, Trial(("n2", "n4"), False)]).blamed[0][0] == "n2"
    # twice with the same partner is once
    assert isolate(names(4), [*one, Trial(("n2", "n1"), False)]).blamed == ()


def test_a_failure_with_a_partner_that_is_bad_itself_does_not_count() -> None:
    tests = [Trial(("n1", "n2"), False), Trial(("n1", "n3"), False), Trial(("n3", "n4"), False)]
    found = isolate(names(4), tests)
    assert found.blamed == ()
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("seed", range(200))
def test_nobody_that_works_is_ever_blamed(seed: int) -> None:
    dice = random.Random(seed)
    nodes = names(dice.randrange(2, 24))
    bad = dice.sample(nodes, dice.randrange(0, len(nodes)))
    unheard = {node for node in nodes if dice.random() < 0.05}  # tests with them do not come to a result

    def world(first: str, second: str) -> bool | None:
        return None if {first, second} & unheard else broken(*bad)(first, second)

    found, _ = played(nodes, world)
    blamed = {node for node, _ in found.blamed}
    assert blamed <= set(bad)
    assert set(found.working) <= set(nodes) - set(bad)
    if not unheard and len(bad) * 4 <= len(nodes) and len(nodes) - len(bad) >= 3:
        assert blamed == set(bad)
        assert set(found.working) == set(nodes) - set(bad)


def test_no_result_is_no_guilt() -> None:
    found, rounds = played(names(4), lambda first, second: None if "n2" in (first, second) else True)
    assert (found.blamed, found.untold) == ((), ("n2",))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert rounds <= 3


def test_where_nothing_works_nobody_is_to_blame() -> None:
    found, rounds = played(names(6), lambda first, second: False)
    assert found.blamed == ()
    assert found.fabric == ("no pair works: the network, or something all nodes share",)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert rounds <= 3


def test_a_switch_is_to_blame_and_not_its_nodes() -> None:
    switches = {node: "s2" if node in ("n3", "n4", "n5", "n6") else "s1" for node in names(12)}
    bad = [node for node, switch in switches.items() if switch == "s2"]
    found, _ = played(names(12), broken(*bad), switches)
    assert found.blamed == ()
    assert found.fabric == ("no node behind switch s2 works with any other node: n3, n4, n5, n6",)
    assert found.verdict is Verdict.INCONCLUSIVE
    # without the map they are to blame, and one bad node of a switch is, with it
    assert [node for node, _ in played(names(12), broken(*bad))[0].blamed] == bad
    assert [node for node, _ in played(names(12), broken("n4"), switches)[0].blamed] == ["n4"]


def test_a_rail_is_to_blame_and_not_its_nodes() -> None:
    tests = [
        Trial(pair, rail != "mlx5_3", rail=rail)
        for rail in ("mlx5_0", "mlx5_3")
        for pair in (("n1", "n2"), ("n3", "n4"))
    ]
    found = isolate(names(4), tests)
    assert (found.blamed, found.fabric) == ((), ("no pair works over rail mlx5_3",))
    assert found.working == ("n1", "n2", "n3", "n4")


def test_a_slow_node_is_found_by_comparison() -> None:
    """Four nodes, the second at half speed in every sum."""

    def test(first: str, second: str) -> Trial:
        return Trial((first, second), True, bandwidth=48.0 if "n2" in (first, second) else 96.0)

    tests: list[Trial] = []
    while planned := next_round(names(4), tests):
        tests += [test(*pair) for pair in planned]
    found = isolate(names(4), tests)
    assert [node for node, _ in found.blamed] == ["n2"]
    assert "48 GB/s, 96 GB/s between others" in found.blamed[0][1]


def test_speeds_over_gloo_are_told_and_blame_nobody() -> None:
    """A healthy cluster on busy processors: n3 was at 0.58 of the others twice."""
    speeds = {("n1", "n2"): 1.642, ("n3", "n4"): 0.948, ("n1", "n3"): 0.95, ("n2", "n4"): 1.66}
    tests = [Trial(pair, True, bandwidth=speed, backend="gloo") for pair, speed in speeds.items()]
    found = isolate(names(4), tests)
    assert (found.verdict, found.blamed, found.working) == (Verdict.FIT, (), ("n1", "n2", "n3", "n4"))
    assert found.notes[0].startswith("n3 and n4: 0.948 GB/s, 1.642 GB/s between others; not judged")
    assert next_round(names(4), tests[:2]) == ()
    assert isolate(names(4), [replace(one, backend="nccl") for one in tests]).verdict is Verdict.UNFIT


def test_speeds_within_noise_blame_nobody() -> None:
    dice = random.Random(1)
    tests = [Trial((f"n{2 * at}", f"n{2 * at + 1}"), True, bandwidth=dice.gauss(96, 4)) for at in range(500)]
    assert isolate([node for one in tests for node in one.nodes], tests).verdict is Verdict.FIT


def test_two_that_fail_together_and_work_with_others() -> None:
    found, _ = played(names(6), lambda first, second: {first, second} != {"n1", "n2"})
    assert (found.verdict, found.blamed) == (Verdict.FIT, ())
    assert found.notes == ("n1 and n2 failed together and work with others: their path, or chance",)


def test_pairs_that_work_and_a_gang_that_does_not_is_the_fabric() -> None:
    tests = [Trial(("n1", "n2"), True), Trial(("n3", "n4"), True), Trial(tuple(names(4)), False, "no sum")]
    found = isolate(names(4), tests)
    assert (found.blamed, found.verdict) == ((), Verdict.INCONCLUSIVE)
    assert found.fabric == ("every pair works, but all 4 nodes together do not: no sum",)
    assert isolate(names(4), [*tests[:2], Trial(tuple(names(4)), True)]).verdict is Verdict.FIT


# --- files and the command


def write(folder: Path, first: str, second: str, passed: bool | None, **more: object) -> None:
    data = {"schema": "torchdoctor.pair/1", "nodes": [first, second], "passed": passed, **more}
    (folder / f"{first}+{second}.pair.json").write_text(json.dumps(data))


def test_the_command_plans_and_then_concludes(tmp_path: Path, printed: Printed) -> None:
    world = broken("n3")
    rounds = 0
    words = ["gate", "pairs", str(tmp_path), "--nodes", "n[1-6]"]
    while True:
        planned = printed([*words, "--next"]).split()
        if not planned:
            break
        rounds += 1
        for pair in planned:
            first, second = pair.split(",")
            write(tmp_path, first, second, world(first, second), time_s=rounds)
    assert printed([*words, "--format", "exclude"], 10) == "n3\n"
    assert json.loads(printed([*words, "--format", "json"], 10))["exclude"] == ["n3"]
    assert printed(words, 10).endswith("--exclude=n3\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"schema":"torchdoctor.pair/1","nodes":["a","b"],"passed":"yes"}',
        '{"schema":"torchdoctor.pair/1","nodes":["a"],"passed":true}',
        '{"schema":"torchdoctor.pair/1","nodes":["a","a"],"passed":true}',
        '{"schema":"torchdoctor.pair/2","nodes":["a","b"],"passed":true}',
    ],
)
def test_a_file_that_is_no_result_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.pair.json").write_text(text)
    with pytest.raises(PairError, match=r"x\.pair\.json: no result of schema"):
        read(str(tmp_path))
    assert main(["gate", "pairs", str(tmp_path)]) == 2


def test_mistakes_in_the_call_end_with_2(tmp_path: Path) -> None:
    assert main(["gate", "pairs"]) == 2
    assert main(["gate", "pairs", str(tmp_path / "none")]) == 2
    assert main(["gate", "pairs", str(tmp_path)]) == 2
    assert main(["gate", "pairs", str(tmp_path), "--nodes", "n1,n2", "--switches", "/nowhere"]) == 2


def test_switches_as_slurm_and_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "topology"
    path.write_text("# racks\ns1: n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=top Switches=s[1-2]\n")
    assert switches_of(str(path)) == {"n1": "s1", "n2": "s1", "n3": "s2", "n4": "s2"}
    path.write_text("n1 n2\n")
    with pytest.raises(PairError, match="topology:1: expected 'switch: nodes'"):
        switches_of(str(path))


def test_merging_verdicts_takes_tests_of_pairs_into_account(tmp_path: Path) -> None:
    for node in names(4):
        verdict = {
            "schema": "torchdoctor.gate/1", "verdict": "fit", "exit_code": 0, "host": node,
            "reason": "td:fit",
        }  # fmt: skip
        (tmp_path / f"{node}.json").write_text(json.dumps(verdict))
    write(tmp_path, "n1", "n2", False, reason="no sum within 60 s")
    write(tmp_path, "n3", "n4", True)
    assert merge(str(tmp_path)).exit_code == 0  # nothing is proven of n1 or n2
    write(tmp_path, "n1", "n3", True)
    write(tmp_path, "n2", "n4", False, reason="no sum within 60 s")
    fleet = merge(str(tmp_path))
    assert (fleet.exit_code, fleet.exclude) == (10, ("n2",))
    assert fleet.nodes[0].reason.startswith("td:pair fails with n1, n4, which work with others")
    (tmp_path / "n1+n3.pair.json").unlink()
    (tmp_path / "n3+n4.pair.json").unlink()
    fleet = merge(str(tmp_path))
    assert (fleet.exit_code, fleet.exclude) == (12, ())
    assert fleet.fabric


# --- the program that tests a pair, over gloo: two processes of this machine stand for two nodes

pytest_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def pair(folder: Path, ranks: tuple[int, ...], limit_s: float, port: int, **more: str) -> list[int]:
    program = ROOT / "torchdoctor" / "gate" / "child" / "pair.py"
    running = []
    for rank in ranks:
        environ = {
            **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "NODE_NAME": f"n{rank + 1}", "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "", **more,  # one GPU is no pair
        }  # fmt: skip
        argv = [sys.executable, str(program), str(folder), str(limit_s)]
        running.append(
            subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    return [one.wait(90) for one in running]


@pytest_torch
def test_a_pair_that_works_writes_what_it_measured(tmp_path: Path) -> None:
    assert pair(tmp_path, (0, 1), 40, 29571) == [0, 0]
    (tested,) = read(str(tmp_path))
    assert (tested.nodes, tested.passed) == (("n1", "n2"), True)
    assert (tested.bandwidth > 0, tested.backend) == (True, "gloo")
    assert [one.name for one in tmp_path.iterdir()] == ["n1+n2.pair.json"]


@pytest_torch
def test_a_rank_that_never_arrives_is_a_failed_pair_and_no_hang(tmp_path: Path) -> None:
    (code,) = pair(tmp_path, (0,), 6, 29572, TORCHDOCTOR_PAIR="n1,n2")
    assert code in (1, 3)
    (tested,) = read(str(tmp_path))
    assert (tested.nodes, tested.passed) == (("n1", "n2"), False)
    assert "n1" in tested.reason
