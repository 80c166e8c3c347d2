"""``explain`` behind a pipe: a signal ends the reading, not the answer; it passes on, and tells who waits."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parent.parent)
LOG = b"""epoch 1
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    loss = criterion(output, target)
IndexError: Target 7 is out of bounds.
"""
UNKNOWN = b"Traceback (most recent call last):\nwidgets.BrokenWidgetError: the widget broke\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no poll and no pseudo-terminals")


def explain(*options: str, **streams: int) -> subprocess.Popen[bytes]:
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(
        [sys.executable, "-m", "torchdoctor", "explain", *options],
        env={**os.environ, "PYTHONPATH": ROOT}, **given,
    )  # type: ignore[call-overload,no-any-return]  # fmt: skip


def begun(process: subprocess.Popen[bytes], data: bytes) -> None:
    """It has read all of the data, and waits for more."""
    process.stdin.write(data)
    process.stdin.flush()
    deadline = time.monotonic() + 30
    waits = Path(f"/proc/{process.pid}/wchan")
    while "poll" not in waits.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_reading_and_what_was_read_is_judged(number: signal.Signals) -> None:
    with explain() as process:
        begun(process, LOG)
        process.send_signal(number)
        time.sleep(0.1)
        process.send_signal(number)  # does not wait for the program before it in the pipeline
        output, errors = process.stdout.read(), process.stderr.read()  # its input stays open
        assert (process.wait(30), errors) == (128 + number, b"")
    assert b"cuda-assert-label-range" in output
    told = f"reading stopped: {number.name} ended it; what came before was read"
    assert told in " ".join(output.decode().split())


def test_the_last_words_of_the_program_before_are_waited_for() -> None:
    with explain() as process:
        begun(process, b"epoch 1\n")
        process.send_signal(signal.SIGINT)
        process.stdin.write(LOG)
        process.stdin.close()
        process.stdin = None
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"cuda-assert-label-range" in output
    assert b"reading stopped" not in output


def test_tee_passes_on_what_is_read_as_it_comes() -> None:
    with explain("--tee") as process:
        begun(process, LOG)
        assert os.read(process.stdout.fileno(), 1 << 16) == LOG
        output, errors = process.communicate(b"epoch \xff2\n", timeout=30)
    assert (process.returncode, output) == (0, b"epoch \xff2\n")
    assert b"cuda-assert-label-range" in errors


def test_tee_reads_on_when_nobody_reads_it() -> None:
    with explain("--tee") as process:
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(LOG, timeout=30)
    assert process.returncode == 0
    assert b"cuda-assert-label-range" in errors


def waiting(pipe: int) -> int:
    """How many bytes nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_tee_waits_for_a_slow_reader_of_a_descriptor_that_does_not_block() -> None:
    source, target = os.pipe()
    os.set_blocking(target, False)
    log = b"step 1 loss 0.5\n" * 20_000 + LOG
    with explain("--tee", stdout=target) as process:
        os.close(target)
        writer = threading.Thread(target=process.communicate, args=(log,))
        writer.start()
        deadline = time.monotonic() + 30
        while waiting(source) < 60_000 and time.monotonic() < deadline:  # until the pipe is full
            time.sleep(0.05)
        time.sleep(0.3)
        passed = bytearray()
        while data := os.read(source, 1 << 16):
            passed += data
        writer.join()
    os.close(source)
    assert bytes(passed) == log


def test_tee_needs_a_pipe() -> None:
    with explain("--tee", "train.log") as process:
        _, errors = process.communicate(b"", timeout=30)
    assert process.returncode == 2
    assert b"--tee passes standard input through" in errors


def test_progress_is_shown_on_a_terminal_and_taken_back() -> None:
    ours, theirs = pty.openpty()
    with explain(stderr=theirs) as process:
        begun(process, LOG)
        time.sleep(2.6)
        process.communicate(b"", timeout=30)
    os.close(theirs)
    text = os.read(ours, 1 << 16)
    os.close(ours)
    assert text.startswith(b"\r0.0 MiB, 5 lines read, 2 s")
    assert text.endswith(b"\r\x1b[K")


@pytest.mark.parametrize(("log", "told"), [(UNKNOWN, True), (LOG, False)])
def test_an_unknown_failure_from_a_pipe_points_at_run(log: bytes, told: bool) -> None:
    with explain("--format", "json") as process:
        output, _ = process.communicate(log, timeout=30)
    assert (b"torchdoctor run -- CMD" in output) is told
