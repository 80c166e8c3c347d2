"""Bytes to physical lines: encodings, endings, compression, junk, folders."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest

from torchdoctor.intake import IntakeError, read, read_all, read_text
from torchdoctor.intake.inputs import Found
from torchdoctor.intake.source import Tally, encoding_of, is_binary, physical_lines
from torchdoctor.model import EventKind, Form

if TYPE_CHECKING:
    from pathlib import Path

ERROR = "RuntimeError: CUDA error: out of memory"


def stdin(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


def numbered(data: bytes) -> list[tuple[int, str, bool]]:
    return list(physical_lines(data, Tally()))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (f"a\n{ERROR}\n".encode(), "utf-8"),
        (f"a\n{ERROR}\n".encode("utf-8-sig"), "utf-8"),
        (f"a\n{ERROR}\n".encode("utf-16"), "utf-16"),
        (f"a\r\n{ERROR}\r\n".encode("utf-16-le"), "utf-16-le"),
        (f"a\n{ERROR}\n".encode("utf-16-be"), "utf-16-be"),
        (f"a\n{ERROR}\n".encode("utf-32"), "utf-32"),
    ],
)
def test_every_encoding_gives_the_same_exception(data: bytes, encoding: str) -> None:
    assert encoding_of(data) == encoding
    transcript = read(["-"], stdin(data))
    assert [event.kind for event in transcript.events] == [EventKind.LOG, EventKind.EXCEPTION]
    assert transcript.events[1].text == "CUDA error: out of memory"
    assert transcript.events[1].line == 2
    assert transcript.events[0].text == "a"


def test_latin_1_is_the_fallback_line_by_line() -> None:
    transcript = read(
        ["-"], stdin("größe ok\n".encode() + "La procédure est introuvable\n".encode("latin-1"))
    )
    assert [event.text for event in transcript.events] == ["größe ok", "La procédure est introuvable"]


def test_line_ends_and_numbers() -> None:
    assert numbered(b"a\r\nb\n\nc") == [(1, "a\r", False), (2, "b", False), (3, "", False), (4, "c", False)]
    assert numbered(b"") == []
    assert numbered(b"\n") == [(1, "", False)]


def test_nul_bytes_are_removed_not_fatal() -> None:
    transcript = read(["-"], stdin(b"\0" * 4000 + b"step 1 loss 0.5\n" * 60 + b"Runtime\0Error: x\n"))
    assert transcript.form is Form.LOG
    assert transcript.events[-1].type == "RuntimeError"


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)) * 8, b"\x80\x02}q\x00(X\x07\x00\x00\x00version", b"PK\x03\x04abc", b"\x7fELF\2\1"],
)
def test_binary_junk_gives_no_events(data: bytes) -> None:
    assert is_binary(data)
    transcript = read(["-"], stdin(data))
    assert transcript.form is Form.BINARY
    assert transcript.events == ()
    assert transcript.notes == ("<stdin>: holds binary data, not a text log",)


@pytest.mark.parametrize("data", [b"", b"\n\n  \n\t\n", b"\x1b[2J\x1b[0m\x1b[?25h", b"\xef\xbb\xbf"])
def test_nothing_to_read_is_empty(data: bytes) -> None:
    transcript = read(["-"], stdin(data))
    assert transcript.form is Form.EMPTY
    assert transcript.events == ()


def test_a_long_line_is_read_in_pieces_and_its_error_is_seen() -> None:
    words = "word " * 20_000
    transcript = read(["-"], stdin((words + ERROR + " " + words).encode()))
    hits = [event for event in transcript.events if "CUDA error: out of memory" in event.text]
    assert len(hits) == 1
    assert hits[0].line == 1
    assert all(len(event.text) <= 8192 for event in transcript.events)


def test_base64_in_one_line_costs_little() -> None:
    transcript = read(["-"], stdin(b"iVBORw0KGgo" * 100_000 + b"\nRuntimeError: x\n"))
    assert transcript.events[-1].type == "RuntimeError"
    assert transcript.events[-1].line == 2
    assert transcript.lines_read == 2


def test_an_escape_sequence_is_never_cut_in_two() -> None:
    transcript = read_text("\x1b[1;1H\x1b[2K\x1b[30m\x1b[0m" * 2_000)
    assert transcript.form is Form.EMPTY


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(f"a\n{ERROR}\n".encode()))
    assert read([str(path)]).events[1].text == "CUDA error: out of memory"


def test_a_cut_gzip_gives_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(b"step 1\n" * 5000)[:-20])
    transcript = read([str(path)])
    assert any("reading stopped" in note for note in transcript.notes)


def test_a_missing_single_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IntakeError, match="no such file") as caught:
        read([str(tmp_path / "none.log")])
    assert caught.value.path.endswith("none.log")
    assert caught.value.reason == "no such file"


def test_a_missing_input_among_others_is_a_note(tmp_path: Path) -> None:
    good = tmp_path / "a.log"
    good.write_text(ERROR)
    missing = str(tmp_path / "none.log")
    reading = read_all([str(good), missing])
    assert reading.transcript.events[0].type == "RuntimeError"
    assert [error.path for error in reading.unreadable] == [missing]
    assert reading.transcript.notes == (f"cannot read {missing}: no such file",)


def test_no_input_at_all_is_an_error() -> None:
    with pytest.raises(IntakeError, match="no input"):
        read([])


def test_a_folder_stands_for_its_logs(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "stderr").write_text("RuntimeError: second\n")
    (tmp_path / "a.log").write_text("RuntimeError: first\n")
    (tmp_path / "model.py").write_text("raise RuntimeError('x')\n")
    (tmp_path / "weights.bin").write_bytes(bytes(range(256)))
    (tmp_path / "slurm-42.out").write_text("ValueError: third\n")
    (tmp_path / "train.log.1").write_text("ValueError: fourth\n")
    names = [item.name[len(str(tmp_path)) + 1 :] for item in Found([str(tmp_path)], None)]
    assert names == ["a.log", "slurm-42.out", "train.log.1", "b/stderr"]
    transcript = read([str(tmp_path)])
    assert [event.text for event in transcript.events] == ["first", "third", "fourth", "second"]
    assert [event.id for event in transcript.events] == [0, 1, 2, 3]
    assert len(transcript.sources) == 4


def test_a_folder_without_logs_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    with pytest.raises(IntakeError, match="holds no text log"):
        read([str(tmp_path)])


def test_events_of_several_inputs_keep_their_relations(tmp_path: Path) -> None:
    text = (
        "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    f()\nValueError: b\n'
    )
    first, second = tmp_path / "1.log", tmp_path / "2.log"
    first.write_text(text)
    second.write_text(text)
    events = read([str(first), str(second)]).events
    assert [event.relations[0].event for event in events if event.relations] == [0, 2]


@pytest.mark.parametrize(
    ("name", "rank", "local"),
    [
        ("rank_3.log", 3, None),
        ("attempt_0/5/stderr.log", None, 5),
        ("train.log", None, None),
        ("frank9.log", None, None),
    ],
)
def test_the_rank_in_the_name_of_the_file(
    tmp_path: Path, name: str, rank: int | None, local: int | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ERROR)
    event = read([str(path)]).events[0]
    assert (event.rank, event.local_rank) == (rank, local)


def test_a_notebook_is_read_by_its_outputs(tmp_path: Path) -> None:
    trace = [
        "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
        "\x1b[0;31mRuntimeError\x1b[0m                              Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[3], line 1\x1b[0m\n\x1b[0;32m----> 1\x1b[0m net(x)\n",
        "\x1b[0;31mRuntimeError\x1b[0m: CUDA error: out of memory",
    ]
    cells = [
        {"cell_type": "code", "outputs": [{"output_type": "stream", "text": ["epoch 1\n", "epoch 2\n"]}]},
        {"cell_type": "code", "outputs": [{"output_type": "error", "traceback": trace}]},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    transcript = read([str(path)])
    error = transcript.events[-1]
    assert (error.type, error.text) == ("RuntimeError", "CUDA error: out of memory")
    assert (error.frames[0].file, error.frames[0].line) == ("Cell In[3]", 1)
    assert transcript.events[0].text == "epoch 1"


def test_a_file_that_only_ends_like_a_notebook_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text("RuntimeError: x\n")
    assert read([str(path)]).events[0].type == "RuntimeError"
