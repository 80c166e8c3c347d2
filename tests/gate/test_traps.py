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
from gate_machines import MACHINES, Altered, result, xid

from torchdoctor.gate import kernel, policy
from torchdoctor.gate.active import CHECKS as ACTIVE
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import EXIT, Action, Finding, Untold, Verdict, Weight, decide
from torchdoctor.gate.outcome import GateOutcome, reason
from torchdoctor.gate.supervisor import TIERS, Run, Wish
from torchdoctor.model import Blame
from torchdoctor.probes.machine import Outcome
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


def weights(outcome: GateOutcome, check: str) -> set[Weight]:
    return {one.weight for one in outcome.findings if one.check == check}


def needed(outcome: GateOutcome) -> set[str]:
    return {one.check for one in outcome.untold if one.required}


# --- checks that cannot fail


def test_trap_01_an_unhealthy_node_is_never_exit_0() -> None:
    outcome = judged(lambda it: it.gpu("gpu.remap_failed", 0, True))
    assert outcome.exit_code() == 10


def test_trap_02_every_verdict_but_fit_has_a_code_of_its_own() -> None:
    assert EXIT == {FIT: 0, UNFIT: 10, ENV: 11, OPEN: 12}
    assert len(set(EXIT.values())) == len(Verdict)


def test_trap_03_an_unsupported_model_is_judged_all_the_same() -> None:
    def change(it: Altered) -> None:
        it.put("gpu.names", ["NVIDIA H999"] * 8)
        it.gpu("gpu.ecc_uncorrected", 2, 7)

    assert judged(change).verdict is UNFIT


def test_trap_04_a_fact_that_does_not_exist_is_no_pass() -> None:
    def change(it: Altered) -> None:
        for name in ("gpu.remap_failed", "gpu.ecc_uncorrected"):
            it.forget(name, "no such column")

    outcome = judged(change)
    assert outcome.verdict is OPEN
    assert "ecc" in needed(outcome)


def test_trap_05_a_throttled_gpu_fails() -> None:
    outcome = judged(lambda it: it.gpu("gpu.throttle_reasons", 3, ["hw-power-brake"]))
    assert outcome.verdict is UNFIT


def test_trap_06_an_error_seen_before_fails_again() -> None:
    it = Altered()
    it.log(xid(79))
    assert [it.judge().verdict for _ in range(3)] == [UNFIT] * 3


@pytest.mark.parametrize(("code", "times", "verdict"), [(94, 1, FIT), (94, 3, UNFIT), (95, 1, UNFIT)])
def test_trap_07_94_and_95_are_known(code: int, times: int, verdict: Verdict) -> None:
    outcome = judged(lambda it: it.log(*[xid(code)] * times))
    assert outcome.verdict is verdict
    assert weights(outcome, "xid") == {Weight.FAIL if verdict is UNFIT else Weight.WARN}


@pytest.mark.parametrize("gpu", range(8))
def test_trap_08_every_gpu_is_judged(gpu: int) -> None:
    outcome = judged(lambda it: it.gpu("gpu.sram_threshold", gpu, True))
    assert outcome.verdict is UNFIT
    assert {one.gpu for one in outcome.findings} == {gpu}


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
    assert check is not None
    job = Job(check, "cpu", 0, "repeat")
    for fault, verdict in (("one-element", "fail"), ("", "pass")):
        words = runner.arguments(job, programs.path(check.file), "quick", 60.0, fault)
        ended = forking.run(job.id, words, 60.0)
        assert judge(job, ended, explain).result.verdict.value == verdict


def test_trap_10_unknown_wins_against_ok() -> None:
    assert decide((), (Untold("kernel-log", "not permitted", True),)) is OPEN
    passed = Finding("a", "b", Weight.INFO, None, Action.NONE)
    assert decide((passed,), (Untold("nvml", "its program failed", True),)) is OPEN


def test_trap_11_a_set_that_ran_out_of_time_is_inconclusive() -> None:
    outcome = judged(lambda it: it.active(done=False, exit_code=None, timed_out=True, note="timed out"))
    assert outcome.exit_code() == 12
    assert "active" in needed(outcome)


def test_trap_12_no_nvml_is_not_healthy() -> None:
    def change(it: Altered) -> None:
        it.drop("gate-nvml", "gpu.", Outcome(exit_code=0))
        it.put("driver.nvml_error", "NVML Shared Library Not Found")

    assert judged(change).verdict is UNFIT  # GPUs are on the bus, the driver is loaded


def test_trap_13_all_links_down_is_not_healthy() -> None:
    def change(it: Altered) -> None:
        it.put("gpu.nvlinks_active", [0] * 8)
        it.put("gpu.nvlinks_inactive", [18] * 8)

    outcome = judged(change)
    assert outcome.verdict is UNFIT
    assert len(outcome.findings) == 8


