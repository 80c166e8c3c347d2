"""Programs forked from one process that has torch imported already: a check costs no import of its own.

Where that process cannot be had (no fork, a torch that starts threads and dies of it, a socket that cannot be
made), programs get an interpreter each.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Sequence

from torchdoctor import regular_file
from torchdoctor.probes.machine import Command, Json, Outcome
from torchdoctor.probes.scratch import Scratch
from torchdoctor.probes.spawn import FLOOD_LIMIT, REPORT_LIMIT, TAIL_LIMIT, Running, parse_lines
from torchdoctor.selftest import batch
from torchdoctor.selftest.runner import STOPPED, Plain
from torchdoctor.selftest.standalone import FOLDER

FORKER = os.path.join(FOLDER, "forker.py")
BATCH = os.path.join(FOLDER, "batch.py")
_WHOLE_S = 24 * 3600.0  # it ends when we close its connection, or ourselves
_POLL_S = 0.1


class Lost(Exception):
    """The forking process does not answer."""


class Forking:
    """Runs programs in forks; in interpreters of their own once that has failed. Safe to use from threads."""

    def __init__(self, python: str, import_limit_s: float) -> None:
        self._plain = Plain(python)
        self._folder = Scratch()
        self._door = os.path.join(self._folder.name, "s")
        self._lock = threading.Lock()
        self._stopped = False
        self._wires: set[socket.socket] = set()
        self._caller: socket.socket | None = None
        self._number = 0
        self.fallback = ""
        self._forker: Running | None = None
        try:
            self._open(python, import_limit_s)
        except (OSError, Lost) as error:
            self.fallback = str(error)
            self._end_forker()
        except BaseException:  # interrupted while torch was imported: nothing may stay
            self.stop()
            raise

    def _open(self, python: str, limit_s: float) -> None:
        if not hasattr(os, "fork") or not hasattr(socket, "AF_UNIX"):
            raise Lost("this system does not fork")
        self._forker = Running(Command("selftest-forker", (python, FORKER, self._door), _WHOLE_S))
        deadline = time.monotonic() + limit_s
        while not os.path.exists(self._door):
            if self._forker.over():
                raise Lost("the forking process ended while importing torch")
            if time.monotonic() > deadline:
                raise Lost(f"the forking process was not ready within {limit_s:.0f} s")
            time.sleep(0.01)
        self._caller = self._connect()

    def _connect(self) -> socket.socket:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            wire.settimeout(_POLL_S)
            deadline = time.monotonic() + 5.0
            while True:  # between bind and listen it refuses
                try:
                    wire.connect(self._door)
                    return wire
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        except OSError:
            wire.close()
            raise

    def run(self, label: str, argv: Sequence[str], limit_s: float) -> Outcome:
        with self._lock:
            if self._stopped:
                return STOPPED
            fallback = self.fallback
            self._number += 1
            folder = os.path.join(self._folder.name, str(self._number))
        if not fallback:
            try:
                return self._forked(folder, argv, limit_s)
            except (OSError, Lost) as error:
                with self._lock:
                    if self._stopped:
                        return STOPPED
                    self.fallback = str(error) or "the forking process ended"
        return self._plain.run(label, argv, limit_s)

    def run_batch(self, asked: Sequence[tuple[Sequence[str], float]]) -> tuple[Outcome, ...]:
        """Run the programs one after the other in one process, each with its own limit; blocks.

        The outcomes of those that ran; the last may have ended the process, and the rest has not begun then.
        """
        with self._lock:
            if self._stopped:
                return (STOPPED,)
            alone = bool(self.fallback)
            self._number += 1
            folder = os.path.join(self._folder.name, str(self._number))
        if alone or len(asked) < 2:
            return (self.run("batch", *asked[0]),)
        os.mkdir(folder)
        plan = os.path.join(folder, "plan")
        files = [
            tuple(os.path.join(folder, f"{name}{number}") for name in ("out", "err", "facts"))
            for number in range(len(asked))
        ]
        with open(plan, "w", encoding="utf-8") as stream:
            lines = [
                {"argv": [*argv, "--stay", report], "stdout": out, "stderr": err}
                for (argv, _), (out, err, report) in zip(asked, files, strict=True)
            ]
            json.dump(lines, stream)
        whole = self.run("batch", (BATCH, plan), sum(limit_s for _, limit_s in asked))
        return batch.outcomes(whole, files, _read)

    def _forked(self, folder: str, argv: Sequence[str], limit_s: float) -> Outcome:
        os.mkdir(folder)
        out, err, report = (os.path.join(folder, name) for name in ("out", "err", "facts"))
        wire = self._connect()
        with self._lock:
            self._wires.add(wire)
        begun = time.monotonic()
        try:
            request = {"argv": [*argv, report], "stdout": out, "stderr": err}
            wire.sendall(json.dumps(request).encode("ascii"))
            folders = [folder, *([os.path.dirname(argv[1])] if argv[0] == BATCH else ())]
            ended, note = self._wait(wire, folders, begun + limit_s)
        finally:
            with self._lock:
                self._wires.discard(wire)
            wire.close()  # which ends it, if it still runs
        if self._stopped:
            return STOPPED
        code, number = ended.get("exit"), ended.get("signal")
        return Outcome(
            exit_code=code if isinstance(code, int) and not note else None,
            signal=number if isinstance(number, int) and not note else None,
            timed_out=note.startswith("timed out"),
            seconds=round(time.monotonic() - begun, 3),
            lines=parse_lines(_read(report, REPORT_LIMIT)),
            stdout=_read(out, TAIL_LIMIT, tail=True),
            stderr=_read(err, TAIL_LIMIT, tail=True),
            note=note,
        )

    def _wait(
        self, wire: socket.socket, folders: Sequence[str], deadline: float
    ) -> tuple[dict[str, Json], str]:
        said = b""
        while True:
            with contextlib.suppress(TimeoutError, socket.timeout):
                data = wire.recv(4096)
                if not data:
                    raise Lost("the forking process ended")
                said += data
            records = parse_lines(said.decode("ascii", "replace"))
            ended = next((one for one in records if "exit" in one or "signal" in one), None)
            if ended is not None:
                return ended, ""
            if time.monotonic() >= deadline:
                return {}, "timed out"
            if sum(file.stat().st_size for folder in folders for file in os.scandir(folder)) > FLOOD_LIMIT:
                return {}, f"ended by us: it printed more than {FLOOD_LIMIT >> 20} MiB"

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for wire in self._wires:
                with contextlib.suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)
        self._plain.stop()
        self._end_forker()
        self._folder.remove()

    def _end_forker(self) -> None:
        """Close its connection, on which it kills what it forked and ends; then make sure."""
        if self._caller is not None:
            self._caller.close()
            self._caller = None
        if self._forker is not None:
            deadline = time.monotonic() + 2.0
            while not self._forker.over() and time.monotonic() < deadline:
                time.sleep(0.01)
            self._forker.stop()
            self._forker = None


def _read(path: str, limit: int, tail: bool = False) -> str:
    try:
        return regular_file.beginning(path, limit, tail=tail).decode("utf-8", "replace")
    except OSError:
        return ""
