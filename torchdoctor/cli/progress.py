"""What a command is doing, on one line of standard error that is written over, where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from torchdoctor.cli import streams

_SOON_S = 2.0
_Item = TypeVar("_Item")


class Line:
    """The line; to be cleared before anything else is written. ``wanted`` is false where nobody looks."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._begun = time.monotonic()
        self._length = 0

    def put(self, text: str) -> None:
        """Write over what stood there, cut to the width of the terminal; nothing where none is wanted."""
        if self.wanted:
            self._put(text[: streams.screen()[0] - 1])

    def put_late(self, text: str) -> None:
        """The same with the seconds that have gone by, once these are two."""
        seconds = time.monotonic() - self._begun
        if seconds >= _SOON_S:
            self.put(f"{seconds:.0f} s  {text}")

    def say(self, text: str) -> None:
        """A remark that stays."""
        self.clear()
        streams.complain(text)

    def clear(self) -> None:
        """Leave the line empty."""
        if self._length:
            self._put("")
            self._length = 0

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write("\r" + text.ljust(self._length) + ("" if text else "\r"))
            sys.stderr.flush()
        except OSError:
            return
        self._length = len(text)


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say, from the second second on, how long what is done here takes; nothing may be written meanwhile."""
    line = Line()
    if not line.wanted:
        yield
        return
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.5):
            line.put_late(text)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        line.clear()


def waited_for(items: Iterable[_Item], text: str) -> Iterator[_Item]:
    """The items; what makes each of them is waited for as ``waiting`` says."""
    coming = iter(items)
    while True:
        with waiting(text):
            try:
                item = next(coming)
            except StopIteration:
                return
        yield item
