"""Lines that two ranks wrote at once."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake import read_text
from torchdoctor.intake.interleave import Interleaved
from torchdoctor.model import EventKind


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


def test_two_tracebacks_that_cut_each_other_are_both_read() -> None:
    text = (
        "[rank0]: Traceback (most recent call la[rank1]: Traceback (most recent call last):\n"
        "st):\n"
        '[rank0]:   File "/w/a.py", line 1, in f\n'
        '[rank1]:   File "/w/b.py", line 2, in g\n'
        "[rank1]: KeyError: 'x'[rank0]: ValueError: y\n"
        "\n"
    )
    found = {e.rank: e for e in read_text(text).events if e.kind is EventKind.EXCEPTION}
    assert {rank: (e.type, e.text, e.frames[0].file) for rank, e in found.items()} == {
        0: ("ValueError", "y", "/w/a.py"),
        1: ("KeyError", "'x'", "/w/b.py"),
    }


def test_a_traceback_that_two_processes_wrote_at_once() -> None:
    text = (
        "Traceback (most recent call last):\nTraceback (most recent call last):\n"
        '  File "train.py", line 9, in <module>\n  File "train.py", line 9, in <module>\n'
        "    fetch()    fetch()\n\n"
        "urllib.errorurllib.error..URLErrorURLError: : <urlopen error timed out><urlopen error timed out>\n\n"
    )
    (event,) = [event for event in read_text(text).events if event.type is not None]
    assert (event.type, event.text) == ("urllib.error.URLError", "<urlopen error timed out>")
    assert event.frames[-1].code == "fetch()"


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
