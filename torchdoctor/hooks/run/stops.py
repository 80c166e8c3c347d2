"""The command hangs, or is interrupted: what each of its processes does at that moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from torchdoctor.hang import procfs, report, stacks, targets
from torchdoctor.hang.look import WORKING_SHARE, look
from torchdoctor.model import Outcome, Record, Report
from torchdoctor.records import record

INTERRUPT_S: Final = 1.0  # a person waits
_INTERRUPT_INTERVAL_S: Final = 0.2
_STALL_INTERVAL_S: Final = 1.5
_SHOWN: Final = 16
_READS: Final = (("read", 0), ("select", 1), ("pselect6", 1))


@record(frozen=True, slots=True)
class Stop(Record):
    """Why it was looked at, what ``hang`` makes of it, and where the processes stood.

    ``busy``: they used a processor between the looks.
    """

    occasion: str
    report: Report
    standing: tuple[str, ...]
    busy: bool = False

    @property
    def works(self) -> bool:
        """Does it go on, as far as can be seen from outside?"""
        if self.report.outcome is Outcome.NO_FAILURE and self.report.diagnoses:
            return self.report.diagnoses[0].rule != "hang-idle"
        return self.report.outcome is not Outcome.DIAGNOSED and self.busy


class Looking:
    """A look at a process and all below it, in a thread; ``done`` is called when it is over."""

    def __init__(self, pid: int, occasion: str, done: Callable[[], None], interval_s: float) -> None:
        self.stop: Stop | None = None
        self.began = time.monotonic()
        self._pid = pid
        self._occasion = occasion
        self._interval_s = interval_s
        self._done = done
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @staticmethod
    def at_interrupt(pid: int, done: Callable[[], None]) -> Looking:
        return Looking(pid, "when Ctrl-C came", done, _INTERRUPT_INTERVAL_S)

    @staticmethod
    def at_stall(pid: int, silent: str, done: Callable[[], None]) -> Looking:
        return Looking(pid, f"after {silent} without output", done, _STALL_INTERVAL_S)

    @property
    def over(self) -> bool:
        return not self._thread.is_alive() or self.stop is not None

    def _look(self) -> None:
        try:
            spy = stacks.program()
            seen, untold = look(targets.of_pids([self._pid]), self._interval_s, spy)
            places = tuple(report.standing(seen))
            more = len(places) - _SHOWN
            shown = places if more <= 0 else (*places[:_SHOWN], f"and {more} more processes")
            found = report.of_looks(seen, untold, (self._pid,), spy)
            self.stop = Stop(self._occasion, found, shown, sum(one.busy() for one in seen) >= WORKING_SHARE)
        except (targets.TargetError, OSError):  # it has just ended
            pass
        finally:
            self._done()


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
