"""Healthy machines with noise are never unfit; benchmarks/gate_replays.py looks at 30,000 of them."""

from __future__ import annotations

from collections import Counter

from gate_noise import look, originals

from torchdoctor.gate.finding import Verdict


def test_no_healthy_look_is_unfit() -> None:
    base = originals()
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(400):
        drawn, outcome = look(number, base)
        seen[drawn.machine, drawn.busy] += 1
        assert outcome.verdict is Verdict.FIT, (number, drawn, outcome.findings, outcome.untold)
    assert len(seen) == 2 * len(base)
