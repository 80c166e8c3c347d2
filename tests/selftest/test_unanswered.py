"""GPUs that torch fails to tell of: nothing was tested, and no tick for the CPU says otherwise."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from torchdoctor.model import Verdict
from torchdoctor.selftest import session
from torchdoctor.selftest.registry import Level
from torchdoctor.selftest.survey import Survey

REFUSED = "ValueError: Unrecognized key 'bogus' in CUDA allocator config."


def verdicts(monkeypatch: pytest.MonkeyPatch, found: Survey, device: str | None = None) -> dict[str, Verdict]:
    monkeypatch.setattr(session._Session, "_survey", lambda self: found)
    report = session.run(session.Request(sys.executable, device=device, level=Level.QUICK))
    return {check.id: check.verdict for check in report.checks}


@pytest.fixture
def unanswered() -> Survey:
    return Survey(
        "2.11", no_gpu="asking torch for its GPUs did not end well", unanswered=True, stderr=REFUSED
    )


def test_no_check_runs_on_the_cpu_instead(monkeypatch: pytest.MonkeyPatch, unanswered: Survey) -> None:
    assert set(verdicts(monkeypatch, unanswered).values()) == {Verdict.UNKNOWN}


def test_a_setting_that_a_rule_knows_is_the_failure(
    monkeypatch: pytest.MonkeyPatch, unanswered: Survey
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "bogus:1")
    assert verdicts(monkeypatch, unanswered)["torch"] is Verdict.FAIL


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch here")
def test_the_cpu_that_was_asked_for_is_tested(monkeypatch: pytest.MonkeyPatch, unanswered: Survey) -> None:
    assert Verdict.PASS in verdicts(monkeypatch, unanswered, device="cpu").values()
