from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.catalog import template


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
