"""Programs that end badly: the verdict and its reason, and nothing left behind."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from torchdoctor.model import Verdict
from torchdoctor.probes.machine import Outcome
from torchdoctor.selftest import session
from torchdoctor.selftest.forking import Forking
from torchdoctor.selftest.registry import CHECKS, Level
from torchdoctor.selftest.results import how_it_ended
from torchdoctor.selftest.runner import Executor, Plain
from torchdoctor.selftest.survey import Survey

from .conftest import Try

GARBAGE_FOR_EVERY_CHECK = [check.name for check in CHECKS]


@pytest.fixture(scope="module", params=["forked", "plain"])
def way(request: pytest.FixtureRequest, executor: Forking) -> Executor:
    return executor if request.param == "forked" else Plain(sys.executable)


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        ("crash", Verdict.FAIL, "crashed: ended by SIGSEGV"),
        ("killed", Verdict.UNKNOWN, "ended from outside by SIGKILL"),
        ("exit", Verdict.UNKNOWN, "ended without a result, exit code 0"),
        ("garbage", Verdict.UNKNOWN, "ended without a result, exit code 0"),
    ],
)
def test_both_ways_of_running_tell_the_same(
    way: Executor, attempt: Try, fault: str, verdict: Verdict, reason: str
) -> None:
    judged = attempt("lstsq-rank", fault, way=way)
    assert (judged.result.verdict, judged.cases) == (verdict, ())
    assert judged.result.reason.startswith(reason)


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        ("abort", Verdict.FAIL, "crashed: ended by SIGABRT"),
        ("exit-3", Verdict.UNKNOWN, "ended without a result, exit code 3"),
        ("flood", Verdict.UNKNOWN, "ended by us: it printed more than 64 MiB"),
        ("error", Verdict.FAIL, "1 of 1 case failed"),
        ("cuda-error", Verdict.FAIL, "1 of 1 case failed"),
        ("no-memory", Verdict.UNKNOWN, "not enough free memory"),
    ],
)
def test_an_end_and_its_reason(attempt: Try, fault: str, verdict: Verdict, reason: str) -> None:
    judged = attempt("lstsq-rank", fault)
    assert judged.result.verdict is verdict
    assert (judged.result.reason or "").startswith(reason)
    assert bool(judged.not_checked) is (verdict is Verdict.UNKNOWN)


def test_an_error_of_cuda_is_explained_and_blames_no_device(attempt: Try) -> None:
    judged = attempt("lstsq-rank", "cuda-error")
    assert "[cuda-illegal-access]" in " ".join(item.text for item in judged.result.evidence)
    assert judged.result.blame is None


def test_one_that_is_stuck_fails_with_the_place(attempt: Try) -> None:
    begun = time.monotonic()
    judged = attempt("lstsq-rank", "hang", limit_s=1.5)
    assert time.monotonic() - begun < 6
    assert judged.result.verdict is Verdict.FAIL
    assert (judged.result.reason or "").startswith("stuck: no further output for")
    assert "lstsq_rank.py" in judged.result.evidence[0].text
    assert "misbehave" in judged.result.evidence[0].text


def test_one_that_is_slow_is_not_judged(attempt: Try) -> None:
    judged = attempt("lstsq-rank", "busy", limit_s=1.5)
    assert judged.result.verdict is Verdict.UNKNOWN
    assert (judged.result.reason or "").startswith("slow, not stuck")


def test_closed_descriptors_change_nothing(attempt: Try) -> None:
    assert attempt("lstsq-rank", "closed").result.verdict is Verdict.PASS


def test_a_grandchild_dies_with_its_program(way: Executor, attempt: Try) -> None:
    assert attempt("lstsq-rank", "grandchild", way=way).result.verdict is Verdict.PASS
    deadline = time.monotonic() + 5
    while alive("torchdoctor-grandchild") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive("torchdoctor-grandchild") == []


def alive(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word in words and state != "Z":
            found.append(words)
    return found


@pytest.mark.parametrize("name", GARBAGE_FOR_EVERY_CHECK)
def test_what_no_check_can_read_is_unknown(attempt: Try, name: str) -> None:
    judged = attempt(name, "garbage")
    assert judged.result.verdict is Verdict.UNKNOWN
    assert [item.id for item in judged.not_checked] == [f"{name}@cpu"]


def test_a_program_that_never_began() -> None:
    ending = how_it_ended(Outcome(start_error="no such file"))
    assert (ending.verdict, ending.reason) == (
        Verdict.UNKNOWN,
        "its program could not be started: no such file",
    )
    ending = how_it_ended(Outcome(timed_out=True, seconds=10, note="timed out"))
    assert (ending.verdict, "importing torch" in ending.reason) == (Verdict.UNKNOWN, True)


def test_the_forker_is_replaced_when_it_dies(attempt: Try) -> None:
    forking = Forking(sys.executable, 60.0)
    forking._forker.interrupt()
    try:
        judged = attempt("lstsq-rank", way=forking)
    finally:
        forking.stop()
    assert judged.result.verdict is Verdict.PASS
    assert forking.fallback


def test_a_python_that_cannot_fork_torch_gets_plain_children(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    forking = Forking(str(fake), 10.0)
    try:
        assert forking.fallback == "the forking process ended while importing torch"
        assert forking.run("x", ("x",), 5.0).exit_code == 1
    finally:
        forking.stop()


# GPUs that torch fails to tell of: nothing was tested, and no tick for the CPU says otherwise
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
