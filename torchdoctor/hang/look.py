"""Two looks at some processes, a moment apart: what stood still, and what moved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from torchdoctor.hang import procfs, stacks
from torchdoctor.hang.procfs import Gone, Process, Task
from torchdoctor.hang.stacks import Dump, Stack
from torchdoctor.model import Record
from torchdoctor.records import record

INTERVAL_S: Final = 1.5
# of the interval on a processor: more than that is work, less is a look at the clock now and then
WORKING_SHARE: Final = 0.1


@record(frozen=True, slots=True)
class Seen(Record):
    """One process at two moments. ``second`` equals ``first`` where it ended in between."""

    first: Process
    second: Process
    before: Dump
    after: Dump
    interval_s: float
    ended: bool = False

    @property
    def pid(self) -> int:
        return self.second.pid

    @property
    def rank(self) -> int | None:
        return self.second.rank

    @property
    def main(self) -> Stack | None:
        return self.after.main

    def task(self, stack: Stack) -> Task | None:
        """The kernel's side of a Python thread."""
        return next((one for one in self.second.tasks if one.tid == stack.tid), None)

    def same(self, stack: Stack) -> bool:
        """Did this thread stand at the same lines in both looks?"""
        earlier = next((one for one in self.before.stacks if one.tid == stack.tid), None)
        return earlier is not None and earlier.place == stack.place

    def busy(self, tid: int | None = None) -> float:
        """The share of the time between the looks that one thread, or all together, spent on a processor."""
        if self.interval_s <= 0:
            return 0.0
        if tid is None:
            return max(0.0, self.second.cpu_s - self.first.cpu_s) / self.interval_s
        earlier = {task.tid: task.cpu_s for task in self.first.tasks}
        later = next((task for task in self.second.tasks if task.tid == tid), None)
        if later is None or tid not in earlier:
            return 0.0
        return max(0.0, later.cpu_s - earlier[tid]) / self.interval_s

    def pauses(self, tid: int) -> float:
        """How often a second, between the looks, a thread gave the processor up by itself."""
        earlier = {task.tid: task.pauses for task in self.first.tasks}
        later = next((task.pauses for task in self.second.tasks if task.tid == tid), 0)
        return (later - earlier.get(tid, later)) / self.interval_s if self.interval_s > 0 else 0.0

    @property
    def still(self) -> bool:
        """Its Python threads stand where they stood, and it hardly used a processor."""
        moved = any(not self.same(stack) for stack in self.after.stacks)
        return not moved and self.busy() < WORKING_SHARE


def look(pids: Sequence[int], interval_s: float, spy: str) -> tuple[list[Seen], dict[int, str]]:
    """Look twice. The second value says of each process that could not be looked at, why."""
    untold: dict[int, str] = {}
    first: dict[int, Process] = {}
    for pid in pids:
        try:
            first[pid] = procfs.read(pid)
        except Gone:
            untold[pid] = "there is no process of this number (any more)"
    spied = [pid for pid, one in first.items() if one.state != "Z" and one.command] if spy else []
    begun = time.monotonic()
    before = stacks.dump(spied, spy) if spied else {}
    # the kernel's figures are taken right behind the stacks, so that both belong together
    first = {pid: _again(one) for pid, one in first.items()}
    at_first = time.monotonic()
    time.sleep(max(0.0, interval_s - (at_first - begun)))
    second: dict[int, Process] = {}
    after = stacks.dump(spied, spy) if spied else {}
    for pid, one in first.items():
        second[pid] = _again(one)
    span = time.monotonic() - at_first
    missing = Dump(why="" if spy else "py-spy is not installed")
    return [
        Seen(
            one,
            second[pid],
            before.get(pid, missing),
            after.get(pid, missing),
            span,
            ended=not _alive(pid, one),
        )
        for pid, one in first.items()
    ], untold


def _again(one: Process) -> Process:
    try:
        found = procfs.read(one.pid)
    except Gone:
        return one
    return found if found.begun == one.begun else one


def _alive(pid: int, one: Process) -> bool:
    try:
        return procfs.read(pid).begun == one.begun
    except Gone:
        return False
