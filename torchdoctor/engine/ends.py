"""How each rank's process ended, by the launcher, the scheduler or the MPI that watched it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.number import count
from torchdoctor.patterns import pattern

# signals that a process does not get from a launcher that cleans up behind another one's failure
OWN_SIGNALS = frozenset({-4, -7, -8, -9, -11, 132, 135, 136, 137, 139})
# a launcher never sends these
CRASH_SIGNALS = frozenset({-4, -7, -8, -11, 132, 135, 136, 139})
SENT_SIGNALS = frozenset({-1, -2, -15, 129, 130, 143})
ABORT = frozenset({-6, 134})

_WORDS = {
    "Killed": -9, "Segmentation fault": -11, "Bus error": -7, "Aborted": -6, "Terminated": -15,
    "Illegal instruction": -4, "Floating point exception": -8, "Out Of Memory": -9,
}  # fmt: skip
_BOX = (
    r"(?m)^\s+time *: ?(?P<time>\S+)\s*$\n^\s+host *: ?(?P<host>\S+)\s*$\n"
    r"^\s+rank *: ?(?P<rank>\d{1,6})(?: \(local_rank: (?P<local>\d{1,6})\))?\s*$\n"
    r"^\s+exitcode *: ?(?P<code>-?\d{1,6})"
)
_SRUN = (
    r"srun: error: (?P<host>[\w.-]{1,64}): tasks? (?P<tasks>[\d,\[\] -]{1,200}): "
    r"(?P<how>Exited with exit code (?P<code>\d+)|[A-Z][A-Za-z ]{3,40})"
)
_MPI = (
    r"process rank (?P<rank>\d{1,6}) with PID \d+ on node (?P<host>[\w.-]{1,64}) "
    r"exited on signal (?P<signal>\d+)"
)
# Open MPI, of the first process that left with an exit code: [[family,job],rank]
_MPI_FIRST = r"Process name: \[\[\d{1,9},1\],(?P<rank>\d{1,6})\]"
_AGENT = r"\(exitcode: (?P<code>-?\d{1,10})\) local_rank: (?P<local>\d{1,6}) \(pid: (?P<pid>\d{1,10})\)"
_RANKS = 4096


class End(NamedTuple):
    """The end of one rank's process. ``code`` is as torchrun prints it: a signal is negative."""

    rank: int
    local_rank: int | None
    host: str | None
    time: str | None
    code: int
    event: Event
    # srun numbers its tasks: ranks, or launchers of several ranks each. A task that is a rank and leaves
    # with an exit code has printed its exception under its number.
    of_a_task: bool = False
    root: bool = False  # the launcher calls it the root cause: a hint, it may be the first by local rank only
    alone: bool = False  # its launcher tells of the first process to end, and of no other


def ends(transcript: Transcript) -> dict[int, End]:
    """The ends that the text tells, one a rank; the first said counts."""
    found: dict[int, End] = {}
    watched = any(event.kind is EventKind.LAUNCHER for event in transcript.events)
    for event in transcript.events:
        if event.quoted:
            continue
        if event.kind is EventKind.LAUNCHER:
            items: Iterator[End] = _box(event)
        elif "srun: error:" in event.text and not watched:
            items = _srun(event)
        elif "exited on signal" in event.text or "Process name: [[" in event.text:
            items = _mpi(event)
        else:
            continue
        for item in items:
            if len(found) < _RANKS:
                known = found.get(item.rank)
                if known is None or (item.root and not known.root):
                    found[item.rank] = item
    if not found:
        found.update(_agents(transcript))
    return found


def _box(event: Event) -> Iterator[End]:
    root = event.text.find("Root Cause")
    for one in pattern(_BOX).finditer(event.text):
        host = one["host"] if one["host"] not in ("localhost", "127.0.0.1") else None
        time = one["time"].replace("_", "T")
        local = int(one["local"]) if one["local"] else None
        first = root >= 0 and one.start() > root
        yield End(int(one["rank"]), local, host, time, int(one["code"]), event, root=first)


def _srun(event: Event) -> Iterator[End]:
    for one in pattern(_SRUN).finditer(event.text):
        code = int(one["code"]) if one["code"] else None
        if code is None:
            code = next((number for word, number in _WORDS.items() if one["how"].startswith(word)), None)
        if code is None:
            continue
        for rank in _numbers(one["tasks"]):
            yield End(rank, None, one["host"], event.time, code, event, of_a_task=True)


def _numbers(text: str) -> Iterator[int]:
    for part in text.strip("[] ").split(","):
        low, _, high = part.strip(" []").partition("-")
        first, last = count(low), count(high)
        if first is not None:
            yield from range(first, min(first if last is None else last, first + _RANKS) + 1)


def _mpi(event: Event) -> Iterator[End]:
    for one in pattern(_MPI).finditer(event.text):
        yield End(int(one["rank"]), None, one["host"], event.time, -int(one["signal"]), event, alone=True)
    for one in pattern(_MPI_FIRST).finditer(event.text):
        yield End(int(one["rank"]), None, event.host, event.time, 1, event, alone=True)


def _agents(transcript: Transcript) -> dict[int, End]:
    """Lines of agents name local ranks; they are ranks where one agent alone speaks."""
    found: dict[int, End] = {}
    sources: set[str] = set()
    for event in transcript.events:
        if event.kind is EventKind.LAUNCHER and not event.quoted:
            for one in pattern(_AGENT).finditer(event.text):
                sources.add(event.source)
                rank = int(one["local"])
                found.setdefault(rank, End(rank, rank, event.host, event.time, int(one["code"]), event))
    return found if len(sources) == 1 else {}
