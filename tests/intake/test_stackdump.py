"""Stack dumps of py-spy, faulthandler and gdb."""

from __future__ import annotations

import json
from pathlib import Path

from torchdoctor.extract.hang import stand_of
from torchdoctor.intake import read, read_text
from torchdoctor.model import EventKind

SPY = """\
$ py-spy dump --pid 3510
Process 3510: python -u serve.py
Python v3.12.3 (/opt/app/.venv/bin/python3.12)

Thread 3510 (idle): "MainThread"
    wait (threading.py:359)
    _try_get_data (torch/utils/data/dataloader.py:1310)
    run_job (app/worker.py:477)
    <module> (serve.py:31)
Thread 3544 (active+gil): "Thread-4 (_pin_memory_loop)"
    select (selectors.py:415)
        Locals:
            self: <Selector at 0x7f>
    poll (libc.so.6)
$ ps
"""


def test_py_spy() -> None:
    main, other = [event for event in read_text(SPY).events if event.kind is EventKind.STACK]
    assert [(f.function, f.line, f.package) for f in main.frames] == [
        ("<module>", 31, ""), ("run_job", 477, ""), ("_try_get_data", 1310, "torch"), ("wait", 359, "python"),
    ]  # fmt: skip
    assert main.text.startswith('Thread 3510 (idle): "MainThread"\n    wait (threading.py:359)')
    assert (main.line, main.end_line, main.headed) == (5, 9, True)
    assert [(f.function, f.file, f.line) for f in other.frames] == [
        ("poll", "libc.so.6", None),
        ("select", "selectors.py", 415),
    ]
    assert read_text(SPY).events[-1].text == "$ ps"


FAULT = """\
Fatal Python error: Segmentation fault

Thread 0x00007fc6cab3d700 (most recent call first):
  File "/usr/lib/python3.8/threading.py", line 306 in wait

Current thread 0x00007fc73ac5d700 (most recent call first):
  File "/x/site-packages/torch/distributed/distributed_c10d.py", line 3938 in barrier
  File "/w/train.py", line 11 in run
  File "/w/train.py", line 18 in <module>

Extension modules: numpy._core, torch._C (total: 2)
"""


def test_faulthandler_and_the_thread_that_died() -> None:
    crash, other, current, _ = read_text(FAULT).events
    assert (crash.kind, crash.text) == (EventKind.CRASH, "Fatal Python error: Segmentation fault")
    assert [event.kind for event in (other, current)] == [EventKind.STACK, EventKind.STACK]
    assert [(f.function, f.line) for f in current.frames] == [
        ("<module>", 18),
        ("run", 11),
        ("barrier", 3938),
    ]
    assert crash.frames == current.frames
    assert other.frames[0].package == "python"


def test_gdb() -> None:
    text = (
        'Thread 2 (Thread 0x7f12 (LWP 123) "python"):\n'
        "#0  0x00007f in poll () from /lib/x86_64-linux-gnu/libc.so.6\n"
        "#1  0x00007e in select_poll_poll_impl (self=0x7f, timeout=-1) at ./Modules/selectmodule.c:600\n"
        "#2  _PyEval_EvalFrame (f=Frame 0x55, for file /w/a.py, line 3, in wait (x=1)) at "
        "../Python/ceval.c:3500\n\n"
        "Thread 1 (Thread 0x7f11 (LWP 122)):\n#0  futex_wait () at ../sysdeps/futex.h:1\n"
    )
    first, second = read_text(text).events
    assert [(f.function, f.file, f.line, f.package) for f in first.frames] == [
        ("wait", "/w/a.py", 3, ""),
        ("select_poll_poll_impl", "./Modules/selectmodule.c", 600, "native"),
        ("poll", "/lib/x86_64-linux-gnu/libc.so.6", None, "native"),
    ]  # fmt: skip
    assert second.frames[0].function == "futex_wait"


def test_a_windows_crash() -> None:
    crash, stack = read_text(
        "Windows fatal exception: access violation\n\nCurrent thread 0x00001234 (most recent call first):\n"
        '  File "C:\\u\\a.py", line 3 in f\n  File "C:\\u\\a.py", line 9 in <module>\n'
    ).events
    assert (crash.kind, stack.kind) == (EventKind.CRASH, EventKind.STACK)
    assert [f.line for f in crash.frames] == [9, 3]


def test_a_thread_without_frames() -> None:
    crash, stack = read_text(
        "Fatal Python error: Aborted\n\nCurrent thread 0x00007f (most recent call first):\n  "
        "Garbage-collecting\n  <no Python frame>\n"
    ).events
    assert (stack.frames, stack.end_line, crash.frames) == ((), 5, ())


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
    assert stand is not None
    assert (stand.call, stand.place) == ("ncclGroupEndInternal", "train.py:24 step")
