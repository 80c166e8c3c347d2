"""Every fault that the gate must find, planted into healthy recordings, and what is none."""

from __future__ import annotations

from collections import Counter

import pytest
from case_files import rewrite
from gate_machines import CASES, JUDGED, Altered, planted, said
from gate_noise import look, originals

from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.policy import Policy, Suppression

UNFIT, FIT = Verdict.UNFIT, Verdict.FIT


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_a_planted_fault_is_found(lines: list[str], expected: list[str]) -> None:
    outcome = planted(lines).judge()
    assert said(outcome) == expected
    assert outcome.exit_code() == {"fit": 0, "unfit": 10, "environment": 11, "inconclusive": 12}[expected[0]]
    for one in outcome.findings:
        assert one.title
        assert not one.counts or (one.blame is not None and one.expected and one.source and one.evidence)


def test_a_suppressed_fault_is_told_and_does_not_count() -> None:
    it = Altered()
    it.gpu("gpu.power_limit_w", 1, 400.0)
    it.policy = Policy(
        "site.toml", suppressions=(Suppression("power-limit", "ops", "2999-01-01", "cooling"),)
    )
    outcome = it.judge()
    assert outcome.verdict is FIT
    assert outcome.findings[0].suppressed == "ops until 2999-01-01"
    assert "by ops until 2999-01-01 (1 finding now): cooling" in outcome.suppressions[0]
    it.policy = Policy("site.toml", suppressions=(Suppression("power-limit", "ops", "2020-01-01"),))
    outcome = it.judge()
    assert outcome.verdict is UNFIT
    assert "expired" in outcome.suppressions[0]


# Healthy machines with noise are never unfit; benchmarks/gate_replays.py looks at 30,000 of them
def test_no_healthy_look_is_unfit() -> None:
    base = originals()
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(400):
        drawn, outcome = look(number, base)
        seen[drawn.machine, drawn.busy] += 1
        assert outcome.verdict is Verdict.FIT, (number, drawn, outcome.findings, outcome.untold)
    assert len(seen) == 2 * len(base)


if __name__ == "__main__":  # records what is said now, to be reviewed as a diff
    rewrite(JUDGED, lambda _, lines: said(planted(lines).judge()))
