"""One line on standard error that says what is being done, and is written over; only on a terminal."""

from __future__ import annotations

import os
import sys
from types import TracebackType

from torchdoctor.cli import streams


class ProgressLine:
    """``wanted`` says whether there is a terminal to show it on. At the end of ``with`` it is gone."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._length = 0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def show(self, text: str) -> None:
        if self.wanted:
            self._put(text[: streams.screen()[0] - 1])

    def say(self, text: str) -> None:
        """A line that stays, on a terminal or not."""
        self._clear()
        streams.complain(text)

    def _clear(self) -> None:
        if self._length:
            self._put("")

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write("\r" + text.ljust(self._length) + ("" if text else "\r"))
            sys.stderr.flush()
        except OSError:
            return
        self._length = len(text)
