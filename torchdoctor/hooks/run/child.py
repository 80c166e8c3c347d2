"""The command as a process: how it is started, told, and waited for."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.descendants import die_with_parent

if TYPE_CHECKING:
    from torchdoctor.hooks.run.terminal import Terminal

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as shells, env and timeout have them


class StartError(TorchdoctorError):
    """A command that cannot be started; ``code`` is the exit code that says so."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Child:
    """The command, started. Raises StartError.

    With ``terminal`` its standard streams are that, as far as ours are terminals; else output and errors come
    through pipes. ``own_group``: signals of our group do not reach it; ``forward``: it is put into the
    foreground of the terminal that standard input is.
    """

    def __init__(
        self, argv: Sequence[str], terminal: Terminal | None, own_group: bool = False, forward: bool = False
    ) -> None:
        self.stopped = 0  # by this signal
        self.code: int | None = None  # negative for a signal
        self.own_group = own_group or terminal is not None
        self.forward = forward
        on_terminal = {number: is_terminal(number) for number in (0, 1, 2)} if terminal else {}
        slave = terminal.slave if terminal else -1
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                argv,
                stdin=slave if on_terminal.get(0) else None,
                stdout=slave if terminal else subprocess.PIPE,
                stderr=slave if on_terminal.get(2) else subprocess.PIPE,
                bufsize=0,
                start_new_session=terminal is not None,
                preexec_fn=None if sys.platform == "win32" else lambda: self._prepare(terminal),
            )
        except (OSError, ValueError) as error:
            raise refused(argv[0], error) from None
        except subprocess.SubprocessError as error:  # of what is done in the new process
            raise StartError(f"{argv[0]}: cannot be started: {error}", 125) from None
        if terminal is not None:
            os.close(slave)
        self.pid = self.process.pid

    def _prepare(self, terminal: Terminal | None) -> None:
        """In the new process, before it becomes the command: it is to end when we are killed."""
        if terminal is not None:
            terminal.become_controlling()
        elif self.own_group:
            os.setpgid(0, 0)
            if self.forward:
                from torchdoctor.hooks.run.terminal import put_forward

                put_forward(0, os.getpid())
        die_with_parent()

    @property
    def pipes(self) -> list[IO[bytes] | None]:
        """What it prints on standard output and standard error, where these are pipes."""
        return [self.process.stdout, self.process.stderr]

    def look(self) -> bool:
        """Has it ended? Sets ``code``, or ``stopped``."""
        if self.code is not None:
            return True
        if sys.platform == "win32":
            self.code = self.process.poll()
            return self.code is not None
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:  # somebody ignores SIGCHLD: nobody can tell how it ended
            pid, status = self.pid, 0
        if pid and os.WIFSTOPPED(status):
            self.stopped = os.WSTOPSIG(status)
        elif pid:
            self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self) -> int:
        """How it ended, once it has."""
        while not self.look():
            time.sleep(0.05)
        return self.code or 0

    def tell(self, number: int, group: bool = False) -> None:
        """Send a signal to the command, or to its whole group."""
        if self.code is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group and self.own_group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)


def is_alone() -> bool:
    """Is nobody else in our process group, as there is in a pipeline? True where that cannot be told."""
    own = os.getpgrp()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                if os.getpgid(int(name)) == own:
                    return False
    return True


def is_terminal(number: int) -> bool:
    """Is it an open terminal?"""
    with contextlib.suppress(OSError):
        return os.isatty(number)
    return False


def refused(name: str, error: OSError | ValueError) -> StartError:
    """What is wrong with the name of the command, and what would be right."""
    if isinstance(error, FileNotFoundError):
        if os.path.exists(name) and os.sep in name:
            return StartError(f"{name}: the interpreter in its first line is not there", NOT_EXECUTABLE)
        if os.path.isfile(name):
            return StartError(
                f"{name}: not found on PATH; for the file in this folder: torchdoctor run -- "
                f"{'python ' if name.endswith('.py') else './'}{name}",
                NOT_FOUND,
            )
        where = "no such file" if os.sep in name else "not found on PATH"
        return StartError(
            f"{name}: {where}; name a command, as in: torchdoctor run -- python train.py", NOT_FOUND
        )
    if isinstance(error, PermissionError):
        what = "a folder" if os.path.isdir(name) else "not executable"
        hint = f"; run it with its interpreter: python {name}" if name.endswith(".py") else ""
        return StartError(f"{name}: {what}{hint}", NOT_EXECUTABLE)
    if isinstance(error, ValueError):
        return StartError(f"{name}: {error}", 125)
    return StartError(f"{name}: cannot be run: {error.strerror}", NOT_EXECUTABLE)
