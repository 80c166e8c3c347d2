"""Templates of messages, and the nearest of the names that a person mistyped."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from pace import bounded
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog import template
from torchdoctor.catalog.linear import MAX_SOURCE, MAX_TEXT, complaint
from torchdoctor.catalog.nearest import LEAST, MESSAGES, messages_text, nearest, normalised
from torchdoctor.catalog.page import readable

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


# template
def find(source: str, text: str) -> dict[str, object] | None:
    parsed = template.parse(source)
    found = template.compiled(parsed.pattern).search(template.fold(text))
    if found is None:
        return None
    return {name: template.value_of(kind, found.group(name)) for name, kind in parsed.holes.items()}


def test_sizes_are_bytes_and_integers_are_numbers() -> None:
    text = "Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.33 GiB of which 1 MiB is free"
    found = find("Tried to allocate {want:size}. GPU {gpu:int} has a total capacity of {total:size}", text)
    assert found == {"want": 2684354560, "gpu": 3, "total": int(79.33 * 1024**3)}


@pytest.mark.parametrize(
    ("text", "size"),
    [("512 bytes", 512), ("20.00 MiB", 20971520), ("1.00 KiB", 1024), ("3 GB", 3 * 1024**3), ("7B", 7)],
)
def test_units(text: str, size: int) -> None:
    assert find("allocate {want:size}", f"allocate {text}") == {"want": size}


def test_matches_inside_a_longer_text_and_over_line_breaks() -> None:
    text = "prefix: could not be completed because the input is not \n   positive-definite (order 3)"
    assert find("the input is not positive-definite (order {order:int})", text) == {"order": 3}


@pytest.mark.parametrize(
    ("source", "text", "value"),
    [
        (
            "requires compiling PyTorch with {x:word}",
            "requires compiling PyTorch with LAPACK. Please use",
            "LAPACK",
        ),
        ("which was written by torch {x:version}", "which was written by torch 2.4.1.", "2.4.1"),
        ("could not read the file {x:path}", "could not read the file /srv/a.pt, or", "/srv/a.pt"),
        ("unknown key '{x:word}' in it", "unknown key 'module.' in it", "module."),
    ],
)
def test_what_ends_a_sentence_is_no_part_of_the_last_value(source: str, text: str, value: str) -> None:
    assert find(source, text) == {"x": value}
    assert readable(template.parse(source).pattern) == source


def test_doubled_braces_are_braces() -> None:
    assert find("Unable to load any of {{{names:rest}}}", "Unable to load any of {liba.so, libb.so}") == {
        "names": "liba.so, libb.so"
    }


def test_regular_expression_characters_are_literal() -> None:
    assert find("size (a.b)* [x]", "size (a.b)* [x]") == {}
    assert find("size (a.b)* [x]", "size (aXb) [x]") is None


@pytest.mark.parametrize(
    "source",
    [
        "open {hole",
        "close } here",
        "{name:unknown} text",
        "{a:int} and {a:int}",
        "",
        "   ",
        "{not-a-name:int} x",
    ],
)
def test_faulty_templates_are_refused(source: str) -> None:
    with pytest.raises(template.TemplateError):
        template.parse(source)


def test_the_longest_literal_run_is_the_prefilter() -> None:
    assert template.parse("a {x:int} much longer run {y:word} b").literal == " much longer run "


def test_many_holes_stay_fast_on_hostile_text() -> None:
    parsed = template.parse("start {a:rest} middle {b:rest} end {c:word} stop")
    text = "start " + "middle " * 3000 + "end " * 3000
    bounded(0.5, lambda: template.compiled(parsed.pattern).search(text))


# Which rules know messages like one that no rule knows


ROWS = [
    ("dtype-mismatch", "RuntimeError: expected a and b to have the same dtype, but got: float != double"),
    ("dtype-mismatch", "RuntimeError: expected a and b to have the same dtype, but got: long != int"),
    ("matmul-shape", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
    ("cuda-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
]


# a word that many messages have tells nothing, so there must be many
OTHERS = [(f"other-{a}", f"RuntimeError: {a * 4} failed") for a in "bcdfghjklmnpqrstvwxz"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / MESSAGES).write_text(messages_text([*ROWS, *OTHERS]), encoding="utf-8")
    return str(tmp_path)


def test_words_without_paths_numbers_and_signs() -> None:
    assert normalised("OSError: /home/me/a.pt: 12 bytes of loadStateDict_v2 (module.weight)") == (
        "os error bytes of load state dict module weight"
    )


def test_a_message_stands_once_for_each_rule(folder: str) -> None:
    assert Path(folder, MESSAGES).read_text(encoding="utf-8").count("\n") == len(ROWS) + len(OTHERS)
    assert messages_text([ROWS[2], ROWS[2], ("x", "12 / 3")]).count("\n") == 1


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        (
            "RuntimeError: linalg.solve: Expected A and B to have the same dtype, found Float",
            ["dtype-mismatch"],
        ),
        ("ValueError: shapes (3,4) and (5,6) cannot be multiplied", ["matmul-shape"]),
        ("KeyError: 'labels'", []),  # "error" alone makes nothing alike
        ("", []),
        ("12 34", []),
    ],
)
def test_the_nearest_rule(folder: str, message: str, rules: list[str]) -> None:
    assert [one.rule for one in nearest(folder, message)] == rules


def test_the_same_message_is_wholly_alike(folder: str) -> None:
    first = nearest(folder, ROWS[3][1])[0]
    assert (first.rule, round(first.likeness, 6)) == ("cuda-oom", 1.0)


def test_a_folder_without_messages_has_none(tmp_path: Path) -> None:
    assert nearest(str(tmp_path), ROWS[0][1]) == []


def test_explain_says_what_an_unknown_failure_resembles(tmp_path: Path, printed: Printed) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/v/site-packages/solver/core.py", line 3, in run\n'
        "    check(a, b)\nRuntimeError: solver: expected a and b to have the same dtype, got half\n",
        encoding="utf-8",
    )
    report = json.loads(printed(["explain", str(log), "--format", "json", "--fail-on", "unknown"], 4))
    assert (report["outcome"], report["diagnoses"]) == ("unrecognised", [])
    title = catalog.load().rule("dtype-mismatch").title
    assert {"rule": "dtype-mismatch", "title": title} in report["suspect"]["resembles"]
    for form in ("text", "markdown", "html"):
        shown = printed(["explain", str(log), "--format", form])
        assert "Resembles these, but this message is not known for them" in shown
        assert "dtype-mismatch" in shown


def test_authors_find_the_rule_of_a_new_wording(printed: Printed) -> None:
    found = json.loads(
        printed(["rules", "nearest", "expected to have the same dtype but found Half", "--format", "json"])
    )
    assert found[0]["rule"] == "dtype-mismatch"
    assert found[0]["likeness"] > LEAST
    assert (
        printed(["rules", "nearest", "qwertz"]) == "no known message is near enough: give more of its words\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "knob.c:3:10: fatal error: knob.h: No such file or directory\n",
        "ERROR: Could not find a version that satisfies the requirement knobs==9 (from versions: none)\n",
        "run.sh: line 3: 211 Aborted                 (core dumped) ./knobs\n",
        'Traceback (most recent call last):\n  File "/v/site-packages/knob/core.py", line 3, in <module>\n'
        "    import dials\nModuleNotFoundError: No module named 'dials'\n",
    ],
)
def test_what_is_read_whole_resembles_nothing(tmp_path: Path, printed: Printed, text: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(text, encoding="utf-8")
    report = json.loads(printed(["explain", str(log), "--format", "json", "--fail-on", "unknown"], 4))
    assert report["suspect"]["reading"] is not None
    assert report["suspect"]["resembles"] == []
