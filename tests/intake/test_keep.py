"""Bounded memory: what is kept of long inputs, and of the output of a running program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from torchdoctor import catalog
from torchdoctor.intake import live, read_all, read_text
from torchdoctor.intake.keep import EQUAL_EVENTS, FIRST_EVENTS, FIRST_LINES, LAST_EVENTS, LAST_LINES, shape
from torchdoctor.intake.live import Output
from torchdoctor.model import EventKind, Form

LINES = 20_000


def test_the_first_and_last_plain_lines_are_kept() -> None:
    transcript = read_text("\n".join(f"item {n} of the list" for n in range(LINES)))
    numbers = [event.line for event in transcript.events]
    assert numbers == [*range(1, FIRST_LINES + 1), *range(LINES - LAST_LINES + 1, LINES + 1)]
    assert transcript.lines_read == LINES
    assert transcript.notes == (
        f"<text>: {LINES - FIRST_LINES - LAST_LINES:,} plain lines in the middle were read and not kept",
    )


def test_lines_of_interest_in_the_middle_are_kept_once_by_shape() -> None:
    lines = [f"item {n}" for n in range(LINES)]
    for n in range(5_000, 5_300):
        lines[n] = f"cannot open file {n}, skipped"
    lines[6_000] = "loss is nan"
    events = read_text("\n".join(lines)).events
    (cannot,) = [event for event in events if "cannot open" in event.text]
    assert (cannot.line, cannot.end_line, cannot.count) == (5_001, 5_300, 300)
    assert [event.line for event in events if event.text == "loss is nan"] == [6_001]


def test_events_in_the_middle_are_kept() -> None:
    lines = [f"item {n}" for n in range(LINES)]
    lines[5_000:5_000] = [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in f',
        "ValueError: middle",
    ]
    (event,) = [event for event in read_text("\n".join(lines)).events if event.kind is EventKind.EXCEPTION]
    assert event.line == 5_001
    assert event.text.split("\n")[0] == "middle"
    assert event.end_line <= 5_006


def test_equal_exceptions_are_bounded() -> None:
    text = "".join(
        f'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: batch {n} is bad\n'
        for n in range(1_000)
    )
    events = read_text(text).events
    assert len(events) == EQUAL_EVENTS + 1
    assert sum(event.count for event in events) == 1_000
    assert (events[-1].line, events[-1].text) == (2_998, "batch 999 is bad")


def test_a_flood_of_different_warnings_does_not_hide_the_failure() -> None:
    flood = [
        f"x.py:7: UserWarning: cannot use {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{'z' * (n // 676)}"
        for n in range(9_000)
    ]
    tail = ["Traceback (most recent call last):", '  File "t.py", line 3, in <module>', "RuntimeError: boom"]
    transcript = read_text("\n".join(flood + tail))
    assert (transcript.events[-1].type, transcript.events[-1].text) == ("RuntimeError", "boom")
    assert len(transcript.events) == FIRST_EVENTS + LAST_EVENTS + 1
    assert transcript.notes == ("<text>: 3,000 events beyond the limit were not kept",)


def test_a_flood_of_different_exceptions_keeps_the_last_one() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = "".join(
        f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n'
        f"ValueError: {letters[n % 26]}{letters[n // 26 % 26]}{letters[n // 676]}\n"
        for n in range(7_000)
    )
    events = read_text(text).events
    assert len(events) == FIRST_EVENTS + LAST_EVENTS
    assert events[0].text == "aaa"
    assert events[-1].line == 3 * 7_000 - 2


def test_equal_lines_of_a_kind_count_as_one() -> None:
    line = (
        "worker-0:26109:27183 [1] include/alloc.h:125 NCCL WARN Cuda failure 710 'device-side assert "
        "triggered'"
    )
    (event,) = read_text("\n".join([line] * 300)).events
    assert (event.kind, event.count, event.line, event.end_line) == (EventKind.NCCL, 300, 1, 300)


def test_kernel_messages_that_differ_in_time_count_as_one() -> None:
    lines = [
        f"[{1511200 + n}.721001] pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0"
        for n in range(50)
    ]
    (event,) = read_text("\n".join(lines)).events
    assert (event.kind, event.count) == (EventKind.KERNEL_LOG, 50)


def test_nccl_info_lines_are_plain() -> None:
    transcript = read_text(
        "\n".join(f"worker-0:1:2 [0] NCCL INFO Channel {n}/0 : 0[0] -> 1[1]" for n in range(13_000))
    )
    assert len(transcript.events) == FIRST_LINES + LAST_LINES


def test_shape() -> None:
    assert shape("step 12 at 0x7f1e: 3.25 s") == "step # at #: # s"


# The output of a running program is kept in bounded memory and read as the file of all of it would be
FAILURE = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    foo()
RuntimeError: CUDA error: an illegal memory access was encountered
"""


def steps(count: int, first: int = 0) -> bytes:
    return b"".join(
        b"step %d loss %.4f throughput %d tokens\n" % (n, 1 / (n + 1), n * 7919)
        for n in range(first, first + count)
    )


def events(output: Output) -> list[tuple[int, str]]:
    found = read_all(["-"], output, catalog.load().literals).transcript  # type: ignore[arg-type]
    return [(event.line, event.text) for event in found.events]


@pytest.mark.parametrize("count", [200, 300_000], ids=["small", "big"])
def test_it_reads_like_the_file(count: int, tmp_path: Path) -> None:
    data = steps(count) + FAILURE + steps(count, count) + FAILURE + b"no end"
    path = tmp_path / "all.log"
    path.write_bytes(data)
    output = Output(catalog.load().literals)
    pieces = random.Random(7)
    at = 0
    while at < len(data):
        size = pieces.randrange(1, 40_000)
        output.put(0, data[at : at + size])
        at += size
    assert output.open_line
    whole = read_all([str(path)], None, catalog.load().literals).transcript
    assert events(output) == [(event.line, event.text) for event in whole.events]
    kept = sum(map(len, output.text()))
    assert kept <= live.HEAD_BYTES + live.TAIL_BYTES + (1 << 20) or kept == len(data)


def test_errors_stand_behind_the_output_and_line_numbers_count_both() -> None:
    output = Output()
    output.put(1, FAILURE)
    output.put(0, b"epoch 1\nepoch 2")
    output.finish("Process finished with exit code 1")
    whole, _, _ = output.read()
    assert whole == b"epoch 1\nepoch 2\n" + FAILURE + b"Process finished with exit code 1\n"
    assert events(output)[2][0] == 3


def test_binary_output_is_left_out() -> None:
    output = Output()
    output.put(0, bytes(range(256)) * 40)
    output.put(1, FAILURE)
    found = read_all(["-"], output).transcript  # type: ignore[arg-type]
    assert found.form is Form.LOG
    assert any("binary data" in note for note in found.notes)
    assert "illegal memory access" in found.events[0].text


def test_a_flood_of_hot_lines_stays_bounded() -> None:
    output = Output(catalog.load().literals)
    for number in range(150):
        lines = b"".join(
            b"Error: cannot find %x in shard %d\n" % (hash((number, n)), n) for n in range(2_000)
        )
        output.put(0, lines)
    assert sum(map(len, output.text())) < live.HEAD_BYTES + live.TAIL_BYTES + live.HOT_BYTES + (1 << 20)
    output.put(0, b"x" * (3 << 20))  # a line without end
    assert output.open_line