def test_trap_14_no_recovery_action_is_said_and_the_log_decides() -> None:
    def change(it: Altered) -> None:
        it.put("gpu.recovery_actions", [None] * 8)
        it.forget("kernel.lines")

    outcome = judged(change)
    assert "recovery-action" in {one.check for one in outcome.untold}
    assert "kernel-log" in needed(outcome)
    assert outcome.verdict is OPEN


def test_trap_15_a_program_that_cannot_be_started_is_not_healthy() -> None:
    outcome = judged(lambda it: it.drop("gate-node", "node.", Outcome(start_error="No such file")))
    assert outcome.verdict is OPEN
    assert "node" in needed(outcome)


def test_trap_16_links_down_are_found_without_a_diagnostic_tool() -> None:
    outcome = judged(lambda it: (it.gpu("gpu.nvlinks_active", 5, 0), it.gpu("gpu.nvlinks_inactive", 5, 18)))
    assert [one.gpu for one in outcome.findings if one.check == "nvlink"] == [5]


def test_trap_17_a_check_that_could_not_allocate_is_no_pass() -> None:
    untold = {"untold": "gemm-exact@cuda:2", "reason": "CUDA out of memory"}
    outcome = judged(lambda it: it.active(untold))
    assert outcome.verdict is OPEN
    assert "gemm-exact" in needed(outcome)


def test_trap_18_floors_are_of_the_order_of_what_was_measured() -> None:
    h200 = thresholds.model_of("NVIDIA H200", 132)
    assert h200 is not None
    for rate, measured in (("h2d", 55.4), ("hbm", 4261.0), ("gemm-rate", 796.0)):
        floor = h200.floor(rate)[0]
        assert floor is not None
        assert measured / 2 < floor < measured


def test_trap_19_a_speed_is_judged() -> None:
    slow = result("h2d@cuda:1", "fail", "node", again=result("h2d@cuda:1", "fail", "node"))
    assert judged(lambda it: it.active(slow)).verdict is UNFIT


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


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:43:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:43:00.0): 79, pid=1234, GPU has fallen off the bus.",
        "NVRM: Xid (0000:43:00): 79, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:43:00): 79 GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:43:00: GPU-1 has fallen off the bus and is not responding to commands.",
        "NVRM: GPU 0000:43:00.0: GPU has fallen off the bus.",
    ],
)
def test_trap_21_the_pattern_matches_real_lines(line: str) -> None:
    outcome = judged(lambda it: it.log(line))
    assert outcome.verdict is UNFIT
    assert {(one.tag, one.pci) for one in outcome.findings} == {("xid79", "0000:43:00")}


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


def test_trap_26_one_failed_part_fails_the_whole() -> None:
    wrong = result("nan@cuda:7", "fail", "node", observed="loss is nan")
    assert judged(lambda it: it.active(wrong)).verdict is UNFIT


def test_trap_27_no_source_of_errors_is_not_silence() -> None:
    outcome = judged(lambda it: it.forget("kernel.lines", "dmesg: read kernel buffer failed"))
    assert outcome.verdict is OPEN
    assert "kernel-log" in needed(outcome)


def test_trap_28_a_fabric_without_resources_fails() -> None:
    outcome = judged(lambda it: it.gpu("gpu.fabric_status", 0, 35))
    assert outcome.verdict is UNFIT
    assert weights(outcome, "fabric") == {Weight.FAIL}


# --- healthy states for which others drain


@pytest.mark.parametrize("name", MACHINES)
def test_healthy_recordings_are_fit(name: str) -> None:
    outcome = judged(lambda it: None, name)
    assert outcome.verdict is FIT
    assert outcome.findings == ()


@pytest.mark.parametrize("code", range(144, 151))
def test_no_drain_for_an_nvlink5_number_alone(code: int) -> None:
    outcome = judged(lambda it: it.log(xid(code, "some words without a sub-code")))
    assert outcome.verdict is FIT
    assert weights(outcome, "xid") == {Weight.WARN}


def test_no_drain_for_links_down_on_pcie_cards() -> None:
    def change(it: Altered) -> None:
        it.put("gpu.names", ["NVIDIA A100-PCIE-40GB"] * 8)
        it.put("gpu.nvlinks_active", [0] * 8)
        it.put("gpu.nvlinks_inactive", [12] * 8)

    outcome = judged(change)
    assert outcome.verdict is FIT
    assert weights(outcome, "nvlink") == {Weight.WARN}


def test_no_drain_for_a_speed_at_the_reference() -> None:
    for model in thresholds.MODELS:
        for rate, reference in (("h2d", 55.4), ("hbm", 3000.0), ("gemm-rate", 778.0)):
            floor = model.floor(rate)[0]
            if model.words[0] == "H100" and floor is not None:
                assert floor <= 0.9 * reference


@pytest.mark.parametrize("state", ["completed", "not-supported"])
def test_no_drain_for_a_healthy_fabric_with_imex(state: str) -> None:
    def change(it: Altered) -> None:
        it.put("gpu.names", ["NVIDIA GB300"] * 8)
        it.put("gpu.fabric_states", [state] * 8)
        it.put("node.fabric_manager", False)
        it.put("node.nvswitches", 0)

    assert judged(change).verdict is FIT


