"""Records in JSON, of logs and of py-spy; a stack of gdb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdoctor.extract.hang import stand_of
from torchdoctor.intake import read, read_text
from torchdoctor.intake.record import lines_of
from torchdoctor.model import EventKind

# Log records in JSON: the traceback is found in whatever field holds it
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/app/trainer.py", line 77, in run\n'
    "    self.sched.step()\n"
    "ValueError: Tried to step 10001 times\n"
)

BASE = {"time": "2026-05-02T08:13:56Z", "level": "error", "msg": "trainer crashed"}


@pytest.mark.parametrize(
    "fields",
    [
        {"exc": TRACE},
        {"exc_info": TRACE},
        {"stack": TRACE},
        {"error": {"type": "ValueError", "stack_trace": TRACE}},
        {"error.stack": TRACE},
        {"jsonPayload": {"detail": TRACE}},
        {"traceback": TRACE.split("\n")},
        {"msg": "trainer crashed\n" + TRACE},
        {"record": {"exception": TRACE, "padding": "x y " * 2_000}},
    ],
)
def test_a_traceback_is_found_in_any_field(fields: dict[str, object]) -> None:
    events = read_text(json.dumps({**BASE, **fields})).events
    failures = [event for event in events if event.kind is EventKind.EXCEPTION]
    assert [(event.type, event.text) for event in failures] == [("ValueError", "Tried to step 10001 times")]
    assert [(frame.file, frame.line) for frame in failures[0].frames] == [("/app/trainer.py", 77)]


def test_an_exception_in_fields_of_its_own_ends_a_traceback_without_one() -> None:
    frames = TRACE.rpartition("ValueError")[0]
    record = {**BASE, "error": {"type": "ValueError", "message": "too far", "stack_trace": frames}}
    lines = lines_of(json.dumps(record))
    assert lines is not None
    assert [line.strip() for line in lines[-2:]] == ["self.sched.step()", "ValueError: too far"]


@pytest.mark.parametrize(
    "record",
    [
        {"id": 7, "prompt": "why?", "content": TRACE},  # a row of a data set: no level, no time
        {**BASE, "source": TRACE},
        {**BASE, "exc": "ValueError: no stack"},
        [TRACE],
    ],
)
def test_what_is_no_record_of_a_failure_holds_none(record: object) -> None:
    assert not any("Traceback" in line for line in lines_of(json.dumps(record)) or ())


def test_level_time_and_rank_stand_before_the_message() -> None:
    lines = lines_of(json.dumps({**BASE, "rank": 3, "exc": TRACE}))
    assert lines[0] == "[rank3]: 2026-05-02T08:13:56Z ERROR trainer crashed"
    assert lines[1] == "[rank3]: Traceback (most recent call last):"


# Stack dumps of py-spy, faulthandler and gdb


def test_py_spy_in_json(tmp_path: Path) -> None:
    """``py-spy dump --json`` gives what its text form gives."""
    frames = [
        {"name": "wait", "filename": "/usr/lib/python3.12/threading.py", "short_filename": "threading.py",
         "line": 359},
        {"name": "_try_get_data", "filename": "/v/site-packages/torch/utils/data/dataloader.py",
         "short_filename": "torch/utils/data/dataloader.py", "line": 1310, "locals": None},
        {"name": "<module>", "filename": "/w/serve.py", "short_filename": "serve.py", "line": 31},
    ]  # fmt: skip
    thread = {"pid": 3510, "thread_id": 140, "thread_name": "MainThread", "os_thread_id": 3510,
              "active": False,
              "owns_gil": False, "frames": frames}  # fmt: skip
    path = tmp_path / "stack_rank5.json"
    path.write_text(json.dumps([thread, {"frames": "x"}, None], indent=1))
    (event,) = read([str(path)]).events
    assert (event.kind, event.rank) == (EventKind.STACK, 5)
    assert event.text.split("\n")[:2] == ['Thread 3510 (idle): "MainThread"', "    wait (threading.py:359)"]
    assert [(f.function, f.line, f.package) for f in event.frames] == [
        ("<module>", 31, ""), ("_try_get_data", 1310, "torch"), ("wait", 359, "python"),
    ]  # fmt: skip


def test_other_json_lists_are_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"frames": 1, "pid": 2}]\nValueError: bad\n')
    assert [event.type for event in read([str(path)]).events] == [None, "ValueError"]


GDB = """\
Thread 1 (Thread 0x7f0c (LWP 4100) "python"):
#0  0x00007f0c1 in ncclGroupEndInternal () from /opt/venv/lib/libnccl.so.2
#1  0x00007f0c2 in c10d::ProcessGroupNCCL::allreduce (this=0x5) at /pytorch/ProcessGroupNCCL.cpp:3400
#2  0x00000051 in _PyEval_Frame (f=Frame 0x55, for file /w/train.py, line 24, in step (x=1)) at a.c:9
#3  0x00000052 in _PyEval_Frame (f=Frame 0x56, for file /w/train.py, line 40, in <module> ()) at a.c:9
"""


def test_gdb_with_the_frames_of_python() -> None:
    (event,) = [event for event in read_text(GDB).events if event.kind is EventKind.STACK]
    stand = stand_of(event)
    assert (stand.call, stand.place) == ("ncclGroupEndInternal", "train.py:24 step")
