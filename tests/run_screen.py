"""A terminal that ``torchdoctor run`` is tried on, beside the same command without it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
RUN = [sys.executable, "-m", "torchdoctor", "run"]
QUIET = [*RUN, "-q", "--"]
WIDTH, HEIGHT = 90, 30


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": ROOT, **more}


class Screen:
    """A terminal that a program runs on, and all that it was sent."""

    def __init__(self, command: Sequence[str]) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), environment(PS1="$ ", TERM="xterm", NO_COLOR="1"))
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self.text = b""
        self.code: int | None = None
        self._passed = 0

    def until(self, words: bytes = b"", limit_s: float = 30.0) -> bytes:
        """All of the text, once these words came after those waited for before; else to its end."""
        deadline = time.monotonic() + limit_s
        while not words or words not in self.text[self._passed :]:
            assert time.monotonic() < deadline, self.text
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    data = os.read(self.terminal, 65536)
                except OSError:
                    data = b""
                if not data:
                    assert not words, self.text
                    self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                    break
                self.text += data
        self._passed = self.text.find(words, self._passed) + len(words)
        return self.text

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def press(self, key: bytes, words: bytes) -> None:
        """Type a key until the words come: what a stopped program is sent is lost, as with any program."""
        for _ in range(10):
            self.type(key)
            with contextlib.suppress(AssertionError):
                self.until(words, 3.0)
                return
        raise AssertionError(self.text)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)
