"""Markdown for issues and HTML pages: what they say, what they hold back, what no log can do to them."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sample_reports
from hypothesis import given, settings
from hypothesis import strategies as st
from printed import Printed
from sample_reports import ALL, CHECKED, DIAGNOSED, LABEL_RANGE

from torchdoctor.model import (
    Diagnosis,
    Evidence,
    Fact,
    Frame,
    Moment,
    Outcome,
    Part,
    Report,
    Role,
    Severity,
    Standing,
)
from torchdoctor.render import svg
from torchdoctor.render.github import step_summary, to_github
from torchdoctor.render.html import to_html
from torchdoctor.render.markdown import LIMIT, code, documents, escape, fence, to_markdown

VOID = {"meta", "line"}

SAMPLES = [value for value in vars(sample_reports).values() if isinstance(value, Report)]


class Page(HTMLParser):
    """Reads a page as a browser does: its tags, attributes and words; unclosed or crossed tags are noted."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.crossed: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.crossed.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def hostile(text: str) -> Report:
    """A report whose every text from outside is ``text``."""
    report = sample_reports.DIAGNOSED
    first = replace(
        report.diagnoses[0],
        evidence=(Evidence(text, text, 3, 1),),
        frame=Frame(text, 4, text, text),
        missing=(text,),
    )
    return replace(
        report,
        diagnoses=(first, *report.diagnoses[1:]),
        notes=(text,),
        facts=(Fact.known("a.b", text, text),),
    )


@pytest.mark.parametrize("report", SAMPLES)
def test_every_sample_makes_a_whole_page_and_a_short_markdown(report: Report) -> None:
    page = Page(to_html([report]))
    assert page.open == []
    assert page.crossed == []
    text = to_markdown(report)
    assert len(text) < LIMIT
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 0
    assert text.count("<details>") == text.count("</details>")


def test_the_markdown_says_verdict_proof_place_and_fixes_in_order() -> None:
    text = to_markdown(sample_reports.DIAGNOSED)
    marks = [
        "### ✗ A class label lies outside",
        "`cuda-assert-label-range`, confirmed",
        "rank 3 on node12 failed first",
        "**Evidence**\n\n```text\ntrain.log:812 (rank 3)",
        "**Where**: `/home/me/project/train.py:22` in `training_step`",
        "```python\nloss = F.cross_entropy(logits, labels)",
        "2. Reinstall torch. *(changes the environment)*\n   ```sh\n   pip install 'torch==2.13.0'\n   ```",
        "<summary>What followed from it (2)</summary>",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = Page(to_html(SAMPLES, headings=[str(number) for number in range(len(SAMPLES))]))
    assert {tag for tag, _ in page.tags} & {
        "script",
        "iframe",
        "img",
        "link",
        "object",
        "embed",
        "form",
    } == set()
    policies = [
        attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "src"]
    assert "url(" not in to_html(SAMPLES)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</pre></details></style><h1>x</h1>",
        "````\n```\n# x\n````",
        "</details>\n\n<details><summary>x",
        "![x](https://evil.example/x.png) [a](javascript:alert(1)) @everyone #1 https://evil.example",
        "\x1b]0;title\x07\x1b[31mred\u202e\u2066",
    ],
)
def test_what_a_log_says_stays_text(text: str) -> None:
    page = Page(to_html([hostile(text)]))
    assert page.open == []
    assert page.crossed == []
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    shown = to_markdown(hostile(text))
    outside = re.sub(r"(?ms)^( *)(`{3,})\w*\n.*?^ *\2$", "", shown)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert not re.search(
        r"<(?:script|img|h1)|!\[x\]\(|(?<!\w)@\w|(?<!\w)#\d|evil\.example\)|\x1b|\u202e", outside
    )
    assert outside.count("<details>") == outside.count("</details>")


def test_a_long_report_is_cut_to_what_an_issue_holds_and_stays_whole() -> None:
    line = "x" * 300 + "`" * 5 + "\n"
    first = replace(
        sample_reports.DIAGNOSED.diagnoses[0],
        evidence=tuple(Evidence(line * 60, "a.log", number, 0) for number in range(40)),
        missing=tuple(f"fact{number} " + "z" * 200 for number in range(900)),
    )
    report = replace(
        sample_reports.DIAGNOSED,
        diagnoses=(first,),
        facts=tuple(Fact.known("a.b", "y" * 900) for _ in range(500)),
    )
    text = to_markdown(report)
    assert len(text) <= LIMIT
    assert text.startswith("### ✗ A class label")
    assert text.count("<details>") == text.count("</details>")
    assert text.rstrip().endswith("longer than an issue may be)*")


def test_many_reports_share_the_room_of_one_issue() -> None:
    reports = [sample_reports.DIAGNOSED] * 300
    text = documents(reports, headings=[f"log{number}" for number in range(300)])
    assert len(text) <= LIMIT
    assert "more reports, left out here" in text
    assert text.count("## `log") > 40


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_code_and_fences_cannot_be_closed_from_inside(text: str) -> None:
    block = fence(text, 1000).split("\n")
    assert block[0].startswith("```")
    assert not [line for line in block[1:-1] if line.strip() == block[-1]]
    span = code(text)
    ticks = re.match(r"`+", span)
    assert ticks[0] not in span[len(ticks[0]) : -len(ticks[0])].strip("`") or len(ticks[0]) == 1
    assert "\n" not in escape(text)


