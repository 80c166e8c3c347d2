"""A tick is earned: a line that names an error is met with it, and what a process got over is not."""

from __future__ import annotations

import pytest

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.model import Outcome

NCCL = "node-2:411:502 [1] "


def outcome(*lines: str) -> tuple[Outcome, str]:
    report = diagnose(intake.read_text("\n".join(lines)), FactBook(), load())
    return report.outcome, report.suspect.evidence.text if report.suspect else ""


@pytest.mark.parametrize(
    "line",
    [
        "ONNX: export failure  0.4s: the graph has a cycle",
        f"{NCCL}graph/xml.h:77 NCCL WARN Attribute zone of node hub not found",
        "node-2: Test NCCL failure common.cu:961 'remote process exited or there was a network error'",
        "[   81.555058] NVRM: GPU3 _someRpc: ******* Heartbeat Timeout *******",
        "export stage: FancyCheckerError: no such table",
        "        FancyCheckerError: no such table",
    ],
)
def test_a_line_that_names_an_error_is_the_suspect(line: str) -> None:
    found, shown = outcome("loading the model", line)
    assert found is Outcome.UNRECOGNISED
    assert shown.split() == line.split() or line.endswith(shown)


@pytest.mark.parametrize(
    "lines",
    [
        (
            f"{NCCL}misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
            f"{NCCL}NCCL INFO Using network Socket",
        ),
        ("    Remapping Failure Occurred                     : No",),
        (
            "2026-01-01 10:00:00 DEBUG Failed checking for CYGWIN: FileNotFoundError(2, 'No such file')",
            "done",
        ),
    ],
)
def test_what_a_process_got_over_is_no_failure(lines: tuple[str, ...]) -> None:
    assert outcome("loading the model", *lines) == (Outcome.NO_FAILURE, "")


def test_nccl_leaving_through_its_calls_got_over_nothing() -> None:
    left = (
        f"{NCCL}graph/xml.h:77 NCCL WARN Attribute zone not found",
        f"{NCCL}NCCL INFO graph/topo.cc:493 -> 3",
    )
    assert outcome(*left)[0] is Outcome.UNRECOGNISED
