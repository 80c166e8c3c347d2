"""Causes that only a warning or a line of a log names, beside a failure."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome, Report

DRIVER = (
    "/v/lib/python3.10/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: Found no "
    "NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver\n"
    "  return torch._C._cuda_getDeviceCount() > 0\n"
)
NVIDIA_SMI = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
STEPS = "epoch 0 loss 1.09\nepoch 1 loss 0.94\n"
RAISED = 'Traceback (most recent call last):\n  File "/w/run.py", line 66, in <module>\n    go()\n'
SHAPE = f"{RAISED}RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x300 and 384x128)\n"
NO_GPU = f"{RAISED}RuntimeError: No CUDA GPUs are available\n"
STRANGE = (
    f'{RAISED}  File "/v/lib/python3.11/site-packages/tracker/core.py", line 8, in put\n    raise Lost(key)\n'
    "tracker.core.LostError: no such series\n"
)


def _report(text: str, rules: RuleSet) -> Report:
    return diagnose(read_text(text), FactBook(None), rules)


@pytest.mark.parametrize("said", [DRIVER, NVIDIA_SMI])
def test_a_failure_of_another_cause_comes_before_what_was_only_said(said: str, rules: RuleSet) -> None:
    assert _report(said + SHAPE, rules).diagnoses[0].rule == "matmul-shape"


@pytest.mark.parametrize("said", [DRIVER, NVIDIA_SMI])
def test_a_failure_that_follows_from_it_stands_under_it(said: str, rules: RuleSet) -> None:
    (only,) = _report(said + NO_GPU, rules).diagnoses
    assert (only.rule, [link.rule for link in only.leads_to]) == ("driver-not-found", ["no-cuda-gpus"])


def test_a_run_that_trained_on_failed_of_what_no_rule_knows(rules: RuleSet) -> None:
    report = _report(DRIVER + STEPS + STRANGE, rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.suspect is not None
    assert report.suspect.type == "tracker.core.LostError"
    assert any("driver-not-found" in note for note in report.notes)


def test_a_warning_without_a_link_to_the_end_is_not_why(rules: RuleSet) -> None:
    report = _report(DRIVER + STRANGE, rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert any("driver-not-found" in note for note in report.notes)


def test_what_was_raised_comes_before_a_warning_of_a_library(rules: RuleSet) -> None:
    scheduler = (
        "/v/torch/optim/lr_scheduler.py:134: UserWarning: "
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`.\n"
    )
    aborted = f"{RAISED}RuntimeError: NCCL communicator was aborted on rank 19.\n"
    box = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 8851) "
        "of binary: python\n"
    )
    assert [item.rule for item in _report(scheduler + aborted, rules).diagnoses] == [
        "nccl-aborted",
        "scheduler-order",
    ]
    assert _report(scheduler + box, rules).diagnoses[0].rule == "scheduler-order"


def test_bitsandbytes_without_a_driver(rules: RuleSet) -> None:
    warned = (
        "/v/lib/python3.10/site-packages/bitsandbytes/cextension.py:34: UserWarning: The installed version "
        "of bitsandbytes was compiled without GPU support. 8-bit optimizers are unavailable.\n"
    )
    (only,) = _report(warned + NO_GPU + NVIDIA_SMI, rules).diagnoses
    assert only.rule == "driver-not-found"
