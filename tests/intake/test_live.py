"""The output of a running program is kept in bounded memory and read as the file of all of it would be."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from torchdoctor import catalog
from torchdoctor.intake import live, read_all
from torchdoctor.intake.live import Output
from torchdoctor.model import Form

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
    for number in range(300):
        lines = b"".join(
            b"Error: cannot find %x in shard %d\n" % (hash((number, n)), n) for n in range(2_000)
        )
        output.put(0, lines)
    assert sum(map(len, output.text())) < live.HEAD_BYTES + live.TAIL_BYTES + live.HOT_BYTES + (1 << 20)
    output.put(0, b"x" * (3 << 20))  # a line without end
    assert output.open_line
