"""How many GPUs there should be, by whom, and whose fault it is when there are fewer."""

from __future__ import annotations

import pytest
from gate_machines import Altered

from torchdoctor.gate.expect import leave_others_alone, listed
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.policy import Policy

FIT, UNFIT, ENV = Verdict.FIT, Verdict.UNFIT, Verdict.ENVIRONMENT
TASK = {"SLURM_PROCID": "0"}


@pytest.mark.parametrize(
    ("variables", "verdict"),
    [
        ({}, FIT),
        ({"SLURM_GPUS_ON_NODE": "2"}, FIT),
        ({"SLURM_GPUS_ON_NODE": "3"}, UNFIT),
        ({**TASK, "SLURM_STEP_GPUS": "0,1,2", "CUDA_VISIBLE_DEVICES": "0,1,2"}, UNFIT),
        # a GPU for each task: the others of the job are not to be seen
        ({**TASK, "SLURM_GPUS_ON_NODE": "8", "CUDA_VISIBLE_DEVICES": "0,1"}, FIT),
        ({**TASK, "SLURM_JOB_GPUS": "4,5", "CUDA_VISIBLE_DEVICES": "0,1"}, FIT),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, ENV),
        ({"CUDA_VISIBLE_DEVICES": "1"}, FIT),
        ({"CUDA_VISIBLE_DEVICES": ""}, FIT),
        ({"CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-0000-0000-000000000002"}, FIT),
        ({"CUDA_VISIBLE_DEVICES": "GPU-77777777"}, ENV),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1,MIG-2,MIG-3"}, FIT),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, FIT),
        ({"LOCAL_WORLD_SIZE": "2"}, FIT),
        # more ranks than GPUs may be meant so: it is told, and stops nothing
        ({"LOCAL_WORLD_SIZE": "8"}, FIT),
    ],
)
def test_requests_of_jobs_on_a_node_with_two_gpus(variables: dict[str, str], verdict: Verdict) -> None:
    it = Altered("h200x2")
    it.variables(**variables)
    assert it.judge().verdict is verdict


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
