"""The command hangs, or is interrupted: what each of its processes does at that moment."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from torchdoctor.hang import procfs, report, stacks, targets
from torchdoctor.hang.look import WORKING_SHARE, look
from torchdoctor.model import Outcome, Record, Report, counted
from torchdoctor.records import record

INTERRUPT_S: Final = 1.0  # a person waits
_INTERRUPT_INTERVAL_S: Final = 0.2
_STALL_INTERVAL_S: Final = 1.5
_SHOWN: Final = 16
_READS: Final = (("read", 0), ("select", 1), ("pselect6", 1))


@record(frozen=True, slots=True)
class Stop(Record):
    """Why it was looked at, what ``hang`` makes of it, and where the processes stood.

    ``busy``: they used a processor between the looks, or kernels ran on a GPU of theirs.
    """

    occasion: str
    report: Report
    standing: tuple[str, ...]
    busy: bool = False

    @property
    def works(self) -> bool:
        """Does it go on, as far as can be seen from outside?"""
        first = self.report.diagnoses[0].rule if self.report.diagnoses else "hang-idle"
        says_so = self.report.outcome is Outcome.NO_FAILURE and first != "hang-idle"
        return says_so or (self.report.outcome is not Outcome.DIAGNOSED and self.busy)


class Looking:
    """A look at a process and all below it, in a thread; ``done`` is called when it is over."""

    def __init__(
        self, pid: int, occasion: str, done: Callable[[], None], interval_s: float, gpus: bool = False
    ) -> None:
        self.stop: Stop | None = None
        self.began = time.monotonic()
        self._pid = pid
        self._occasion = occasion
        self._interval_s = interval_s
        self._gpus = gpus
        self._done = done
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @staticmethod
    def at_interrupt(pid: int, done: Callable[[], None]) -> Looking:
        return Looking(pid, "when Ctrl-C came", done, _INTERRUPT_INTERVAL_S)

    @staticmethod
    def at_stall(pid: int, silent: str, done: Callable[[], None], gpus: bool) -> Looking:
        """``gpus``: NVML may be asked, in a child, whether they work."""
        return Looking(pid, f"after {silent} without output", done, _STALL_INTERVAL_S, gpus)

    @property
    def over(self) -> bool:
        return not self._thread.is_alive() or self.stop is not None

    def _look(self) -> None:
        try:
            spy = stacks.program()
            seen, untold = look(targets.of_pids([self._pid]), self._interval_s, spy)
            places = tuple(report.standing(seen))
            more = len(places) - _SHOWN
            shown = (
                places
                if more <= 0
                else (*places[:_SHOWN], f"and {counted(more, 'other process', 'other processes')}")
            )
            found = report.of_looks(seen, untold, (self._pid,), spy)
            busy = sum(one.busy() for one in seen) >= WORKING_SHARE
            if self._gpus and not busy and found.outcome is not Outcome.DIAGNOSED:
                busy = gpus_work([one.pid for one in seen])
            self.stop = Stop(self._occasion, found, shown, busy)
        except (targets.TargetError, OSError):  # it has just ended
            pass
        finally:
            self._done()


def gpus_work(pids: Sequence[int]) -> bool:
    """Do kernels run on a GPU that one of these processes has open? Blocks while NVML is asked."""
    paths = {path for pid in pids for path in procfs.open_files(pid).values()}
    numbers = {int(found[1]) for path in paths if (found := re.fullmatch(r"/dev/nvidia(\d+)", path))}
    if not numbers:
        return False
    from torchdoctor.probes.opening import open_for_log

    source = open_for_log(None, True)
    try:
        shares = source.fetch("gpu.utilization").value
    finally:
        source.close()
    if not isinstance(shares, tuple):
        return False
    # in a container the numbers of the devices may be those of the host
    theirs = numbers if max(numbers) < len(shares) else range(len(shares))
    return any(isinstance(share := shares[number], int) and share > 0 for number in theirs)


def reads_terminal(pid: int) -> bool:
    """Does one of the processes wait for what a person types?"""
    for one in procfs.descendants([pid], targets.MOST):
        try:
            task = procfs.read(one).main
        except procfs.Gone:
            continue
        # select on one descriptor is on the first: so readline waits
        waits = task is not None and (task.call, task.argument) in _READS
        if waits and "/dev/pts/" in procfs.file_of(one, 0):
            return True
    return False
