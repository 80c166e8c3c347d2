"""Which regular expressions a rule may have."""

from __future__ import annotations

import re
import time

import pytest

from torchdoctor.catalog.linear import MAX_SOURCE, MAX_TEXT, complaint

TOO_MANY_WAYS = [
    r"x(a{1,9}){1,50}b", r"x(a{0,5}){0,40}", r"x(a|a){0,40}b", r"x(a|ab){0,20}c", r"x(a?a){0,40}b",
    r"x(a?){25}a{25}", r"x.{0,400}y.{0,400}z", r"x(?i:a{1,9}A{1,9}){1,9}b", r"x(?:(?:a{0,9}){0,9}){0,9}c",
    r"a?b?c?d?e?f?g?h?i?j?k?l?m?n?o?p?", r"x[^a]{0,40}A[^a]{0,40}A[^a]{0,40}b",
]  # fmt: skip
NO_BOUND = [r"\d+x", r"foo.*bar", r"x(a+)+$", r"x\w{3,}:", r"x(?:a|b)*c", r"x(?s:.+?)y", r"x{0,4000}"]
NOT_LINEAR_BY_KIND = [r"x(\w)\1", r"x(?=y)", r"x(?!y)", r"(?<!x)y", r"(?<=x)y", r"(x)?y(?(1)a|b)"]
LINEAR = [
    r"foo.{0,200}bar", r"^\d{1,9} errors", r"\b\w{1,40}Error: [^\n]{0,80} on line \d{1,6}",
    r"CUDA error (?:a|b|c)\w{0,9}: [^:]{1,80}: \d{1,9}", r"(?:\d{1,3}\.){3}\d{1,3}",
    r"rank \d{1,6} of \d{1,6}",
    r"(?:CUDA error|CUDA failure|device error): [^\n]{0,200}", r"(?i)out of memory.{0,80} GPU \d{1,2}",
    r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}", r"Loss is (?:nan|inf)", "",
]  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        (TOO_MANY_WAYS, "in too many ways"),
        (NO_BOUND, "repeats without a bound"),
        (NOT_LINEAR_BY_KIND, "which is not linear"),
        (["a" * (MAX_SOURCE + 1)], "longer than 2000 characters"),
    ],
)
def test_what_may_run_away_is_refused(sources: list[str], why: str) -> None:
    for source in sources:
        assert why in complaint(source), source


@pytest.mark.parametrize("source", LINEAR)
def test_linear_ones_are_taken_and_are_fast(source: str) -> None:
    assert complaint(source) == ""
    compiled = re.compile(source)
    for unit in ("a", "ab", "a1 ", "1", "x", "foo ", "error ", "a,", "CUDA error a: ", " on line 1"):
        text = (unit * MAX_TEXT)[:MAX_TEXT]
        begun = time.process_time()
        compiled.search(text)
        assert time.process_time() - begun < 1.0, unit
