"""Stack dumps of py-spy, faulthandler and gdb."""

from __future__ import annotations

from torchdoctor.intake import read_text
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