def mark(rank: int, time: str | None, own: bool, first: bool = False, kind: str = "k") -> svg.Mark:
    return svg.Mark(rank, "n1", time, own, first, kind, "text", "a.log:1")


def test_the_timeline_places_ranks_by_time() -> None:
    marks = [
        mark(1, "2026-05-01T12:00:04Z", False),
        mark(0, "2026-05-01T12:00:00Z", True, first=True, kind="cuda-oom-capacity"),
        mark(2, "2026-05-01T12:00:02Z", False),
    ]
    drawn = svg.timeline(marks)
    centres = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    (corner,) = (float(x) for x in re.findall(r'<rect x="([\d.]+)"', drawn))
    assert corner + 7 < centres[1] < centres[0]
    assert centres[1] == pytest.approx((corner + 7 + centres[0]) / 2, abs=0.2)
    assert "12:00:00.000 UTC" in drawn
    assert "4.000 s" in drawn
    assert ">cuda-oom-capacity<" in drawn


def test_the_timeline_says_when_there_are_no_times() -> None:
    drawn = svg.timeline([mark(0, "2026-05-01T12:00:00Z", True), mark(1, None, False)])
    assert "in the order of the lines" in drawn
    assert svg.timeline([mark(0, None, True)]) == ""


def test_of_a_thousand_ranks_those_that_failed_themselves_are_drawn() -> None:
    marks = [mark(rank, None, rank == 777) for rank in range(1000)]
    drawn = svg.timeline(marks)
    assert ">rank 777 n1<" in drawn
    assert drawn.count('class="lane"') == 1 + svg.GROUPS
    assert drawn.count('class="own"') == 1
    assert drawn.index('class="own"') < drawn.index('class="echo"')
    grid = svg.rank_map(marks)
    assert grid.count('class="own"') == 1
    assert "rank 777: text" in grid
    # what neighbours say alike is one piece: sixteen rows, one of them cut in two by rank 777
    assert grid.count('class="echo"') == 17


def test_a_thousand_ranks_stay_small_and_readable() -> None:
    times = [f"--05-01T12:00:{rank % 60:02d}.{rank:03d}456789" for rank in range(1024)]
    marks = [mark(rank, times[rank], rank % 512 == 7, rank == 7) for rank in range(1024)]
    drawn, grid = svg.timeline(marks), svg.rank_map(marks)
    assert len(drawn) < 300_000
    assert len(grid) < 20_000
    assert drawn.count('class="lane"') == 2 + svg.GROUPS
    assert "59." in drawn
    assert "UTC" not in drawn
    height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', drawn)[0])
    assert height < 800
    everybody = svg.timeline([mark(rank, times[rank], True, True) for rank in range(1024)])
    assert everybody.count('class="lane"') == svg.GROUPS


def test_a_few_marks_without_a_time_do_not_take_the_others_times() -> None:
    marks = [mark(rank, f"2026-05-01T12:00:0{rank}+0000", False) for rank in range(3)]
    drawn = svg.timeline([*marks, mark(3, None, True, True)])
    assert "1 without a time" in drawn
    assert "UTC" in drawn


def _incident(*moments: Moment) -> Report:
    """A cause of which rank 3 printed the evidence, beside what the ranks failed of."""
    cause = Diagnosis(
        "cuda-context-oom", "memory", "No memory for a context", Severity.FATAL, Role.CAUSE,
        Standing.CONFIRMED, rank=3, evidence=(Evidence("Cuda failure 2 'out of memory'", "a.log", 7, 3),),
    )  # fmt: skip
    return Report(Outcome.DIAGNOSED, ("a.log",), (cause,), timeline=moments)


def _cells(report: Report, kind: str) -> list[str]:
    """Classes of the marks in the row of that kind of the map of ranks and events, from left to right."""
    (grid,) = re.findall(r'<svg [^>]*aria-label="Which rank said what">(.*?)</svg>', to_html([report]))
    _, _, row = grid.partition(f">{kind}</text>")
    return re.findall(r'class="(own|first|echo)"', row.partition("<text")[0])


def test_the_cause_is_no_echo_where_the_rank_failed_of_something_else() -> None:
    also = ("cuda-context-oom",)
    own = Moment(3, None, None, Part.FIRST, "NCCL error", "nccl-cuda-error", None, "a.log", 5, also)
    echo = Moment(0, None, None, Part.ECHO, "NCCL error", "nccl-remote-error", None, "a.log", 9)
    report = _incident(own, echo)
    assert _cells(report, "cuda-context-oom") == ["first"]
    assert _cells(report, "nccl-cuda-error") == ["first"]
    assert _cells(report, "nccl-remote-error") == ["echo"]


