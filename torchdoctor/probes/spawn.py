"""Programs that look for us: own process group, output to files, bounded wait, the whole group ended.

What they print is evidence, not protocol: facts come through a file of their own, so that a library that
prints garbage, closes descriptors or dies half-way cannot spoil what was already told.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from torchdoctor import json_text, regular_file
from torchdoctor.probes.machine import Command, Json, Outcome
from torchdoctor.probes.scratch import Scratch
from torchdoctor.probes.search_paths import without_current_folder

if TYPE_CHECKING:
    from typing import IO, Any

REPORT_LIMIT = 4 * 1024 * 1024
TAIL_LIMIT = 8 * 1024
LINES_LIMIT = 20_000
# A program that prints more than this is ended: it would fill the disk within its time limit.
FLOOD_LIMIT = 64 * 1024 * 1024
_GRACE_S = 2.0
_POLL_S = 0.5


class Running:
    """One program, from its start to its end. Starting never raises; the outcome says what went wrong."""

    def __init__(self, command: Command, tail: int = TAIL_LIMIT) -> None:
        """``tail`` is how many bytes of what it prints are kept."""
        self.command = command
        self._tail = tail
        self._begun = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Scratch | None = None
        self._stdout: IO[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._start_error = ""
        try:
            self._start()
        except (OSError, ValueError) as error:
            self._start_error = str(error)
            self._clean()

    def _start(self) -> None:
        argv = list(self.command.argv)
        self._folder = Scratch()
        if self.command.reports:
            argv.append(os.path.join(self._folder.name, "facts"))
        self._stdout = open(os.path.join(self._folder.name, "out"), "w+b")  # noqa: SIM115 (closed in _clean)
        self._stderr = open(os.path.join(self._folder.name, "err"), "w+b")  # noqa: SIM115
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            # the folder is ours and holds nothing to import: an empty entry of a path leads nowhere
            cwd=None if self.command.named else self._folder.name,
            env=None if self.command.named else without_current_folder(os.environ),
            start_new_session=True,
        )

    def finish(self) -> Outcome:
        """Wait up to the limit, end the group, and say how it went. To be called once."""
        if self._process is None:
            return Outcome(start_error=self._start_error)
        process = self._process
        note = ""
        deadline = self._begun + self.command.limit_s
        while not _ended(process, min(_POLL_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                note = "timed out"
                break
            if self._printed() > FLOOD_LIMIT:
                note = f"ended by us: it printed more than {FLOOD_LIMIT >> 20} MiB"
                break
        seconds = time.monotonic() - self._begun
        if note and not self._end_group():
            note += "; it does not die (uninterruptible sleep)"
        elif not note:
            self._end_group()
        outcome = self._outcome(process.returncode, seconds, note)
        self._clean()
        return outcome

    def over(self) -> bool:
        """Has it ended, or never begun? It is not reaped by this."""
        return self._process is None or _ended(self._process, 0.0)

    def latest(self) -> dict[str, Json]:
        """The last line that it has written so far, while it runs."""
        lines = self._lines() if self.command.reports and self._folder is not None else ()
        return lines[-1] if lines else {}

    def interrupt(self) -> None:
        """Kill its group while another thread waits in ``finish``, which then returns at once."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()

    def stop(self) -> None:
        """End it now; nobody wants its outcome."""
        if self._process is not None:
            self._end_group()
        self._clean()

    def _end_group(self) -> bool:
        """Kill what is left of the group and reap its head. False when that does not die."""
        process = self._process
        assert process is not None
        if hasattr(os, "killpg"):
            # The head is not reaped yet, so its number cannot have been given to another process.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _outcome(self, code: int | None, seconds: float, note: str) -> Outcome:
        killed = bool(note)
        return Outcome(
            exit_code=None if killed or code is None or code < 0 else code,
            signal=-code if code is not None and code < 0 and not killed else None,
            timed_out=note.startswith("timed out"),
            seconds=round(seconds, 3),
            lines=self._lines() if self.command.reports else (),
            stdout=_tail(self._stdout, self._tail),
            stderr=_tail(self._stderr, TAIL_LIMIT),
            note=note,
        )

    def _lines(self) -> tuple[dict[str, Json], ...]:
        assert self._folder is not None
        try:
            data = regular_file.beginning(os.path.join(self._folder.name, "facts"), REPORT_LIMIT)
        except OSError:
            return ()
        return parse_lines(data.decode("utf-8", "replace"))

    def _printed(self) -> int:
        return sum(os.fstat(stream.fileno()).st_size for stream in (self._stdout, self._stderr) if stream)

    def _clean(self) -> None:
        for stream in (self._stdout, self._stderr):
            if stream is not None:
                stream.close()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


def parse_lines(text: str) -> tuple[dict[str, Json], ...]:
    """The JSON objects among the first lines; one cut off by the death of its writer is left out."""
    found: list[dict[str, Json]] = []
    room = json_text.MOST_BYTES
    for line in text.split("\n", LINES_LIMIT)[:LINES_LIMIT]:
        data = line.encode("utf-8", "replace")
        room -= json_text.weight(data)
        try:
            value: Any = json_text.parse(data, max(0, room))
        except json_text.JsonRefused:
            continue
        if isinstance(value, dict):
            found.append(value)
    return tuple(found)


def _tail(stream: IO[bytes] | None, limit: int) -> str:
    if stream is None:
        return ""
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(0, size - limit))
    return stream.read(limit).decode("utf-8", "replace")


def _ended(process: subprocess.Popen[bytes], wait_s: float) -> bool:
    """Has it ended, waiting up to so long? It is not reaped yet where the system can tell without."""
    if not hasattr(os, "waitid"):
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True
    handle = -1
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(process.pid)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    return True
            except ChildProcessError:  # the program that we are part of takes the ends of all its children
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if handle >= 0:
                import select

                poller = select.poll()
                poller.register(handle, select.POLLIN)
                poller.poll(left * 1000)
            else:
                time.sleep(min(0.01, left))
    finally:
        if handle >= 0:
            os.close(handle)
