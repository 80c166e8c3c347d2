"""Writes the note on an exception, once for each."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from torchdoctor.model import Outcome

if TYPE_CHECKING:
    from types import TracebackType

    from torchdoctor.hooks.report import Report

_told: tuple[int, int, int] | None = None


def tell(error: BaseException, stream: TextIO | None = None) -> None:
    """Write the note to ``stream`` or standard error; nothing where no rule knows it, or it was just told."""
    from torchdoctor.hooks.explain import of_error

    global _told
    stream = stream or sys.stderr
    key = (os.getpid(), id(error), id(_raised(error)))
    if stream is None or key == _told:
        return
    _told = key
    write(of_error(error), stream)


def _raised(error: BaseException) -> TracebackType | None:
    """Its innermost part of the traceback, which stays the same while the exception rises."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def write(report: Report, stream: TextIO) -> None:
    """Write the note, in colour on a terminal. Raises OSError as the stream does."""
    from torchdoctor.render import lines
    from torchdoctor.render.note import note

    if report.outcome is not Outcome.DIAGNOSED:
        return
    color = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines.write(note(report), stream, color)
    stream.flush()