def test_a_rank_that_only_waits_is_an_echo_of_the_cause_too() -> None:
    first = Moment(
        3, None, None, Part.FIRST, "sizes", "cuda-context-oom", None, "a.log", 7, ("nccl-timeout",)
    )
    also = ("cuda-context-oom",)
    waits = Moment(0, None, None, Part.ECHO, "timeout", "nccl-timeout", None, "a.log", 9, also)
    report = _incident(first, waits)
    assert sorted(_cells(report, "cuda-context-oom")) == ["echo", "first"]
    assert _cells(report, "nccl-timeout") == ["echo", "echo"]


def test_a_silent_first_rank_stands_in_the_row_of_the_cause() -> None:
    silent = Moment(1, None, None, Part.FIRST, "")
    waits = Moment(3, None, None, Part.ECHO, "timeout", "nccl-timeout", None, "a.log", 7)
    report = _incident(silent, waits)
    assert _cells(report, "cuda-context-oom") == ["first", "echo"]


# Annotations and step summaries of GitHub Actions: escaping, places, the limit of ten
ROOT = Path(__file__).parents[1]

LOG = """Traceback (most recent call last):
  File "/home/ann/work/p/train.py", line 4, in f
    y = x @ z
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x16 and 20x5)
"""


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What a runner makes of it, as its documentation says: (level, properties, message)."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        if match is None:
            continue
        properties = dict(pair.split("=", 1) for pair in match[2].split(","))
        for name, value in properties.items():
            properties[name] = value.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
        found.append((match[1], properties, match[3].replace("%0A", "\n").replace("%25", "%")))
    return found


def of(**changes: object) -> Report:
    return dataclasses.replace(DIAGNOSED, diagnoses=(dataclasses.replace(LABEL_RANGE, **changes),))


@pytest.mark.parametrize(
    "hostile", ["100%0A", "a::set-output name=x::y", "a\r\n::error::x", "\x1b]0;t\x07,:"]
)
def test_what_a_text_holds_stays_text(hostile: str) -> None:
    frame = dataclasses.replace(LABEL_RANGE.frame, file=hostile)  # type: ignore[type-var]
    text = to_github(of(title=hostile, frame=frame, evidence=(Evidence(hostile),)))
    ((level, properties, message),) = annotations(text)
    assert text.count("\n") == 1
    assert level == "error"
    assert set(properties) == {"file", "line", "title"}
    visible = hostile.replace("\x1b]0;t\x07", "").split()
    assert "".join(properties["file"].split()) == "".join(visible)
    assert all(word in message for word in visible)


def test_ten_of_a_level_are_shown_and_the_rest_counted() -> None:
    many = tuple(
        dataclasses.replace(LABEL_RANGE, severity=severity)
        for severity, number in ((Severity.FATAL, 13), (Severity.WARNING, 11), (Severity.INFO, 10))
        for _ in range(number)
    )
    text = to_github(dataclasses.replace(DIAGNOSED, diagnoses=many))
    levels = [level for level, _, _ in annotations(text)]
    assert [levels.count(level) for level in ("error", "warning", "notice")] == [10, 10, 10]
    assert text.splitlines()[-1] == "and 4 more, beyond the 10 of a level that GitHub shows"


@pytest.mark.parametrize("name", ALL)
def test_any_report_has_a_summary(name: str) -> None:
    report = ALL[name]
    assert 0 < len(step_summary(report)) <= LIMIT
    bad = [one for one in report.checks if one.verdict.value in ("fail", "warn")]
    assert len(annotations(to_github(report))) == len(report.diagnoses) + len(bad) + (
        report.outcome.value == "unrecognised"
    )
    assert all(one.id in step_summary(report) for one in (*bad, *report.not_checked))


def test_a_long_summary_ends_at_a_line() -> None:
    many = dataclasses.replace(CHECKED, not_checked=CHECKED.not_checked * 5_000)
    assert len(step_summary(many)) <= LIMIT
    assert step_summary(many).endswith("\n")


def test_explain_names_files_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    log, summary = tmp_path / "train.log", tmp_path / "summary.md"
    log.write_text(LOG, encoding="utf-8")
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home/ann/work/p")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ((_, properties, message),) = annotations(printed(["explain", "--format", "github", str(log)]))
    assert properties == {"file": "train.py", "line": "4", "title": "torchdoctor matmul-shape"}
    assert message.startswith("Matrix sizes do not fit: ")
    assert "train.py:4" in summary.read_text(encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "file"))
    assert "GITHUB_STEP_SUMMARY" in printed.errors(["explain", "--format", "github", str(log)])


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (["check", "--facts", "{facts}"], 1),
        (["gate", "--replay", "tests/gate/recorded/h100.json"], 12),
    ],
)
def test_checks(
    call: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    printed: Printed
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    facts = tmp_path / "facts.json"
    facts.write_text(
        '{"torch.installed": true, "shm.size_bytes": 67108864, "torch.import_ok": false}', "utf-8"
    )
    call = [word.format(facts=facts) for word in call]
    found = annotations(printed([*call, "--format", "github"], code))
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert found
    for _, properties, _ in found:
        assert properties["title"].removeprefix("torchdoctor ") in summary
