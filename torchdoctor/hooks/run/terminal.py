"""The terminal that the user sits at, and the pseudo-terminal that stands in for it. Not on Windows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import termios
import tty
from collections.abc import Iterator

_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


class Terminal:
    """A pseudo-terminal of the size and the modes of the user's, and what the user's own is switched to.

    ``keys`` says whether standard input is that terminal too, so that what is typed is passed on.
    """

    def __init__(self, user: int, keys: bool) -> None:
        """Raises OSError when there is no pseudo-terminal left."""
        self._user = user
        self.keys = keys
        self._modes: list[int | list[bytes | int]] | None = None
        self.master, self.slave = os.openpty()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self.slave, termios.TCSANOW, termios.tcgetattr(user))
        self.resize()
        os.set_blocking(self.master, False)

    def resize(self) -> None:
        """Give the pseudo-terminal the size of the user's; its programs are told by the kernel."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, fcntl.ioctl(self._user, termios.TIOCGWINSZ, _SIZE))

    def is_ours(self) -> bool:
        """Are we in the foreground of the user's terminal?"""
        return foreground(self._user) == os.getpgrp()

    def take(self) -> None:
        """Let the pseudo-terminal alone treat keys and line ends, where we are in the foreground."""
        if self._modes is not None or not self.is_ours():
            return
        with contextlib.suppress(termios.error):
            self._modes = termios.tcgetattr(self._user)
            if self.keys:
                tty.setraw(self._user, termios.TCSADRAIN)
            else:  # Ctrl-C still comes as a signal
                modes = termios.tcgetattr(self._user)
                modes[1] &= ~termios.OPOST
                termios.tcsetattr(self._user, termios.TCSADRAIN, modes)

    def give_back(self) -> None:
        """Put the user's terminal into the modes that it had."""
        if self._modes is not None:
            with contextlib.suppress(termios.error), unstopped():
                termios.tcsetattr(self._user, termios.TCSADRAIN, self._modes)
            self._modes = None

    def interrupts(self, typed: bytes) -> int:
        """Where in what was typed is the key that interrupts, as the program has it set? -1: nowhere."""
        return self._place(typed, termios.VINTR)

    def suspends(self, typed: bytes, group: int) -> bool:
        """Is there the key that stops a job, and would it be for this process group?

        The kernel stops no group whose parents are in another session, as the command's are.
        """
        return foreground(self.master) == group and self._place(typed, termios.VSUSP) >= 0

    def _place(self, typed: bytes, which: int) -> int:
        try:
            modes = termios.tcgetattr(self.master)
        except termios.error:
            return -1
        key = modes[6][which]
        return typed.find(key) if modes[3] & termios.ISIG and key != b"\0" else -1

    def become_controlling(self) -> None:
        """To be called in the new process: its session's terminal is the pseudo-terminal."""
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)


def foreground(terminal: int) -> int:
    """The process group in the foreground; -1 where there is none to ask about."""
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return -1


def put_forward(terminal: int, group: int) -> None:
    """Put a process group into the foreground, also when we are not in it ourselves."""
    with contextlib.suppress(OSError), unstopped():
        os.tcsetpgrp(terminal, group)


@contextlib.contextmanager
def unstopped() -> Iterator[None]:
    """What changes a terminal from the background is not stopped for it."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, before)
