"""What the command prints goes to where we print, byte for byte as it comes, and is kept."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable

from torchdoctor.intake.live import Output

_PIECE = 1 << 16
_PATIENCE_S = 0.2
_CAT = ("/bin/cat", "/usr/bin/cat")


class Relay:
    """Copies one stream of the command, in a thread of its own: a slow reader of one holds up no other.

    ``lost`` gets the reason when what we print cannot be written any more; the command is told as it would
    be without us, by the end of its pipe.
    """

    def __init__(
        self, source: int, target: int, output: Output, stream: int, lost: Callable[[str], None]
    ) -> None:
        self.source = source
        self.target = target
        self.at = time.monotonic()  # of the last byte
        self._output = output
        self._stream = stream
        self._lost = lost
        self._over = threading.Event()
        self._open = True  # are there still writers, as far as we know?
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self, give_up: Callable[[], bool]) -> None:
        """The command has ended: pass on what it left, as slowly as it is read, until ``give_up``.

        Others that still print go on, through a program.
        """
        os.write(self._waker, b"\0")
        while self._thread.is_alive():
            self._thread.join(_PATIENCE_S)
            if self._thread.is_alive() and give_up():
                return
        for number in (self._wake, self._waker):
            os.close(number)
        if self._open:
            _hand_over(self.source, self.target)
        elif self.source >= 0:
            with contextlib.suppress(OSError):
                os.close(self.source)

    def _copy(self) -> None:
        poller = select.poll()
        poller.register(self.source, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while True:
            ready = [number for number, _ in poller.poll()]
            if self.source not in ready:
                return  # woken, and nothing is left
            try:
                data = os.read(self.source, _PIECE)
            except BlockingIOError:
                continue
            except OSError:  # EIO: nobody has the pseudo-terminal open any more
                data = b""
            if not data:
                self._open = False
                return
            self.at = time.monotonic()
            try:
                write_all(self.target, data)
            except OSError as error:
                self._open = False
                self._lost("" if isinstance(error, BrokenPipeError) else error.strerror or str(error))
                source, self.source = self.source, -1  # its number may be that of something else from here on
                os.close(source)
                return
            self._output.put(self._stream, data)


def write_all(target: int, data: bytes) -> None:
    """Write all of it, however slowly it is taken. Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # somebody who shares it does not want to wait
            select.select([], [target], [])


def _hand_over(source: int, target: int) -> None:
    """What the command left behind, a daemon, prints on: a program copies it for as long as it does."""
    cat = next((path for path in _CAT if os.access(path, os.X_OK)), None)
    if cat is not None:
        os.set_blocking(source, True)
        subprocess.Popen(
            (cat,), stdin=source, stdout=target, stderr=subprocess.DEVNULL, start_new_session=True
        ).returncode = 0  # nobody waits for it
    os.close(source)
