"""Which checks of the active set are done a second time, and what is made of both runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gate_machines import Altered

from torchdoctor.gate import active
from torchdoctor.gate.active import Wish, lines, measure
from torchdoctor.gate.finding import Verdict as Said
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Blame, CheckResult, Outcome, Report, Verdict
from torchdoctor.selftest.session import Request


def report(*results: CheckResult) -> Report:
    return Report(Outcome.NO_FAILURE, checks=results)


def check(name: str, verdict: Verdict) -> CheckResult:
    return CheckResult(id=f"{name}@cuda:1", title=name, verdict=verdict, blame=Blame.NODE, observed="seen")


Played = Callable[..., tuple[list[tuple[str, ...]], list[float]]]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Runs that give these results, and the pauses between them; what was asked for."""

    def play(*reports: Report) -> tuple[list[tuple[str, ...]], list[float]]:
        asked: list[tuple[str, ...]] = []
        pauses: list[float] = []
        waiting = list(reports)

        def run(wish: Wish, names: tuple[str, ...], limit_s: float, show: object) -> Report:
            asked.append(names)
            return waiting.pop(0)

        monkeypatch.setattr(active, "_run", run)
        monkeypatch.setattr(active.time, "sleep", pauses.append)
        return asked, pauses

    return play


WISH = Wish("python", "standard", 60.0)


def test_nothing_is_repeated_where_all_is_well(played: Played) -> None:
    asked, pauses = played(report(check("gemm-exact", Verdict.PASS), check("hbm", Verdict.PASS)))
    assert measure(WISH)[1] is None
    assert (len(asked), pauses) == (1, [])


@pytest.mark.parametrize("first", [Verdict.FAIL, Verdict.WARN])
def test_a_slow_one_is_measured_again_after_a_pause(first: Verdict, played: Played) -> None:
    asked, pauses = played(report(check("hbm", first)), report(check("hbm", Verdict.PASS)))
    both = measure(WISH)
    assert asked[1] == ("hbm",)
    assert pauses == [10.0]
    (line, _) = lines(*both)
    assert line["again"] == {**line["again"], "verdict": "pass"}  # type: ignore[dict-item]


def test_a_wrong_one_is_repeated_at_once(played: Played) -> None:
    wrong = check("gemm-exact", Verdict.FAIL)
    asked, pauses = played(report(wrong), report(wrong))
    (line, _) = lines(*measure(WISH))
    assert asked[1] == ("gemm-exact",)
    assert pauses == []
    assert "again" in line


def test_nothing_is_repeated_without_time(played: Played) -> None:
    asked, _ = played(report(check("hbm", Verdict.FAIL)))
    assert measure(Wish("python", "standard", 3.0))[1] is None
    assert len(asked) == 1


def test_ways_that_nccl_did_not_tell_are_no_fault() -> None:
    it = Altered()
    it.policy = Policy("site.toml", {"transport": "P2P"})
    it.active({"check": "", "verdict": "pass", "notes": ["nccl@cuda: transport: NCCL's log does not tell"]})
    outcome = it.judge()
    assert outcome.verdict is Said.FIT
    assert "transport" in {one.check for one in outcome.untold}
    it.active({"check": "", "verdict": "pass", "notes": ["nccl@cuda: ways: P2P/CUMEM (16 channels)"]})
    assert it.judge().verdict is Said.FIT


@pytest.mark.parametrize("tier", ["quick", "standard", "deep"])
def test_the_tier_decides_how_much_each_check_does(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deep means products under heat and patterns over nearly all memory, not standard with more checks."""
    asked: list[Request] = []

    def run(request: Request, show: object) -> Report:
        asked.append(request)
        return report()

    monkeypatch.setattr(active, "run", run)
    measure(Wish("python", tier, 900.0))
    assert [request.level.value for request in asked] == [tier]
    assert {check.name for check in asked[0].only} == set(active.CHECKS[tier])
