"""Titles of reports: what they tell where the body has lost it, and what they only name."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.model import EventKind

MESSAGE = "PytorchStreamReader failed reading zip archive: failed finding central directory"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "![grab](https://example.com/a.png)\n",
        "cc @ada @grace\n",
        "how to solve this one\n",
        "Fails for the second file only\n",
    ],
)
def test_a_title_with_an_exception_tells_it(body: str) -> None:
    title = read_text(f"# RuntimeError: {MESSAGE}\n{body}").events[0]
    assert title.told
    assert MESSAGE in title.text


@pytest.mark.parametrize("lead", ["训练阶段：", "[Bug] ", "Stage two: "])
def test_words_before_the_exception_are_no_part_of_it(lead: str) -> None:
    title = read_text(f"# {lead}RuntimeError: {MESSAGE}\n").events[0]
    assert (title.kind, title.type, title.text) == (EventKind.EXCEPTION, "RuntimeError", MESSAGE)


def test_a_title_may_be_the_name_of_a_class() -> None:
    assert read_text("# RendezvousTimeoutError\n").events[0].type == "RendezvousTimeoutError"


def test_a_failure_that_stands_in_the_body_needs_no_title() -> None:
    title = read_text(f"# RuntimeError: {MESSAGE}\nKeyError: 'stage'\n").events[0]
    assert title.kind is EventKind.LOG


def test_frames_and_message_in_one_line_without_a_head() -> None:
    text = f'`File "/a/torch/serialization.py", line 9, in load raise it RuntimeError: {MESSAGE}`'
    found = [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]
    assert [event.type for event in found] == ["RuntimeError"]
    assert found[0].frames[0].function == "load"


def test_a_stream_in_brackets_is_taken_off() -> None:
    text = '[run STDERR] Traceback (most recent call last):\n[run STDERR]   File "a.py", line 3, in f\n'
    event = read_text(f"{text}[run STDERR] ValueError: no\n").events[0]
    assert (event.type, event.text, len(event.frames)) == ("ValueError", "no", 1)


def test_what_a_change_does_away_with_is_quoted() -> None:
    text = "To avoid the following error:\n\n```\nRuntimeError: it broke here\n```\nI added a test.\n"
    assert all(event.quoted for event in read_text(text).events if event.kind is EventKind.EXCEPTION)


def test_a_title_above_the_bars_of_a_run_tells_it() -> None:
    bars = "".join(
        f"Loading shards: {done}%|###   | {done}/100 [00:0{done}<00:08]\n" for done in (2, 4, 6, 8)
    )
    title = read_text(f"# RuntimeError: {MESSAGE}\n\n{bars}trainable params: 4\n").events[0]
    assert (title.kind, title.text) == (EventKind.EXCEPTION, MESSAGE)
