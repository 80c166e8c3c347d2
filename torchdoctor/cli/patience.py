"""Standard input that does not end: whoever waits is told what is waited for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

AFTER_S = 10.0


class Patient:
    """A binary stream that calls ``tell`` once when it is still being read after so many seconds.

    The time begins with the first read. A thread of its own tells, since a read waits for as long as nothing
    comes; it does not keep the process.
    """

    def __init__(self, stream: BinaryIO, tell: Callable[[], None], after_s: float = AFTER_S) -> None:
        self._stream = stream
        self._tell = tell
        self._lock = threading.Lock()
        self._timer = threading.Timer(after_s, self._late)
        self._timer.daemon = True
        self._waiting = self._due = self._told = False

    def read(self, size: int = -1) -> bytes:
        """As that of the stream."""
        with self._lock:
            if self._timer.ident is None:
                self._timer.start()
            self._waiting = True
        self._say()
        try:
            data = self._stream.read(size)
        finally:
            self._waiting = False
        if not data:
            self._timer.cancel()
        return data

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def _late(self) -> None:
        self._due = True
        self._say()

    def _say(self) -> None:
        with self._lock:
            now = self._due and self._waiting and not self._told
            self._told = self._told or now
        if now:
            self._tell()
