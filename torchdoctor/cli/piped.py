"""Standard input as it comes in: passed on where that is asked for, with a word to whoever waits.

SIGINT and SIGTERM end the input instead of us, so that what came before them is judged.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TYPE_CHECKING

from torchdoctor.cli import streams
from torchdoctor.model import counted

if TYPE_CHECKING:
    from types import TracebackType

PROGRESS_S = 2.0
PATIENCE_S = 10.0  # where nobody sees progress
GRACE_S = 2.0  # Ctrl-C in a pipeline ends the program before us too: its last words are waited for
_TICK_S = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Piped:
    """A binary stream on a descriptor. ``signal`` is the one that came while it was read, else 0.

    ``tee`` is a descriptor that gets all that is read, until nobody reads there any more.
    """

    def __init__(self, source: int, tee: int | None = None) -> None:
        self.signal = 0
        self._source = source
        self._tee = tee
        self._shown = False
        self._told = False
        self._size = self._lines = 0
        self._on_terminal = os.isatty(2) and tee is None
        self._began = self._last = 0.0
        self._deadline: float | None = None
        self._over = False

    def __enter__(self) -> Piped:
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._before = {
            number: signal.signal(number, lambda *_: None)
            for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
        }  # fmt: skip
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def fileno(self) -> int:
        return self._source

    def read(self, size: int = -1) -> bytes:
        """Some bytes, none at the end. Raises OSError where a signal ended it before that."""
        if self._over:
            return b""
        self._began = self._began or time.monotonic()
        while not self._is_ready():
            self._tell()
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._end()
                name = signal.Signals(self.signal).name
                raise OSError(0, f"{name} ended it; what came before was read")
        data = os.read(self._source, size if size >= 0 else 1 << 16)
        if not data:
            self._end()
        self._pass_on(data)
        self._size += len(data)
        self._lines += data.count(b"\n")
        return data

    def _is_ready(self) -> bool:
        """Is there something to read? Waits for a moment."""
        poller = select.poll()
        poller.register(self._source, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        ready = [number for number, _ in poller.poll(_TICK_S * 1000)]
        if self._wake in ready:
            came = os.read(self._wake, 64)
            again = bool(self.signal) or len(came) > 1
            self.signal = self.signal or came[0]
            self._deadline = time.monotonic() + (0 if again else GRACE_S)
            return False
        return self._source in ready

    def _pass_on(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._tee is not None:
            try:
                view = view[os.write(self._tee, view) :]
            except BlockingIOError:  # who shares the descriptor does not wait for its reader; we do
                select.select([], [self._tee], [], _TICK_S)
            except OSError:
                self._tee = None

    def _tell(self) -> None:
        waited = time.monotonic() - self._began
        if self._on_terminal and waited >= PROGRESS_S:
            self._shown = True
            self._show(
                f"\r{self._size / (1 << 20):.1f} MiB, {counted(self._lines, 'line')} read, {waited:.0f} s"
            )
        elif not self._on_terminal and waited >= PATIENCE_S and not self._told:
            self._told = True
            streams.complain(f"still reading standard input, which has not ended after {PATIENCE_S:.0f} s")

    def _show(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(2, text.encode())

    def _end(self) -> None:
        """From here on a signal ends us."""
        if self._over:
            return
        self._over = True
        if self._shown:
            self._show("\r\x1b[K")
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._waker)
