"""Which regular expressions a rule may have."""

from __future__ import annotations

import re
import time

import pytest

from torchdoctor.catalog.linear import MAX_SOURCE, MAX_TEXT, complaint

TOO_MANY_WAYS = [
    r"x(a+)+$", r"x(a*)*$", r"(\w+\s*)*:", r"x(a|a)*b", r"x(a|ab)*c", r"x(.*,)*y", r"a.*b.*c", r"x.*.*y",
    r"x(a?a)*b", r"x(a?){25}a{25}", r"x\w*\d*\w*z", r"x(?:a|b|ab)*c", r"x[^a]*A[^a]*A[^a]*b", r"x(\s+|\w+)*y",
    r"x(?i:a+A+)+b", r"x(a{1,50}){1,50}b", r"x.{0,400}y.{0,400}z", r"x(?:(?:a*)b*)*c", r"x(?:a{0,3}){2,}b",
    r"x(a\d+|a\w+)*b", r"x(?:(a|b)|(a|c))*d", r"x((a{2})|(a{3}))*b", r"x(?:ab*)*b*c$", r"x(?s:.+)y.*z",
    "xa*" + "a" * 900 + "b",
]  # fmt: skip
NOT_LINEAR_BY_KIND = [r"x(\w+)\1", r"x(?=y)", r"x(?!y)", r"(?<!x)y", r"(?<=x)y", r"(x)?y(?(1)a|b)"]
ENDLESS_START = [r"\d+x", r"\w*:", r"a?b*c", r"(?:\w+\.)+y", r"(?:x|y+)z"]
LINEAR = [
    r"foo.*bar", r"^\d+ errors", r"errors?.*failed", r"\b\w+Error: .* on line \d+", r"x([^,]*,)*y",
    r"CUDA error (?:a|b|c)\w*: [^:]+: \d+", r"(?:\d{1,3}\.){3}\d{1,3}", r"rank \d+ of \d+",
    r"(?:CUDA error|CUDA failure|device error): [^\n]{0,200}", r"x(?:ab|cd)*e", r"(?i)out of memory.*GPU \d+",
    r"foo\s+bar\s*=\s*\d+", r"x(?:\w+\s+)*$", r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}", r"x(?:\d|\w)*y",
    r"Loss is (?:nan|inf)", r"(?:foo|bar)baz", "",
]  # fmt: skip


@pytest.mark.parametrize("source", TOO_MANY_WAYS)
def test_parts_that_can_share_one_text_are_refused(source: str) -> None:
    re.compile(source)
    assert re.search("too many ways|more than one way", complaint(source))


@pytest.mark.parametrize("source", NOT_LINEAR_BY_KIND)
def test_what_no_automaton_can_do_is_refused(source: str) -> None:
    assert complaint(source).endswith("which is not linear")


@pytest.mark.parametrize("source", ENDLESS_START)
def test_a_start_without_a_bound_is_refused(source: str) -> None:
    assert "begins with a repeat without a bound" in complaint(source)


def test_what_is_too_large_to_be_examined_is_refused() -> None:
    assert "longer than 2000 characters" in complaint("a" * (MAX_SOURCE + 1))
    assert "levels deep" in complaint("(" * 60 + "a" + ")" * 60)


@pytest.mark.parametrize("source", LINEAR)
def test_linear_ones_are_taken_and_are_fast(source: str) -> None:
    assert complaint(source) == ""
    compiled = re.compile(source)
    for unit in ("a", "ab", "a1 ", "1", "x", "foo ", "error ", "a,", "CUDA error a: ", " on line 1"):
        text = (unit * MAX_TEXT)[:MAX_TEXT]
        begun = time.process_time()
        compiled.search(text)
        assert time.process_time() - begun < 1.0, unit
