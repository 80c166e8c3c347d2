"""The page: one file, nothing of a report can break out of it, and the bars are what was measured."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from printed import Printed

from torchdoctor.model import CheckResult, Evidence, Fact, NotChecked, Outcome, Report, Verdict
from torchdoctor.render.chart import bars, to_html

from .test_cli_selftest import LSTSQ, needs_torch

VOID = {"meta", "br", "rect", "line"}


class Page(HTMLParser):
    """Counts tags, and holds that each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def report(name: str = "selftest.hbm@cuda:0.hbm", value: float = 3000.0, verdict: str = "pass") -> Report:
    return Report(
        Outcome.DIAGNOSED,
        checks=(CheckResult("hbm@cuda:0", Verdict(verdict), "Speed", observed="3000", expected="2400"),),
        facts=(
            Fact.known(name, value, "floor for this model", f"{verdict}: 3000 GB/s"),
            Fact.known(f"{name}.at_least", 2400.0, "floor for this model", "GB/s"),
            Fact.known("selftest.gemm-exact@cuda:0.bf16", 0.0, "", "pass: 0 wrong"),
            Fact.known("selftest.gemm-exact@cuda:0.bf16.at_most", 0.0),
        ),
    )


def test_a_bar_ends_at_its_share_of_the_mark_in_decades() -> None:
    places = {}
    for value in (240.0, 1200.0, 2400.0, 24000.0, 2.4e9):
        page = Page(to_html(report(value=value)))
        (bar,) = (attributes for tag, attributes in page.seen if tag == "rect")
        (mark,) = (attributes for tag, attributes in page.seen if tag == "line")
        half = float(mark["x1"] or 0) - float(bar["x"] or 0)
        places[value] = float(bar["width"] or 0) / half - 1  # of the way from the mark to an edge
    assert places[2400.0] == pytest.approx(0)
    assert places[1200.0] == pytest.approx(-0.602, abs=0.01)  # the narrowest scale has half a decade
    assert (places[240.0], places[24000.0]) == (pytest.approx(-1, abs=0.01), pytest.approx(1))
    assert places[2.4e9] == pytest.approx(1)


def test_only_what_has_a_limit_that_is_not_zero_is_drawn() -> None:
    (bar,) = bars(report(), "at_least")
    assert (bar.value, bar.limit, bar.verdict, bar.unit) == (3000.0, 2400.0, "pass", "GB/s")
    assert bars(report(), "at_most") == ()


def test_what_failed_stands_first_and_is_coloured() -> None:
    facts = report().facts + report("selftest.hbm@cuda:1.hbm", 1800.0, "fail").facts
    page = Page(to_html(Report(Outcome.DIAGNOSED, facts=facts)))
    assert [attributes["class"] for tag, attributes in page.seen if tag == "rect"] == ["fail", "pass"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 1e-300, 1e300])
def test_a_value_out_of_all_bounds_still_gives_a_page(value: float) -> None:
    text = to_html(report(value=value))
    Page(text)
    assert "nan" not in " ".join(re.findall(r'width="([^"]*)"', text))


def test_nothing_of_a_report_becomes_markup() -> None:
    evil = "</style><script>alert(1)</script>\x1b[31m\u202e&\"'"
    text = to_html(
        Report(
            Outcome.DIAGNOSED,
            checks=(
                CheckResult(evil, Verdict.FAIL, evil, None, evil, evil, evil, (Evidence(evil),), evil, evil),
            ),
            not_checked=(NotChecked(evil, evil),),
            notes=(evil,),
            facts=report(f"selftest.{evil}").facts,
        ),
        evil,
    )
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.seen}
    assert not any(
        name.startswith("on") or name in ("src", "href") for _, found in page.seen for name in found
    )
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert any("<script>" in words for words in page.words)


@pytest.mark.usefixtures("imported")
@needs_torch
def test_the_command_writes_a_page(printed: Printed) -> None:
    page = Page(printed([*LSTSQ, "--format", "html"]))
    assert sum(tag == "rect" for tag, _ in page.seen) > 20
    assert "lstsq-rank@cpu" in page.words
