"""Checks that cannot fail, as they were found in other gates: ours can. One test each, in the list's order.

And the other way round: healthy states for which other gates drained a node.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec

import pytest
from gate_machines import Altered, result, xid

from torchdoctor.gate import kernel, policy
from torchdoctor.gate.active import CHECKS as ACTIVE
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import EXIT, Action, Finding, Untold, Verdict, Weight, decide
from torchdoctor.gate.outcome import GateOutcome, reason
from torchdoctor.gate.supervisor import TIERS, Run, Wish
from torchdoctor.model import Blame
from torchdoctor.selftest import runner, standalone, thresholds
from torchdoctor.selftest.forking import Forking
from torchdoctor.selftest.registry import find
from torchdoctor.selftest.results import Job, judge
from torchdoctor.selftest.session import explain

UNFIT, ENV, OPEN, FIT = Verdict.UNFIT, Verdict.ENVIRONMENT, Verdict.INCONCLUSIVE, Verdict.FIT


def judged(change: Callable[[Altered], object], machine: str = "hgx-h100x8") -> GateOutcome:
    it = Altered(machine)
    change(it)
    return it.judge()


# --- checks that cannot fail


def test_trap_02_every_verdict_but_fit_has_a_code_of_its_own() -> None:
    assert EXIT == {FIT: 0, UNFIT: 10, ENV: 11, OPEN: 12}
    assert len(set(EXIT.values())) == len(Verdict)


def test_trap_06_an_error_seen_before_fails_again() -> None:
    it = Altered()
    it.log(xid(79))
    assert [it.judge().verdict for _ in range(3)] == [UNFIT] * 3


@pytest.fixture(scope="module")
def programs() -> Iterator[runner.Programs]:
    made = runner.Programs()
    yield made
    made.close()


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    """One process that has torch, and forks for each program."""
    if find_spec("torch") is None:
        pytest.skip("the programs run on the processor, with torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made = Forking(sys.executable, 60.0)
        yield made
        made.stop()


@pytest.mark.parametrize(
    ("tier", "name"),
    [
        ("deep", "memory"),  # trap 9: what was written is read back and compared
        ("standard", "p2p"),  # trap 22: so is what was copied to a peer
        (
            "quick",
            "gemm-exact",
        ),  # trap 25: a device alone, with nobody to compare itself with, is found wrong
    ],
)
def test_traps_9_22_and_25_one_wrong_element_fails(
    tier: str, name: str, forking: Forking, programs: runner.Programs
) -> None:
    assert name in ACTIVE[tier]
    check = find(name)
    job = Job(check, "cpu", 0, "repeat")
    for fault, verdict in (("one-element", "fail"), ("", "pass")):
        words = runner.arguments(job, programs.path(check.file), "quick", 60.0, fault)
        ended = forking.run(job.id, words, 60.0)
        assert judge(job, ended, explain).result.verdict.value == verdict


def test_trap_10_unknown_wins_against_ok() -> None:
    assert decide((), (Untold("kernel-log", "not permitted", True),)) is OPEN
    passed = Finding("a", "b", Weight.INFO, None, Action.NONE)
    assert decide((passed,), (Untold("nvml", "its program failed", True),)) is OPEN


def test_trap_18_floors_are_of_the_order_of_what_was_measured() -> None:
    h200 = thresholds.model_of("NVIDIA H200", 132)
    for rate, measured in (("h2d", 55.4), ("hbm", 4261.0), ("gemm-rate", 796.0)):
        floor = h200.floor(rate)[0]
        assert floor is not None
        assert measured / 2 < floor < measured


@pytest.mark.parametrize("value", [None, "text", 5, {"a": 1}, [], [[]], [None], ["x"] * 8, [[1, 2]] * 8])
def test_trap_20_a_changed_form_is_never_a_fault_of_the_node(value: object) -> None:
    it = Altered()
    for name in list(it.known):
        changed = Altered()
        changed.put(name, value)
        outcome = changed.judge()
        if name != "driver.nvml_error":  # any text there is an error
            assert outcome.verdict in (FIT, OPEN, ENV), (name, outcome.findings)
    it.put("gpu.nvml_count", value)
    assert it.judge().verdict is not FIT


def test_trap_23_the_pci_domain_is_kept() -> None:
    def change(it: Altered) -> None:
        for gpu, domain in enumerate(("0008", "0009", "0018", "0019")):
            it.gpu("gpu.pci", gpu, f"0000{domain}:01:00.0")
        it.put("node.pci_gpus", [])
        it.log(xid(95, pci="0009:01:00"))

    outcome = judged(change)
    assert [(one.gpu, one.pci) for one in outcome.findings] == [(1, "0009:01:00")]
    assert kernel.place("00000009:01:00.0") == kernel.place("0009:01:00") != kernel.place("0000:01:00")


def test_trap_24_operands_are_not_all_ones() -> None:
    source = standalone.source("gemm_exact")
    assert "randint" in source


# --- healthy states for which others drain


def test_no_drain_for_a_speed_at_the_reference() -> None:
    for model in thresholds.MODELS:
        for rate, reference in (("h2d", 55.4), ("hbm", 3000.0), ("gemm-rate", 778.0)):
            floor = model.floor(rate)[0]
            if model.words[0] == "H100" and floor is not None:
                assert floor <= 0.9 * reference


def test_a_slow_check_is_named() -> None:
    outcome = judged(lambda it: it.active(done=False, exit_code=None, timed_out=True, seconds=27.0, note="x"))
    assert reason(outcome).startswith("td:inconclusive active: the active checks did not finish")


def test_our_reasons_have_our_prefix_so_that_only_ours_are_taken_back() -> None:
    outcome = judged(lambda it: it.log(xid(79)))
    assert reason(outcome) == "[node_problem] td:xid79 GPU1 0000:43:00 reboot"
    assert not reason(judged(lambda it: None)).startswith("[node_problem]")


# --- the contract of codes and words


@pytest.mark.parametrize("style", ["native", "slurm", "nagios", "npd", "k8s"])
def test_observing_always_ends_with_0(style: str) -> None:
    outcome = replace(judged(lambda it: it.log(xid(79))), observe=True)
    assert outcome.exit_code(style, True) == 0
    assert outcome.verdict is UNFIT


def test_styles() -> None:
    unfit, open_ = judged(lambda it: it.log(xid(79))), judged(lambda it: it.forget("kernel.lines"))
    assert [unfit.exit_code("slurm"), unfit.exit_code("slurm", True), open_.exit_code("slurm", True)] == [
        0,
        1,
        0,
    ]
    assert [unfit.exit_code("nagios"), open_.exit_code("nagios")] == [2, 3]
    assert [unfit.exit_code("npd"), open_.exit_code("npd")] == [1, 2]
    assert [unfit.exit_code("k8s"), open_.exit_code("k8s")] == [1, 1]


def test_a_reason_is_one_short_line_of_ascii() -> None:
    it = Altered()
    it.put("gpu.errors", ["GPU 1: größer\nGPU is lost " + "x" * 500])
    line = reason(it.judge())
    assert len(line) <= 160
    assert line.isascii()
    assert line.isprintable()


def test_blame_on_the_fabric_drains_nobody() -> None:
    bad = Finding("xid", "x", Weight.FAIL, Blame.FABRIC, Action.INSPECT)
    assert decide((bad,), ()) is OPEN
    assert decide((bad, replace(bad, blame=Blame.NODE)), ()) is UNFIT


def test_a_stopped_gate_gives_what_it_knows() -> None:
    it = Altered()
    run = Run(Wish("quick"), 0.0, 0.0, policy_facts(it), cut="stopped by SIGTERM")
    assert run.outcome().verdict is OPEN
    it.log(xid(79))
    run = Run(Wish("quick"), 0.0, 0.0, policy_facts(it), cut="stopped by SIGTERM")
    assert run.outcome().verdict is UNFIT


def policy_facts(it: Altered) -> Facts:
    return Facts(it.known, it.ended)


def test_every_tier_keeps_time_for_its_verdict() -> None:
    assert {name: (one.budget_s, one.limit_s) for name, one in TIERS.items()} == {
        "passive": (2.0, 10.0),
        "quick": (15.0, 30.0),
        "standard": (60.0, 120.0),
        "deep": (600.0, 900.0),
    }
    assert json.dumps(sorted(policy.THRESHOLDS))


def test_a_wrong_result_is_repeated_and_once_is_enough() -> None:
    wrong = result("gemm-exact@cuda:1", "fail", "node", again=result("gemm-exact@cuda:1", "pass"))
    outcome = judged(lambda it: it.active(wrong))
    assert outcome.verdict is UNFIT
    (found,) = [one for one in outcome.findings if one.check == "gemm-exact"]
    assert found.retest == "again: pass, measured (intermittent)"
