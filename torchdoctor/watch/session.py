"""``watch_globals``: the same examination inside of a running program."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from torchdoctor.model import Outcome, Report, Verdict
from torchdoctor.watch.child import patches, places, settings
from torchdoctor.watch.child.tracer import Tracer
from torchdoctor.watch.report import findings
from torchdoctor.watch.target import Change

if TYPE_CHECKING:
    from types import TracebackType

_HERE = os.path.dirname(os.path.abspath(__file__))


class Watch:
    """Who changed process-wide settings while the ``with`` block ran.

    After the block ``changes`` holds every change in order, ``report`` those that stayed. Where a debugger or
    a coverage tool traces already, the statements cannot be told, only what changed.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._changes: list[Change] = []
        self._faults: list[str] = []
        self._tracer: Tracer | None = None
        self._traced = False

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes so far, those that were taken back too."""
        return tuple(self._changes)

    @property
    def report(self) -> Report:
        """The settings that are changed now, with the statements that did it."""
        results, notes = findings(self._changes, own=True)
        if not self._traced and not self._faults:
            notes = [
                *notes,
                "another trace function (debugger, coverage) was active: no statements could be determined",
            ]
        bad = any(result.verdict in (Verdict.FAIL, Verdict.WARN) for result in results)
        return Report(
            Outcome.DIAGNOSED if bad else Outcome.NO_FAILURE,
            checks=tuple(results),
            notes=tuple(notes),
            faults=tuple(self._faults),
        )

    def __enter__(self) -> Watch:
        frame = sys._getframe(1)
        self._tracer = Tracer(settings, places, patches.Patches, self._record, (_HERE,))
        self._tracer.baseline(False)
        self._traced = sys.gettrace() is None
        if self._traced:
            self._tracer.trace_file(frame.f_code.co_filename)
            self._tracer.begin()
            frame.f_trace = self._tracer.trace_running(frame)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._tracer is not None
        frame = sys._getframe(1)
        if self._traced:
            self._traced = self._tracer.end()
            frame.f_trace = None
        self._tracer.last_look(frame if self._traced else None)
        self._tracer = None
        if self._stream is not None:
            from torchdoctor.render.checks import render_checks

            report = self.report
            if report.checks or report.notes:
                render_checks(report, stream=self._stream, subject="process-wide settings")

    def _record(self, entry: dict[str, object]) -> None:
        if "fault" in entry:
            self._faults.append(str(entry["fault"]))
        else:
            self._changes.append(Change.told(entry))


def watch_globals(stream: TextIO | None = None) -> Watch:
    """Watch who changes process-wide settings: ``with watch_globals() as watch: import detector``.

    Lines of Python run some twenty times slower in the block, torch's own code does not. With ``stream``
    what was found is written there at the end. Watches the thread that enters the block, and those that
    begin in it.
    """
    return Watch(stream)
