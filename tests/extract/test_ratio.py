"""The quotient that a loss of probabilities was asked for."""

from __future__ import annotations

import pytest

from torchdoctor.extract.ratio import ratio
from torchdoctor.intake.transcript import read_text

HEAD = "Traceback (most recent call last):\n"
OUTER = '  File "/srv/own/t.py", line 7, in scal\n    return ones({})\n'
INNER = '  File "/srv/own/t.py", line 3, in ones\n    return F.binary_cross_entropy({}, y)\n'
END = "RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast.\n"


@pytest.mark.parametrize(
    ("given", "asked", "quotient"),
    [
        ("p", "hits / total", "hits / total"),
        ("p.clamp(0, 1).float()", "hits / total", "hits / total"),
        ("a / b", "x", "a / b"),
        ("p", "torch.sigmoid(x)", None),
        ("p", "hits / total, k", None),
        # too long, or nested too deep, for a sentence
        ("p", f"{'x' * 60} / total", None),
        (f"{'-' * 240}a / b", "x", None),
    ],
)
def test_the_quotient_of_the_source(given: str, asked: str, quotient: str | None) -> None:
    transcript = read_text(HEAD + OUTER.format(asked) + INNER.format(given) + END)
    assert ratio(next(one for one in transcript.events if one.type)) == quotient
