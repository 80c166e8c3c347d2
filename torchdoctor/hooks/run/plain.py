"""A command behind plain pipes, where there are no pseudo-terminals and no process groups: on Windows."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

from torchdoctor.hooks.run.child import refused
from torchdoctor.hooks.run.wish import Wish
from torchdoctor.intake.live import Output

_PIECE = 1 << 16
_TOLD = "torchdoctor: on Windows the command runs behind plain pipes: it does not see a terminal\n"


class Plain:
    """As ``Session``, without keys, signals and looks; Ctrl-C reaches the command by itself."""

    def __init__(self, wish: Wish, output: Output) -> None:
        """Raises StartError."""
        self.wish = wish
        self.output = output
        self.killed = self.stopped = self.readers_gone = False
        self.stops = self.lost = ()
        try:
            self._process = subprocess.Popen(
                wish.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except (OSError, ValueError) as error:
            raise refused(wish.argv[0], error) from None
        if not wish.quiet:
            self.say(_TOLD)

    @property
    def code(self) -> int:
        return self._process.wait()

    def run(self) -> None:
        """Until the command has ended and closed its output."""
        pairs = ((self._process.stdout, 1), (self._process.stderr, 2))
        threads = [threading.Thread(target=self._copy, args=pair, daemon=True) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                with contextlib.suppress(KeyboardInterrupt):  # the command got it too
                    thread.join(1.0)

    def _copy(self, source: IO[bytes], target: int) -> None:
        while data := source.read(_PIECE):
            self.output.put(target - 1, data)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(target, view) :]
            except OSError:
                self.readers_gone = True
                source.close()
                return

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()

    @property
    def python(self) -> str:
        import shutil

        name = shutil.which(self.wish.argv[0]) or ""
        return name if "python" in os.path.basename(name).lower() else ""

    def logs(self) -> list[str]:
        return []
