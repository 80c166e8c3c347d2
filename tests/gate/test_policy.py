"""The policy file, and how many GPUs there should be by whom: mistakes are told, what is there decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_machines import Altered

from torchdoctor.gate import passive
from torchdoctor.gate.expect import leave_others_alone, listed
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import Verdict, Weight
from torchdoctor.gate.policy import Policy, PolicyError, load


def policy(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "site.toml"
    path.write_text(text, encoding="utf-8")
    return load(str(path), passive.NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[expct]\ngpus = 8", "top level: unknown name 'expct'; did you mean 'expect'?"),
        ("[expect]\ngpu = 8", "expect: unknown name 'gpu'; did you mean 'gpus'?"),
        ("[expect]\ngpus = '8'", "expect.gpus: expected a whole number, 0 or more, found '8'"),
        ("[expect]\ngpus = true", "expect.gpus: expected a whole number"),
        ("[expect]\ngpus = -1", "expect.gpus: expected a whole number"),
        ("[thresholds]\nshm_warn = 1", "thresholds: unknown name 'shm_warn'; did you mean 'shm_warn_bytes'?"),
        ("[thresholds]\nshm_warn_bytes = 'x'", "thresholds.shm_warn_bytes: expected a number"),
        ("[thresholds]\nshm_warn_bytes = nan", "thresholds.shm_warn_bytes: expected a number"),
        ("[thresholds]\nclock_limit_fail_share = 85", "a share must be between 0 and 1"),
        ("[checks.xidd]\nweight = 'warn'", "checks: unknown name 'xidd'; did you mean 'xid'?"),
        ("[checks.xid]\nweight = 'warm'", "checks.xid.weight: unknown name 'warm'; did you mean 'warn'?"),
        (
            "[checks.xid]\non_unkown = 'warn'",
            "checks.xid: unknown name 'on_unkown'; did you mean 'on_unknown'?",
        ),
        ("required = ['kernel_log']", "required: unknown name 'kernel_log'; did you mean 'kernel-log'?"),
        ("[[suppress]]\ncheck = 'ecc'", "suppress[0]: 'owner' is missing"),
        ("[[suppress]]\ncheck = 'ecc'\nowner = 'o'\nuntil = 'soon'", "suppress[0].until: expected a date"),
        ("[[suppress]]\ncheck = 'ec'\nowner = 'o'\nuntil = '2030-01-01'", "did you mean 'ecc'?"),
        ("[profiles.H100.expct]\ngpus = 1", "profiles.H100: unknown name 'expct'; did you mean 'expect'?"),
        ("gpus = [", "not valid TOML"),
        ("[options]\nremap_pending = 'no'", "options.remap_pending: expected one of fail, warn, info"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, text)
    assert str(tmp_path / "site.toml") in str(caught.value)
    assert said in str(caught.value)


def test_a_profile_is_for_its_model(tmp_path: Path) -> None:
    found = policy(
        tmp_path,
        "[expect]\ngpus = 8\n[profiles.H100.expect]\nnvlinks = 18\n[profiles.H200.expect]\nnvlinks = 4",
    )
    assert found.for_model("NVIDIA H100 80GB HBM3").expect == {"gpus": 8, "nvlinks": 18}
    assert found.for_model("NVIDIA L4").expect == {"gpus": 8}


@pytest.mark.parametrize(
    ("wish", "verdict"),
    [
        ("inconclusive", Verdict.INCONCLUSIVE),
        ("warn", Verdict.FIT),
        ("ignore", Verdict.FIT),
        ("unfit", Verdict.UNFIT),
    ],
)
def test_what_is_unknown_is_as_the_site_wishes(tmp_path: Path, wish: str, verdict: Verdict) -> None:
    it = Altered()
    it.forget("kernel.lines")
    it.policy = policy(tmp_path, f"[checks.kernel-log]\non_unknown = '{wish}'")
    assert it.judge().verdict is verdict


def test_a_required_check_must_be_made(tmp_path: Path) -> None:
    it = Altered()
    it.forget("node.ib_ports")
    assert it.judge().verdict is Verdict.FIT
    it.policy = policy(tmp_path, "required = ['network']")
    assert it.judge().verdict is Verdict.INCONCLUSIVE


def test_thresholds_and_weights(tmp_path: Path) -> None:
    it = Altered()
    it.gpu("gpu.power_limit_w", 0, 650.0)
    assert it.judge().verdict is Verdict.FIT
    it.policy = policy(tmp_path, "[thresholds]\npower_limit_fail_share = 0.95")
    outcome = it.judge()
    assert outcome.verdict is Verdict.UNFIT
    assert outcome.findings[0].source.endswith("site.toml: thresholds.power_limit_fail_share")
    it.policy = policy(
        tmp_path, "[thresholds]\npower_limit_fail_share = 0.95\n[checks.power-limit]\nweight = 'warn'"
    )
    assert {one.weight for one in it.judge().findings} == {Weight.WARN}


# How many GPUs there should be, by whom, and whose fault it is when there are fewer
FIT, UNFIT, ENV = Verdict.FIT, Verdict.UNFIT, Verdict.ENVIRONMENT

TASK = {"SLURM_PROCID": "0"}


def test_the_policy_is_for_the_whole_node_and_a_task_sees_its_share() -> None:
    it = Altered("h200x2")
    it.policy = Policy("site.toml", {"gpus": 8})
    assert it.judge().verdict is UNFIT
    it.variables(**TASK, SLURM_STEP_GPUS="3,4")
    assert it.judge().verdict is FIT


@pytest.mark.parametrize(
    ("variables", "seen"),
    [
        ({"SLURM_JOB_GPUS": "1"}, "GPU-00000000-0000-0000-0000-000000000002"),
        ({"SLURM_STEP_GPUS": "0", "SLURM_JOB_GPUS": "0,1"}, "GPU-00000000-0000-0000-0000-000000000001"),
        ({"SLURM_JOB_GPUS": "1", "CUDA_VISIBLE_DEVICES": "0"}, "0"),  # what is set stands
        ({"SLURM_JOB_GPUS": "0,1"}, None),  # the whole node
        ({"SLURM_JOB_GPUS": "6,7"}, None),  # constrained: what is seen is the job's
        ({}, None),
    ],
)
def test_gpus_of_other_jobs_are_hidden_from_what_is_measured(
    variables: dict[str, str], seen: str | None
) -> None:
    it = Altered("h200x2")
    it.variables(**variables)
    environ = {name: value for name, value in variables.items() if name == "CUDA_VISIBLE_DEVICES"}
    leave_others_alone(Facts(it.known, it.ended), environ)
    assert environ.get("CUDA_VISIBLE_DEVICES") == seen


def test_lists() -> None:
    assert listed("0-3,7") == ("0", "1", "2", "3", "7")
    assert listed("0, 1,-1,2") == ("0", "1")
    assert listed("") == ()
