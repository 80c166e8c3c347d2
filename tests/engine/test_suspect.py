"""The line that a failure without a rule is told by; a tick is earned."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome

NCCL = "n1:881:890 [0] "
GIVES_UP = f"{NCCL}NCCL INFO init.cu:568 -> 1\n"
WARNS = f"{NCCL}transport/p2p.cu:548 NCCL WARN failed to open CUDA handle : 64 peers\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("`RuntimeError: worker 83316 is gone: Unknown signal: 0.`\n", 1),  # only quoted
        ("step 1\nn1: Test NCCL failure common.cu:958 'peers'\n .. n1 pid 7: Test failure c.cu:1\n", 2),
        (WARNS + GIVES_UP, 1),
        ("[   81.55] NVRM: GPU3 _threadNodeCheck: Timeout was set to: 4000 msecs!\n", 1),
        ("loading\nERROR: the pool of frobnicators is dry\n", 2),
    ],
)  # fmt: skip
def test_a_line_that_names_an_error_is_the_suspect(text: str, line: int, rules: RuleSet) -> None:
    report = diagnose(read_text(text), FactBook(), rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.suspect is not None
    assert report.suspect.evidence.line == line


@pytest.mark.parametrize(
    "text",
    [
        WARNS + f"{NCCL}NCCL INFO Using network Socket\n",
        "ERROR: cannot reach the tracker\nstep 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\n",
        "ERROR: cannot reach the tracker\nTraining finished.\n",
        "val_error: 0.12  MeanSquaredError: 0.0144\n",
    ],
)
def test_what_a_run_goes_on_after_is_no_failure(text: str, rules: RuleSet) -> None:
    assert diagnose(read_text(text), FactBook(), rules).outcome is Outcome.NO_FAILURE