def test_no_drain_for_a_spare_infiniband_port() -> None:
    def change(it: Altered) -> None:
        ports = [list(row) for row in it.known["node.ib_ports"].value]
        ports[7] = ["mlx5_7", 1, "DOWN", "Disabled", 10.0, "InfiniBand", 0]
        it.put("node.ib_ports", ports)

    outcome = judged(change)
    assert outcome.verdict is FIT
    assert weights(outcome, "network") == {Weight.WARN}


def test_no_drain_for_a_speed_that_was_low_once() -> None:
    slow = result("h2d@cuda:1", "fail", "node", again=result("h2d@cuda:1", "pass", observed="55 GB/s"))
    outcome = judged(lambda it: it.active(slow))
    assert outcome.verdict is FIT
    assert weights(outcome, "h2d") == {Weight.INFO}
    untested = result("h2d@cuda:1", "fail", "node")
    outcome = judged(lambda it: it.active(untested))
    assert outcome.verdict is FIT
    assert weights(outcome, "h2d") == {Weight.WARN}


def test_no_drain_for_the_link_generation_of_an_idle_gpu() -> None:
    assert judged(lambda it: it.put("gpu.pcie_generation", [1] * 8)).findings == ()


def test_no_drain_for_a_warning() -> None:
    outcome = judged(lambda it: it.put("node.nofile", [1024, 1024]))
    assert weights(outcome, "ulimits") == {Weight.WARN}
    assert [outcome.exit_code(style, True) for style in ("native", "slurm", "npd", "k8s")] == [0] * 4


def test_a_slow_check_is_named() -> None:
    outcome = judged(lambda it: it.active(done=False, exit_code=None, timed_out=True, seconds=27.0, note="x"))
    assert reason(outcome).startswith("td:inconclusive active: the active checks did not finish")


def test_our_reasons_have_our_prefix_so_that_only_ours_are_taken_back() -> None:
    outcome = judged(lambda it: it.log(xid(79)))
    assert reason(outcome) == "[node_problem] td:xid79 GPU1 0000:43:00 reboot"
    assert not reason(judged(lambda it: None)).startswith("[node_problem]")


def test_beside_a_running_job_used_memory_and_power_caps_are_no_fault() -> None:
    def change(it: Altered) -> None:
        it.options = {"before_job": False}
        it.put("gpu.memory_used_bytes", [70_000_000_000] * 8)
        it.put("gpu.utilization", [100] * 8)
        it.put("gpu.throttle_reasons", [["sw-power-cap"]] * 8)
        it.put("gpu.temperature_c", [72] * 8)

    outcome = judged(change)
    assert outcome.verdict is FIT
    assert {one.weight for one in outcome.findings} == {Weight.INFO}


def test_link_faults_at_a_reset_are_no_fault() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
    assert judged(lambda it: it.log(line, at_s=40.0)).verdict is FIT
    assert judged(lambda it: it.log(line, at_s=4000.0)).verdict is UNFIT


def test_the_name_of_a_process_is_no_error() -> None:
    outcome = judged(lambda it: it.log(xid(43, "pid=7, name=Xid (PCI:0000:43:00): 79, Ch 00000008")))
    assert {one.tag for one in outcome.findings} == {"xid43"}
    assert outcome.verdict is FIT


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


@pytest.mark.parametrize(("way", "weight"), [("NET/Socket/0", Weight.WARN), ("P2P/CUMEM", Weight.INFO)])
def test_nccl_that_leaves_the_node_is_said(way: str, weight: Weight) -> None:
    notes = [f"nccl@cuda: ways: {way} (16 channels)"]
    outcome = judged(lambda it: it.active({"check": "", "verdict": "pass", "notes": notes}))
    assert weights(outcome, "transport") == {weight}
    assert outcome.verdict is FIT


def test_a_question_that_a_driver_cannot_answer_is_no_lost_gpu() -> None:
    outcome = judged(
        lambda it: it.put("gpu.health_errors", ["GPU 1: Unknown Error", "GPU 2: Invalid Argument"])
    )
    assert outcome.verdict is FIT
    outcome = judged(
        lambda it: (it.put("gpu.errors", ["GPU 1: Unknown Error"]), it.gpu("gpu.uuids", 1, None))
    )
    assert outcome.verdict is UNFIT


def test_a_wrong_result_is_repeated_and_once_is_enough() -> None:
    wrong = result("gemm-exact@cuda:1", "fail", "node", again=result("gemm-exact@cuda:1", "pass"))
    outcome = judged(lambda it: it.active(wrong))
    assert outcome.verdict is UNFIT
    (found,) = [one for one in outcome.findings if one.check == "gemm-exact"]
    assert found.retest == "again: pass, measured (intermittent)"
