"""Escape sequences, carriage returns, control characters, escaped text."""

from __future__ import annotations

import json

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.clean import clean
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


def test_a_traceback_in_a_json_string_is_unescaped() -> None:
    raw = (
        '{"name":"RuntimeError","stack":"\\u001b[0;31m-----\\u001b[0m\\n\\u001b[0;31mRuntimeError\\u001b[0m'
        "                              Traceback (most recent call last)\\nCell \\u001b[0;32mIn[3], line "
        "2\\u001b[0m\\n"
        "----> 2 y = zeros()\\n\\n\\u001b[0;31mRuntimeError\\u001b[0m: CUDA error: out of memory\\nsecond "
        'line"}'
    )
    event = read_text(raw).events[-1]
    assert (event.type, event.text) == ("RuntimeError", "CUDA error: out of memory\nsecond line")
    assert (event.frames[0].file, event.frames[0].line, event.frames[0].code) == (
        "Cell In[3]",
        2,
        "y = zeros()",
    )
    assert (event.line, event.end_line) == (1, 1)


def test_an_error_file_of_torchelastic() -> None:
    raw = (
        '{"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Traceback (most recent '
        "call last):\\n"
        '  File \\"/w/t.py\\", line 3, in main\\n    f()\\nValueError: bad\\n", "timestamp": "1694000000"}}}'
    )
    event = read_text(raw).events[-1]
    assert (event.type, event.text, event.frames[0].file) == ("ValueError", "bad", "/w/t.py")


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_lines_of_the_docker_log_driver(separators: tuple[str, str]) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/app/x.py", line 3, in <module>',
        "    f()",
        "ValueError: y",
    ]
    records = [
        {"log": line + "\n", "stream": "stderr", "time": f"2024-01-01T10:00:00.{number}Z"}
        for number, line in enumerate(lines)
    ]
    raw = "\n".join(json.dumps(record, separators=separators) for record in records)
    (event,) = read_text(raw).events
    assert (event.type, event.text, event.frames[0].line) == ("ValueError", "y", 3)
    assert event.time == "2024-01-01T10:00:00.0Z"


def test_a_json_record_of_a_logger() -> None:
    (event,) = read_text(
        '{"level":"error","ts":"2024-01-01T00:00:00Z","msg":"RuntimeError: CUDA error: x"}'
    ).events
    assert (event.kind, event.type, event.text) == (EventKind.EXCEPTION, "RuntimeError", "CUDA error: x")
    assert (event.level, event.time) == ("ERROR", "2024-01-01T00:00:00Z")


def test_a_cell_output_of_a_notebook_in_one_line_is_a_traceback() -> None:
    trace = [
        "\x1b[0;31m-----\x1b[0m",
        "\x1b[0;31mModuleNotFoundError\x1b[0m     Traceback (most recent call last)",
        "Cell In[1], line 4\n      3 import pandas\n----> 4 import torch\n",
        "\x1b[0;31mModuleNotFoundError\x1b[0m: No module named 'torch'",
    ]
    text = json.dumps(
        {"output_type": "error", "ename": "ModuleNotFoundError", "evalue": "", "traceback": trace}
    )
    events = read_text(text).events
    found = [(event.type, event.text) for event in events if event.type]
    assert found == [("ModuleNotFoundError", "No module named 'torch'")]
