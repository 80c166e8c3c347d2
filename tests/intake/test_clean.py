"""Lines before anything is read of them: escape sequences, control characters, lines of two ranks."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake import read_text
from torchdoctor.intake.clean import clean
from torchdoctor.intake.interleave import Interleaved
from torchdoctor.model import EventKind


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("plain", ["plain"]),
        ("a\tb", ["a\tb"]),
        ("\x1b[0;31mRuntimeError\x1b[0m: x", ["RuntimeError: x"]),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ end", ["link end"]),
        ("\x1b]0;title\x07text", ["text"]),
        ("\x1b[38;2;255;0;0mred\x1b[K", ["red"]),
        ("\x9b31mred", ["red"]),
        ("[0;31mValueError[0m: y", ["ValueError: y"]),
        ("^[[31mred^[[0m", ["red"]),
        ("shape[0] of [0, 1]", ["shape[0] of [0, 1]"]),
        ("a\x00b\x07c\x7f", ["abc"]),
        ("a\u202eb\u200bc\ufeff", ["abc"]),
        ("crlf\r", ["crlf"]),
        ("10%\r20%\r30%", ["10%", "20%", "30%"]),
        ("\r\r", [""]),
        ("\x1b]unfinished RuntimeError: x", ["unfinished RuntimeError: x"]),
    ],
)
def test_clean(raw: str, parts: list[str]) -> None:
    assert clean(raw) == parts


def test_progress_bars_collapse_and_the_error_behind_them_is_seen() -> None:
    bar = "\r".join(f" {n}%|##   | {n}/100 [00:01<00:09, 10.2it/s]" for n in range(1, 90))
    transcript = read_text(
        f'start\n{bar}Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    '
        f"f()\nValueError: x\n"
    )
    kinds = [(event.kind, event.line, event.count) for event in transcript.events]
    assert kinds == [(EventKind.LOG, 1, 1), (EventKind.LOG, 2, 89), (EventKind.EXCEPTION, 2, 1)]
    assert transcript.events[1].text.startswith(" 89%|")
    assert transcript.events[2].frames[0].line == 3


# Kinds of events that are no Python exceptions


@pytest.mark.parametrize(
    "line",
    [
        "/p/Loss.cu:245: nll_loss_forward_reduce: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < "
        "n_classes` failed.",
        "/p/THCUNN/BCECriterion.cu:42: Acctype bce<D>::operator()(T) [with T = f(a)]: block: [0,0,0], "
        "thread: [1,0,0] Assertion `input >= 0. && input <= 1.` failed.",
        "C:\\w\\pytorch\\aten\\src\\ATen\\native\\cuda\\Loss.cu:257: block: [0,0,0], thread: [3,0,0] "
        "Assertion `t >= 0` failed.",
        "/r/aten/src/ATen/native/hip/Loss.hip:250: nll_loss: Device-side assertion `t >= 0' failed.",
        ":0:rocdevice.cpp            :2614: 12 us: Callback: Queue 0x7f aborting with error : "
        "HSA_STATUS_ERROR_EXCEPTION",
    ],
)
def test_device_assertions_count_as_one(line: str) -> None:
    others = [
        line.replace("thread: [3", f"thread: [{n}").replace("thread: [1", f"thread: [{n}") for n in range(40)
    ]
    (event,) = read_text("\n".join(others)).events
    assert (event.kind, event.count, event.line, event.end_line) == (EventKind.DEVICE_ASSERT, 40, 1, 40)
    assert event.text == others[0]


# Lines that two ranks wrote at once
def told(lines: list[str]) -> list[str]:
    reader = Interleaved()
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        apart = reader.take(number, line)
        found += [line] if apart is None else [text for _, text in apart]
    return found + [text for _, text in reader.rest()]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["[rank0]: Trace[rank1]: other", "back (most"], ["[rank1]: other", "[rank0]: Traceback (most"]),
        (
            ["[rank0]: whole[rank1]: other", "", "[rank0]: x"],
            ["[rank1]: other", "[rank0]: whole", "", "[rank0]: x"],
        ),
        (["[rank0]: a[rank1]: b[rank2]: c"], ["[rank1]: b", "[rank2]: c", "[rank0]: a"]),
        (["[default0]:[rank0]: a", "[default1]:b"], ["[default0]:[rank0]: a", "[default1]:b"]),
        (["[default0]:[rank0]: a[default1]:[rank1]: b"], ["[default1]:[rank1]: b", "[default0]:[rank0]: a"]),
        (["[1,0]<stderr>:a[1,3]<stderr>:b"], ["[1,3]<stderr>:b", "[1,0]<stderr>:a"]),
        (["[rank0]: see [rank1]: it said", "x"], ["[rank0]: see [rank1]: it said", "x"]),
        (["[2026-01-01] a [2026-01-01] b"], ["[2026-01-01] a [2026-01-01] b"]),
        (["plain [rank0]: x", "y"], ["plain [rank0]: x", "y"]),
    ],
)
def test_pieces_go_to_their_ranks(lines: list[str], wanted: list[str]) -> None:
    assert told(lines) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "    a    b",
        "    x",
        "ValueError: : odd",
        "KeyErrorKeyError: : 'a''b'",
        "    " * 4,
        "Error: : twice: : twice",
    ],
)
def test_lines_that_only_look_doubled_stay(line: str) -> None:
    assert Interleaved().take(1, line) is None


def test_hostile_doubled_lines_take_no_time() -> None:
    for line in ("AAa" * 2_000 + ": : ", "AbcAbc: : " + "a" * 4_001, "a.a." * 1_000 + "A: : b"):
        bounded(0.05, lambda line=line: Interleaved().take(1, line))  # type: ignore[misc]
