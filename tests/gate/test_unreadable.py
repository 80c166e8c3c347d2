"""What a check cannot read is no pass and nobody's fault: it is listed, and decides where it is needed."""

from __future__ import annotations

import pytest
from gate_machines import Altered

from torchdoctor.gate import checks_environment, facts, passive
from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Reason, State
from torchdoctor.probes.machine import Outcome

CHECKS = sorted({check.id for check in passive.CHECKS})
NEEDS = sorted({(check.id, name) for check in passive.CHECKS for name in check.needs})
# they look for what may be there or not
NO_NEEDS = {"nvml", "gpu-count"}


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_lists_itself_when_what_it_reads_is_unreadable(check: str) -> None:
    it = Altered()
    for name in list(it.known):
        if name not in ("gpu.nvml_count", "gpu.uuids", "gpu.pci"):
            it.forget(name)
    outcome = it.judge()
    assert outcome.findings == ()
    assert outcome.verdict is Verdict.INCONCLUSIVE
    if check not in NO_NEEDS:
        assert check in {one.check for one in outcome.untold}


@pytest.mark.parametrize(("check", "name"), NEEDS)
def test_a_single_fact_that_cannot_be_read_is_said_with_its_reason(check: str, name: str) -> None:
    it = Altered()
    it.forget(name, "not permitted to ask")
    outcome = it.judge()
    assert outcome.findings == ()
    (said,) = [one.reason for one in outcome.untold if one.check == check]
    assert f"{name}: not permitted to ask" in said


@pytest.mark.parametrize(
    ("check", "name"), [one for one in NEEDS if one[1].startswith("gpu.") and one[1] != "gpu.errors"]
)
def test_one_gpu_that_gives_no_answer_is_named(check: str, name: str) -> None:
    it = Altered()
    if it.known[name].state is not State.KNOWN:
        it.put(name, [True] * 8)
    it.gpu(name, 3, None)
    outcome = it.judge()
    assert outcome.verdict is not Verdict.UNFIT
    said = " ".join(one.reason for one in outcome.untold if one.check == check)
    assert f"{name}: no answer for GPU 3" in said


def test_a_question_that_no_gpu_answers_is_said_too() -> None:
    """An interface that a driver lacks, as others took for health."""
    it = Altered()
    it.known["gpu.throttle_reasons"] = facts.Known(State.ABSENT, None, None, "no GPU answers this")
    outcome = it.judge()
    assert outcome.verdict is Verdict.FIT
    assert ("throttle", "gpu.throttle_reasons: no GPU answers this") in [
        (one.check, one.reason) for one in outcome.untold
    ]
    it.policy = Policy("site.toml", required=("throttle",))
    assert it.judge().verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("stage", "check"),
    [
        ("caches", "interpreter"),
        ("addresses", "interpreter"),
        ("import", "interpreter"),
        ("kernel 3", "kernel-image"),
    ],
)
def test_an_environment_that_hangs_is_named_with_where_it_hung(stage: str, check: str) -> None:
    it = Altered()
    it.environment()
    if not stage.startswith("kernel"):
        for name in [name for name in it.known if name.startswith("env.")]:
            it.known[name] = facts.Known(State.UNKNOWN, None, Reason.TIMED_OUT, "timed out")
    it.ended[checks_environment.PROGRAM] = Outcome(
        timed_out=True, seconds=27.0, note="timed out", lines=({"stage": stage},)
    )
    outcome = it.judge()
    assert outcome.verdict is Verdict.INCONCLUSIVE
    said = next(one for one in outcome.untold if one.check == check and one.required)
    assert stage in said.reason
