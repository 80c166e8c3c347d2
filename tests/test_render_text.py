"""The text of a report: what it says, in which order, and what it never lets through to a terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
import sample_reports
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from torchdoctor.model import (
    ONLY_RANK,
    Evidence,
    FirstFailure,
    Fix,
    Frame,
    Link,
    Outcome,
    Report,
    Role,
    Severity,
    Standing,
    Suspect,
)
from torchdoctor.render.clean import clean, encodable
from torchdoctor.render.html import to_html
from torchdoctor.render.markdown import to_markdown
from torchdoctor.render.text import render
from torchdoctor.render.words import time_of

WIDTHS = (20, 40, 80, 120)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def shown(
    report: Report,
    *,
    width: int = 80,
    height: int = 1000,
    color: bool = False,
    verbose: bool = False,
    encoding: str = "utf-8",
    heading: str | None = None,
) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    render(report, stream=stream, width=width, height=height, color=color, verbose=verbose, heading=heading)
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_the_verdict_comes_first_with_rule_standing_and_first_rank() -> None:
    lines = shown(sample_reports.DIAGNOSED).splitlines()
    assert lines[:3] == [
        "✗ A class label lies outside [0, num_classes)",
        "  cuda-assert-label-range, confirmed",
        "  rank 3 on node12 failed first at 2026-05-01 12:00:01.250+02:00 (time stamps)",
    ]


def test_everything_of_the_diagnosis_is_said_in_order() -> None:
    text = shown(sample_reports.DIAGNOSED, width=120)
    marks = [
        "--> /home/me/project/train.py:22, in training_step",
        "loss = F.cross_entropy(logits, labels)",
        "train.log:812 (rank 3)",
        "Assertion `t >= 0 && t < n_classes` failed.",
        "1. Bring the labels into 0 … num_classes - 1",
        "2. Reinstall torch. (changes the environment)",
        "$ pip install 'torch==2.13.0'",
        "The loss kernel reads one logit per label. A label that is negative has none.",
        "$ CUDA_LAUNCH_BLOCKING=1 python train.py",
        "assert kernel: nll_loss_forward",
        "A CUDA assertion stopped a kernel  cuda-assert-other",
        "train.log:830 (rank 3)  RuntimeError: CUDA error: device-side assert triggered",
        "train.log:1990 (rank 0)",
        "? The model and its activations do not fit into the GPU  cuda-oom-capacity, possible",
        "train.log:5  CUDA out of memory.",
        "The log ends in the middle of a line.",
    ]
    places = [text.find(mark) for mark in marks]
    assert -1 not in places
    assert places == sorted(places)


def test_reasons_facts_and_references_are_for_verbose() -> None:
    hidden = (
        "torch.version (not-asked)",
        "the message belongs only to this cause",
        "torch.version = 2.13.0",
        "https://docs.pytorch.org",
    )
    assert not [text for text in hidden if text in shown(sample_reports.DIAGNOSED)]
    assert not [text for text in hidden if text not in shown(sample_reports.DIAGNOSED, verbose=True)]


def test_the_verdict_is_repeated_when_the_text_is_higher_than_the_screen() -> None:
    text = shown(sample_reports.DIAGNOSED, height=24)
    verdict = "✗ A class label lies outside [0, num_classes)"
    assert text.count(verdict) == 2
    assert text.rstrip().splitlines()[-3] == verdict
    assert shown(sample_reports.DIAGNOSED, height=1000).count(verdict) == 1


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sample_reports.ALL)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_screen(name: str, width: int, verbose: bool) -> None:
    for line in shown(sample_reports.ALL[name], width=width, verbose=verbose).splitlines():
        if not line.lstrip().startswith(("$ ", ">>> ")):  # a command to copy is never cut
            assert cell_len(line) <= width, line


def test_a_command_is_never_cut_or_wrapped() -> None:
    run = "python -c '" + "x" * 200 + "'"
    report = replace(
        sample_reports.DIAGNOSED,
        diagnoses=(replace(sample_reports.LABEL_RANGE, fixes=(Fix("Do it.", run),)),),
    )
    assert f"$ {run}\n" in shown(report, width=40)


def test_wide_characters_count_twice() -> None:
    evidence = Evidence("没有那个文件或目录" * 40, "日志.log", 3)
    report = replace(
        sample_reports.DIAGNOSED, diagnoses=(replace(sample_reports.OUT_OF_MEMORY, evidence=(evidence,)),)
    )
    lines = shown(report, width=40).splitlines()
    assert max(map(cell_len, lines)) <= 40
    assert any(line.endswith("…") for line in lines)


def test_long_evidence_is_cut_and_whole_with_verbose() -> None:
    evidence = Evidence("start " + "word " * 200 + "FINISH", "train.log", 3)
    report = replace(
        sample_reports.DIAGNOSED, diagnoses=(replace(sample_reports.OUT_OF_MEMORY, evidence=(evidence,)),)
    )
    short = shown(report)
    assert "start" in short
    assert "FINISH" not in short
    assert "…" in short
    assert "FINISH" in shown(report, verbose=True)


def test_many_consequences_are_counted() -> None:
    report = replace(
        sample_reports.DIAGNOSED,
        diagnoses=(replace(sample_reports.LABEL_RANGE, leads_to=sample_reports.LABEL_RANGE.leads_to * 10),),
    )
    assert "and 17 more (--verbose shows all)" in shown(report)
    assert "more (--verbose" not in shown(report, verbose=True)


@pytest.mark.parametrize(
    ("severity", "standing", "role", "first", "words"),
    [
        (Severity.FATAL, Standing.CONFIRMED, Role.CAUSE, "✗", "confirmed"),
        (Severity.FATAL, Standing.POSSIBLE, Role.CAUSE, "✗", "possible, not proven"),
        (Severity.WARNING, Standing.CONFIRMED, Role.CAUSE, "!", "confirmed; a warning"),
        (Severity.INFO, Standing.CONFIRMED, Role.CONSEQUENCE, "?", "its cause is not in the text"),
        (Severity.FATAL, Standing.UNLIKELY, Role.CAUSE, "✗", "unlikely"),
    ],
)
def test_marks_and_words_carry_the_meaning(
    severity: Severity, standing: Standing, role: Role, first: str, words: str
) -> None:
    diagnosis = replace(sample_reports.OUT_OF_MEMORY, severity=severity, standing=standing, role=role)
    lines = shown(Report(Outcome.DIAGNOSED, ("a.log",), (diagnosis,))).splitlines()
    assert lines[0].startswith(first + " ")
    assert words in lines[1]


def test_cause_place_and_first_action_come_within_twelve_lines() -> None:
    lines = shown(sample_reports.DIAGNOSED).splitlines()
    assert lines[3].startswith("  --> /home/me/project/train.py:22")
    assert any("1. Bring the labels" in line for line in lines[:12])


def test_three_fixes_and_what_goes_beyond_the_explanation() -> None:
    fixes = tuple(Fix(f"Do number {number}.") for number in range(1, 6))
    cause = replace(sample_reports.LABEL_RANGE, fixes=fixes, more="A word more.", decide_note="Ask rank 3.")
    report = Report(Outcome.DIAGNOSED, (), (cause,))
    short, long = shown(report), shown(report, verbose=True)
    assert "3. Do number 3." in short
    assert "and 2 more (--verbose shows all)" in short
    assert "Ask rank 3." in short
    assert [text for text in ("Do number 4.", "A word more.") if text in short] == []
    assert [text for text in ("Do number 5.", "A word more.") if text not in long] == []


@pytest.mark.parametrize(
    ("frame", "step"),
    [
        (None, "logging.exception()"),
        (Frame("/venv/site-packages/vllm/x.py", 3, "f", package="vllm"), "Update vllm to its newest release"),
        (Frame("<ipython-input-5-25c2>", 3, "<module>"), "%debug"),
        (Frame("/tmp/ipython-input-1158371273.py", 1, "<cell line: 0>"), "%debug"),
        (Frame("C:\\Users\\u\\AppData\\Local\\Temp\\ipykernel_412\\99.py", 2, "<module>"), "%debug"),
        (Frame("/home/me/net.ipynb", 3, ""), "%debug"),
        (Frame("/home/me/widget.py", 3, "turn"), "at widget.py:3 or in what that calls"),
    ],
)
def test_an_unknown_failure_gets_the_step_that_tells_more(frame: Frame | None, step: str) -> None:
    suspect = Suspect(
        "KeyError", "'net.3' not in /data/x.pt at 0x7f3 (12 of 40)", None, frame, Evidence("KeyError")
    )
    text = shown(Report(Outcome.UNRECOGNISED, ("a.log",), suspect=suspect))
    assert step in " ".join(text.split())
    assert "KeyError 'net.3' not in at (of)" in text


@pytest.mark.parametrize(("marks", "seen"), [((0, 0), "--> /a.py:1 log(f"), ((110, 117), "{acc:f}")])
def test_a_long_line_shows_the_part_that_python_marks(marks: tuple[int, int], seen: str) -> None:
    frame = Frame("/a.py", 1, "", f'log(f"{"_" * 104}{{acc:f}}{"-" * 60}")', marks=marks)
    text = shown(
        Report(Outcome.UNRECOGNISED, ("a.log",), suspect=Suspect("E", "e", None, frame, Evidence("e")))
    )
    assert seen in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_an_unknown_failure_names_the_suspect_and_the_way_to_a_rule() -> None:
    assert "docs/rule-format.md" not in shown(sample_reports.UNRECOGNISED)
    text = shown(sample_reports.UNRECOGNISED, verbose=True)
    assert text.startswith("? A failure that no rule knows, in train.log\n")
    assert "ranks 0, 1 failed first; which of them is unclear (order of lines only)" in text
    assert "BrokenWidgetError: the widget broke\n    in two\n" in text
    assert "train.log:7 (rank 1)" in text
    assert "--> widget.py:3, in turn" in text
    assert "docs/rule-format.md" in text
    assert "CONTRIBUTING.md" in text


def test_no_failure_is_said() -> None:
    text = shown(sample_reports.NO_FAILURE)
    assert text.startswith("✓ No failure found in train.log\n")
    assert "A warning that means nothing." in text


@pytest.mark.parametrize(("rank", "line"), [(0, ""), (3, "  rank 3 (the only rank that the text names)\n")])
def test_a_rank_that_is_alone_was_not_first(rank: int, line: str) -> None:
    first = replace(sample_reports.LABEL_RANGE, rank=rank)
    alone = FirstFailure(rank, None, None, ONLY_RANK)
    text = shown(Report(Outcome.DIAGNOSED, ("a",), (first,), first_failure=alone))
    assert "failed first" not in text
    assert line in text
    assert "on rank" not in text


def test_a_tick_is_earned_by_a_good_end() -> None:
    open_end = Report(Outcome.NO_FAILURE, ("a.log",), notes=("It ends at step 3.",), open_end=True)
    assert shown(open_end).startswith("– No failure so far in a.log\n")
    got_over = replace(open_end, got_over=True)
    assert shown(got_over).startswith(
        "! No failure ended the run in a.log; it continued after the errors below\n"
    )
    for report, mark in ((open_end, "–"), (got_over, "!")):
        assert f"### {mark} No failure" in to_markdown(report)
        assert f'<span class="mark ask">{mark}</span>No failure' in to_html([report])


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (("<stdin>",), "the standard input"),
        (("-",), "the standard input"),
        ((), "the input"),
        (("a", "b"), "2 files"),
    ],
)
def test_the_input_is_named(source: tuple[str, ...], named: str) -> None:
    assert shown(Report(Outcome.NO_FAILURE, source)) == f"✓ No failure found in {named}\n"


def test_a_frame_of_a_package_is_said_to_be_one() -> None:
    frame = Frame("site-packages/trainer/loop.py", 9, "fit", "x()", package="trainer")
    report = Report(Outcome.DIAGNOSED, ("a",), (replace(sample_reports.LABEL_RANGE, frame=frame),))
    assert "  in code of trainer (site-packages/trainer/loop.py:9); none of your own is in" in shown(report)
    assert "-->" not in shown(report)


def test_colour_only_when_asked_and_only_as_colour() -> None:
    plain = shown(sample_reports.DIAGNOSED)
    colored = shown(sample_reports.DIAGNOSED, color=True)
    assert "\x1b" not in plain
    assert ESCAPE.search(colored)
    assert ESCAPE.sub("", colored) == plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_marks_fall_back_where_the_encoding_lacks_them(encoding: str) -> None:
    assert shown(sample_reports.DIAGNOSED, encoding=encoding).startswith("x A class label")
    assert shown(sample_reports.NO_FAILURE, encoding=encoding).startswith("ok No failure")


def test_characters_that_the_encoding_lacks_stay_readable() -> None:
    assert encodable("没 – ok", "ascii") == "\\u6ca1 - ok"
    assert encodable("é – ok", "latin-1") == "é - ok"
    assert encodable("没 – ok", "utf-8") == "没 – ok"


def test_markup_of_a_log_is_text() -> None:
    evidence = Evidence("[bold red]not markup[/bold red] :smile: [link=x]", "train.log", 3)
    report = Report(Outcome.DIAGNOSED, ("a",), (replace(sample_reports.OUT_OF_MEMORY, evidence=(evidence,)),))
    assert "[bold red]not markup[/bold red] :smile: [link=x]" in shown(report, color=True)


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2|data\x1b\\after", "after"),
        ("\x9b2Jclear", "clear"),
        ("\x1b(Bascii", "ascii"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("a\x08b\x00c\x7f", "abc"),
        ("tab\there", "tab here"),
        ("line\r\nbreak", "line  break"),
        ("\u202egnirts\u202c \u2066x\u2069 \u200b\ufeff", "gnirts x "),
        ("no\xa0break\u2028", "no break "),
        ("\udce9", "\ufffd"),
        ("没有 é ✗ 😀", "没有 é ✗ 😀"),
    ],
)
def test_clean(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@given(st.text())
def test_clean_leaves_only_printable_characters(text: str) -> None:
    assert clean(text).isprintable()


@given(st.text(alphabet="\x1b\x9b\x9d[]();?0123456789mJHABP\\\x07ab", max_size=60))
def test_no_mixture_of_escape_sequences_gets_through(text: str) -> None:
    assert not set(clean(text)) & {"\x1b", "\x9b", "\x9d", "\x07"}


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1), st.sampled_from(WIDTHS))
def test_hostile_text_anywhere_in_a_report(text: str, width: int) -> None:
    diagnosis = replace(
        sample_reports.LABEL_RANGE,
        title=text,
        why=text,
        frame=Frame(text, 1, text, text),
        evidence=(Evidence(text, text, 1), Evidence(text, fact=text, against=True)),
        fixes=(Fix(text, text, text),),
        decide_with=text,
        missing=(text,),
        references=(text,),
    )
    report = Report(Outcome.DIAGNOSED, (text,), (diagnosis, diagnosis), notes=(text,))
    output = shown(report, width=width, verbose=True, heading=text)
    assert output.replace("\n", "").isprintable()


def test_many_ranks_are_written_as_ranges() -> None:
    failure = FirstFailure(0, None, None, "", (0, 1, 4, 5, 6, 7, 9))
    text = shown(replace(sample_reports.UNRECOGNISED, first_failure=failure))
    assert "ranks 0, 1, 4-7, 9 failed first; which of them is unclear\n" in text


def test_the_same_words_are_quoted_once() -> None:
    evidence = (Evidence("no gradient came", "a.log", 3, 0), Evidence("no gradient came", "a.log", 9, 1))
    report = Report(
        Outcome.DIAGNOSED, ("a.log",), (replace(sample_reports.OUT_OF_MEMORY, evidence=evidence),)
    )
    text = shown(report)
    assert text.count("no gradient came") == 1
    assert "a.log:9 (rank 1)  the same again" in text


def test_a_long_folder_is_left_out_of_places() -> None:
    source = "/data/" + "runs/" * 10 + "train.log"
    evidence = (Evidence("no gradient came", source, 3),)
    report = Report(Outcome.DIAGNOSED, (source,), (replace(sample_reports.OUT_OF_MEMORY, evidence=evidence),))
    assert "    train.log:3  no gradient came\n" in shown(report)
    short = Report(
        Outcome.DIAGNOSED,
        ("runs/a.log",),
        (replace(sample_reports.OUT_OF_MEMORY, evidence=(Evidence("no gradient came", "runs/a.log", 3),)),),
    )
    assert "    runs/a.log:3  no gradient came\n" in shown(short)


@pytest.mark.parametrize(
    ("iso", "written"),
    [
        ("2026-05-01T12:00:01.123456789+02:00", "2026-05-01 12:00:01.123+02:00"),
        ("--11-27T23:47:16.644959436", "11-27 23:47:16.644"),
        ("2026-05-01T12:00:01Z", "2026-05-01 12:00:01Z"),
        ("12:00:01", "12:00:01"),
    ],
)
def test_times_for_people(iso: str, written: str) -> None:
    assert time_of(iso) == written


def test_a_cut_line_loses_its_stamp_first() -> None:
    line = (
        "[E1127 23:47:16.644959436 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught a timeout " + "x" * 90
    )
    link = Link("nccl-timeout", "A collective operation timed out", Evidence(line, "a.log", 5))
    report = Report(Outcome.DIAGNOSED, ("a.log",), (replace(sample_reports.LABEL_RANGE, leads_to=(link,)),))
    assert "a.log:5  … [Rank 1] Watchdog caught a timeout x" in shown(report)
    assert line in shown(report, width=200)


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("python -c 'print(1)'", "$ "),
        ("print(labels.max())", ">>> "),
        ("import torch; torch.zeros(1)", ">>> "),
        ("ENV MAX_JOBS=4", "  "),
        ("RUN pip install ninja", "  "),
    ],
)
def test_the_prompt_tells_shell_from_python(command: str, first: str) -> None:
    diagnosis = replace(sample_reports.LABEL_RANGE, decide_with=command)
    assert f"\n    {first}{command}\n" in shown(Report(Outcome.DIAGNOSED, (), (diagnosis,)))


def test_a_long_path_of_a_frame_keeps_its_end() -> None:
    frame = Frame("/opt/" + "deep/" * 30 + "trainer.py", 3045, "compute_loss", "outputs = model(**inputs)")
    text = shown(Report(Outcome.DIAGNOSED, (), (replace(sample_reports.LABEL_RANGE, frame=frame),)), width=60)
    (place,) = [line for line in text.splitlines() if "-->" in line]
    assert place.startswith("  --> …")
    assert place.endswith("deep/trainer.py:3045")
    assert "\n      in compute_loss\n      outputs = model(**inputs)\n" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_proof_is_whole_in_narrow_terminals_too(width: int) -> None:
    """The end of a quote is often what proves it: as much of it stands on 40 columns as on 80."""
    text = (
        "/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: "
        "block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
    )
    cause = replace(sample_reports.LABEL_RANGE, evidence=(Evidence(text, "rank0.log", 16, 0),))
    told = "".join(shown(Report(Outcome.DIAGNOSED, (), (cause,)), width=width).split())
    assert "".join(text.split()) in told


def test_incidents_and_the_reading_are_said() -> None:
    text = " ".join(shown(sample_reports.UNRECOGNISED, width=200).split())
    assert "widgets refused the call of widgets.core.turn; it wants: 3-D; it got: 2-D." in text
    assert "Incidents train.log: a failure that no rule knows other.log: A class label lies outside" in text
