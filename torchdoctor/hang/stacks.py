"""Python stacks of live processes, by py-spy from outside: no target is stopped, nothing runs in it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from torchdoctor.intake.spy_json import threads_of
from torchdoctor.model import Frame, Record
from torchdoctor.probes.machine import Command
from torchdoctor.probes.spawn import Running
from torchdoctor.records import record

LIMIT_S: Final = 4.0
TOGETHER: Final = 4
TRIES: Final = 4
MAX_PRINTED: Final = 8 << 20


@record(frozen=True, slots=True)
class Stack(Record):
    """One Python thread: its frames with the innermost last, and whether it holds the interpreter's lock."""

    tid: int
    name: str
    frames: tuple[Frame, ...]
    holds_gil: bool = False

    @property
    def inner(self) -> Frame | None:
        return self.frames[-1] if self.frames else None

    def has(self, file: str, function: str = "") -> bool:
        """Is there a frame in a file of this ending, in a function of this (qualified or bare) name?"""
        return any(
            frame.file.replace("\\", "/").endswith(file)
            and (not function or frame.function.rpartition(".")[2] == function)
            for frame in self.frames
        )

    @property
    def own(self) -> Frame | None:
        """The innermost frame of the user's own code."""
        return next((frame for frame in reversed(self.frames) if not frame.package), None)

    @property
    def place(self) -> tuple[tuple[str, int | None], ...]:
        return tuple((frame.file, frame.line) for frame in self.frames)


@record(frozen=True, slots=True)
class Dump(Record):
    """The threads of one process; ``why`` says why there are none."""

    stacks: tuple[Stack, ...] = ()
    why: str = ""

    @property
    def main(self) -> Stack | None:
        return next(
            (one for one in self.stacks if one.name == "MainThread"), self.stacks[-1] if self.stacks else None
        )


def program() -> str:
    """Where py-spy is: beside our interpreter, where pip put it, or on PATH; "" when it is not installed."""
    for folder in (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin")):
        path = os.path.join(folder, "py-spy")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return _installed() or shutil.which("py-spy") or ""


def _installed() -> str:
    """The program of the distribution, which may lie in an environment that this one adds to its path."""
    from importlib import metadata

    try:
        files = metadata.files("py-spy") or []
    except metadata.PackageNotFoundError:
        return ""
    for file in files:
        if file.name == "py-spy":
            path = os.path.realpath(str(file.locate()))
            if os.access(path, os.X_OK):
                return path
    return ""


def dump(pids: Sequence[int], spy: str) -> dict[int, Dump]:
    """The stacks of these processes, a few at a time; blocks up to four seconds a round.

    A process that runs while it is read may change under the reader's eyes: such a look is taken again.
    """
    found = _dump(pids, spy)
    for _ in range(TRIES - 1):
        again = [pid for pid in pids if found[pid].why and not is_refusal(found[pid].why)]
        if not again:
            break
        found.update(_dump(again, spy))
    return found


def is_refusal(why: str) -> bool:
    """Does py-spy say that it may not look?"""
    return any(words in why for words in ("ermission", "EPERM", "not permitted"))


def _dump(pids: Sequence[int], spy: str) -> dict[int, Dump]:
    found: dict[int, Dump] = {}
    for start in range(0, len(pids), TOGETHER):
        running = {
            pid: Running(
                Command(
                    f"py-spy {pid}", (spy, "dump", "--json", "--nonblocking", "--pid", str(pid)), LIMIT_S
                ),
                tail=MAX_PRINTED,
            )
            for pid in pids[start : start + TOGETHER]
        }
        for pid, one in running.items():
            ended = one.finish()
            found[pid] = _read(pid, ended.stdout, ended.stderr, ended.start_error or ended.note)
    return found


def _read(pid: int, printed: str, complaint: str, note: str) -> Dump:
    import json

    transcript = threads_of(printed.encode(), str(pid)) if printed.lstrip().startswith("[") else None
    if transcript is None:
        last = [line.strip() for line in complaint.splitlines() if line.strip()]
        return Dump(why=note or (last[0] if last else "py-spy printed no stacks"))
    rows = [
        row for row in json.loads(printed) if isinstance(row, dict) and isinstance(row.get("frames"), list)
    ]
    stacks = []
    for row, event in zip(rows, transcript.events, strict=False):
        tid = row.get("os_thread_id")
        name = row.get("thread_name")
        stacks.append(
            Stack(
                tid if isinstance(tid, int) else 0,
                name if isinstance(name, str) else "",
                tuple(with_code(frame) for frame in event.frames),
                row.get("owns_gil") is True,
            )
        )
    return Dump(tuple(stacks))


def with_code(frame: Frame) -> Frame:
    """The frame with its line of source, where its file lies on this machine."""
    from torchdoctor.hang.sources import line_of

    if frame.line is None or frame.code:
        return frame
    return Frame(
        frame.file, frame.line, frame.function, line_of(frame.file, frame.line), frame.package, frame.at
    )
