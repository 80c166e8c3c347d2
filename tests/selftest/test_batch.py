"""Checks that share a process: each keeps its own verdict, and one that breaks takes no other along."""

from __future__ import annotations

import pytest

from torchdoctor.model import Verdict
from torchdoctor.probes.machine import Outcome
from torchdoctor.selftest import runner
from torchdoctor.selftest.batch import outcomes
from torchdoctor.selftest.forking import Forking
from torchdoctor.selftest.registry import CHECKS, find
from torchdoctor.selftest.results import Job, judge
from torchdoctor.selftest.session import explain

NAMES = ("lstsq-rank", "fft", "graphs")


def run(
    executor: Forking, programs: runner.Programs, faults: dict[str, str], limit_s: float = 60.0
) -> tuple[dict[str, tuple[Verdict, str]], list[list[str]]]:
    """The verdict and reason of each check, and which of them were begun together."""
    jobs = [Job(check, "cpu", 0) for name in NAMES if (check := find(name)) is not None]
    ended: dict[str, Outcome] = {}
    together: list[list[str]] = [[]]

    def argv(job: Job) -> tuple[tuple[str, ...], float]:
        name = job.check.name
        path = programs.path(job.check.file)
        return runner.arguments(job, path, "standard", limit_s, faults.get(name, "")), limit_s

    def begun(job: Job) -> None:
        if job.check.name in together[-1]:
            together.append([])
        together[-1].append(job.check.name)

    runner.run_lanes(
        [[jobs]], executor, argv, begun, lambda job, outcome: ended.update({job.id: outcome}), lambda: False
    )
    judged = {job.check.name: judge(job, ended[job.id], explain).result for job in jobs}
    return {name: (one.verdict, one.reason or "") for name, one in judged.items()}, together


def test_all_in_one_process(executor: Forking, programs: runner.Programs) -> None:
    found, together = run(executor, programs, {})
    assert {verdict for verdict, _ in found.values()} == {Verdict.PASS}
    assert together == [list(NAMES)]


def test_a_wrong_result_stays_with_its_check(executor: Forking, programs: runner.Programs) -> None:
    found, _ = run(executor, programs, {"fft": "one-element"})
    assert [found[name][0] for name in NAMES] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        ("crash", Verdict.FAIL, "crashed: ended by SIGSEGV"),
        ("killed", Verdict.UNKNOWN, "ended from outside by SIGKILL"),
        ("exit-3", Verdict.UNKNOWN, "ended without a result, exit code 3"),
        ("garbage", Verdict.UNKNOWN, "ended without a result"),
        ("cuda-error", Verdict.FAIL, "1 of 1 case failed"),
        ("flood", Verdict.UNKNOWN, "ended by us: it printed more than 64 MiB"),
    ],
)
def test_one_that_breaks_takes_no_other_along(
    executor: Forking, programs: runner.Programs, fault: str, verdict: Verdict, reason: str
) -> None:
    found, _ = run(executor, programs, {"fft": fault})
    assert found["fft"][0] is verdict
    assert found["fft"][1].startswith(reason)
    assert (found["lstsq-rank"][0], found["graphs"][0]) == (Verdict.PASS, Verdict.PASS)


def test_each_has_its_own_time_limit(executor: Forking, programs: runner.Programs) -> None:
    found, _ = run(executor, programs, {"fft": "hang"}, limit_s=3.0)
    assert found["fft"][0] is Verdict.FAIL
    assert found["fft"][1].startswith("stuck: no further output for")
    assert (found["lstsq-rank"][0], found["graphs"][0]) == (Verdict.PASS, Verdict.PASS)


def test_a_process_that_never_began_is_the_end_of_the_first() -> None:
    (only,) = outcomes(Outcome(exit_code=1, stderr="no"), [], lambda path, limit, tail: "")
    assert (only.exit_code, only.stderr, only.lines) == (1, "no", ())


def test_what_needs_a_clean_process_has_one() -> None:
    assert {check.name for check in CHECKS if check.shares}.isdisjoint(
        {"memory", "device-assert", "compile", "extension", "nccl", "gloo", "dataloader", "fork-spawn"}
    )
