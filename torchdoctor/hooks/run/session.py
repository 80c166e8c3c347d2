"""One command from its start to its end: output, keys and signals go through, and the end is explained."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator

from torchdoctor.hooks.run.child import Child, StartError, is_alone, is_terminal
from torchdoctor.hooks.run.relay import Relay, write_all
from torchdoctor.hooks.run.stops import INTERRUPT_S, Looking, Stop, reads_terminal
from torchdoctor.hooks.run.terminal import Terminal, foreground, put_forward
from torchdoctor.hooks.run.watch import Watch
from torchdoctor.hooks.run.wish import Ran, Wish
from torchdoctor.intake.live import Output
from torchdoctor.probes import descendants

# signals that are for the command: it gets each that we get
_PASSED = ("SIGHUP", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT", "SIGXCPU")
_OURS = ("SIGINT", "SIGTSTP", "SIGCONT", "SIGWINCH", "SIGCHLD")
# of those, what the keyboard sends to all in the foreground
_KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP)
_ENDS = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
_JOB_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_TYPED_BYTES = 4096
_LONG_S = 3600.0
_LAST_WORDS_S = 1.0  # so long a slow reader may take for what a command left that a signal ended
_AGAIN_S = 15.0  # what was found to work after all is looked at again so much later, or after half the limit


class Session:
    """Runs the command. ``code`` is negative for a signal; ``stops`` are the looks at it that were taken."""

    def __init__(self, wish: Wish, output: Output, stalled: Callable[[Ran, Stop], None]) -> None:
        """``stalled`` is called once, in a thread, when the command stalls. Raises StartError, OSError."""
        self.wish = wish
        self.output = output
        self.watch = Watch(wish.argv)
        self.stops: list[Stop] = []
        self.stopped = self.killed = False
        self.lost: list[str] = []
        self.readers_gone = False
        self._stalled = stalled
        self._typed = b""
        self._deliver: Callable[[], None] | None = None  # what passes Ctrl-C on, once it was looked
        self._interrupted = False
        self._looking: Looking | None = None
        self._look_at = time.monotonic() + (wish.stall_s or _LONG_S)
        self._wake, self._waker = os.pipe()
        for number in (self._wake, self._waker):
            os.set_blocking(number, False)
        self.terminal = _terminal()
        forward = self.terminal is None and is_terminal(0) and foreground(0) == os.getpgrp()
        # in a pipeline the others need the foreground as well
        own = self.terminal is not None or not forward or is_alone()
        self._handlers = contextlib.ExitStack()
        self._handlers.enter_context(self._signals())
        try:
            self.child = self._start(own, forward and own)
        except BaseException:
            self._handlers.close()
            raise
        self._relays = self._start_relays()

    def _start(self, own_group: bool, forward: bool) -> Child:
        if self.terminal is None:
            return Child(self.wish.argv, None, own_group, forward)
        self.terminal.take()  # before the first line is printed
        try:
            return Child(self.wish.argv, self.terminal)
        except StartError:
            self.terminal.give_back()
            raise

    def _start_relays(self) -> list[Relay]:
        pairs = [(self.terminal.master, 1, 0)] if self.terminal is not None else []
        for stream, pipe in enumerate(self.child.pipes):
            if pipe is not None:
                pairs.append((os.dup(pipe.fileno()), stream + 1, stream))
                pipe.close()
        return [Relay(source, target, self.output, stream, self._lose) for source, target, stream in pairs]

    def _lose(self, reason: str) -> None:
        self.readers_gone = self.readers_gone or not reason
        if reason:
            self.lost.append(f"the output cannot be written: {reason}")

    @property
    def code(self) -> int:
        return self.child.wait()

    @property
    def python(self) -> str:
        """The interpreter of the command, else ""."""
        return self.watch.python

    def logs(self) -> list[str]:
        """Files that its ranks wrote."""
        return self.watch.logs()

    def run(self) -> None:
        """Until the command has ended and all that it printed was passed on; the terminal is as before."""
        with self._handlers:
            try:
                while not self.child.look():
                    self._turn()
            finally:
                self._end()

    def _end(self) -> None:
        ended = time.monotonic()
        for relay in self._relays:
            relay.finish(lambda: self._told_to_end(ended))
        if self.terminal is not None:
            self.terminal.give_back()
        elif self.child.forward:
            put_forward(0, os.getpgrp())

    def _told_to_end(self, ended: float) -> bool:
        """Would the command by itself no longer wait for its reader? A signal ended it, or would have now."""
        if self.code < 0 and time.monotonic() - ended > _LAST_WORDS_S:
            return True
        with contextlib.suppress(BlockingIOError):
            return bool(_ENDS.intersection(os.read(self._wake, 512)))
        return False

    # ------------------------------------------------------------------ one turn of the loop

    def _turn(self) -> None:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        terminal = self.terminal
        if terminal is not None:
            if terminal.keys and not self._typed and terminal.is_ours():
                poller.register(0, select.POLLIN)
            if self._typed:
                poller.register(terminal.master, select.POLLOUT)
        ready = {number for number, _ in poller.poll(self._pause_s() * 1000)}
        if self._wake in ready:
            for number in os.read(self._wake, 512):
                self._signal(number)
        if terminal is not None and 0 in ready:
            self._type(terminal)
        if self._typed and terminal is not None:
            self._send(terminal)
        stopped, self.child.stopped = self.child.stopped, 0
        if stopped in _JOB_STOPS and self.child.forward:
            self._suspend()
        if self.watch.due() <= 0:
            self.watch.look(self.child.pid)
        self._follow_looks()

    def _pause_s(self) -> float:
        now = time.monotonic()
        pauses = [self.watch.due(), _LONG_S]
        if self._deliver is not None and self._looking is not None:
            pauses.append(self._looking.began + INTERRUPT_S - now)
        if self.wish.stall_s is not None and self._looking is None:
            pauses.append(self._stall_due() - now)
        return max(0.0, min(pauses))

    # -------------------------------------------------------------------------------- signals

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """What comes wakes the loop; what was ignored before stays so, for the command too."""
        before = {}
        descriptor = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for name in (*_PASSED, *_OURS):
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda *_: None)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(descriptor)

    def _signal(self, number: int) -> None:
        child, terminal = self.child, self.terminal
        if number == signal.SIGWINCH and terminal is not None:
            terminal.resize()
        elif number == signal.SIGCONT:
            self._go_on()
        elif number in (0, signal.SIGCHLD, signal.SIGWINCH) or (number in _KEYS and not child.own_group):
            pass  # a look is over; or the keyboard told the command as well
        elif number == signal.SIGTSTP and terminal is not None:
            self._suspend()
        elif number == signal.SIGINT:
            self._interrupt(lambda: child.tell(signal.SIGINT, group=True))
        else:
            child.tell(number, group=number in _KEYS)

    def _suspend(self) -> None:
        """The keyboard stops the command, and us, until the shell lets us go on."""
        if self.terminal is not None:
            self.child.tell(signal.SIGSTOP, group=True)
            self.terminal.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _go_on(self) -> None:
        if self.terminal is not None:
            self.terminal.take()
            self.terminal.resize()
        elif self.child.forward and foreground(0) == os.getpgrp():
            put_forward(0, self.child.pid)
        self.child.tell(signal.SIGCONT, group=True)

    # ----------------------------------------------------------------------------------- keys

    def _type(self, terminal: Terminal) -> None:
        try:
            data = os.read(0, _TYPED_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal has gone
            terminal.keys = False
            return
        if terminal.suspends(data, self.child.pid):
            self._suspend()
            return
        at = terminal.interrupts(data)
        if at < 0:
            self._interrupted = False  # a person works with it
            self._typed += data
            return
        key = data[at : at + 1]

        def deliver() -> None:
            self._typed += data[:at] + key + data[at + 1 :]

        self._interrupt(deliver)

    def _send(self, terminal: Terminal) -> None:
        with contextlib.suppress(BlockingIOError):
            self._typed = self._typed[os.write(terminal.master, self._typed) :]

    # ---------------------------------------------------------------------- stops and looks

    def _interrupt(self, deliver: Callable[[], None]) -> None:
        """Ctrl-C: passed on once the stacks are taken, or at the second; a further one ends everything."""
        if self._deliver is not None:
            self._passed_on()
        elif not self._interrupted:
            self._interrupted, self._deliver = True, deliver
            self._looking = Looking.at_interrupt(self.child.pid, self._woken)
        elif reads_terminal(self.child.pid):
            deliver()
        else:
            descendants.kill()

    def _passed_on(self) -> None:
        deliver, self._deliver = self._deliver, None
        self.stopped = True
        if deliver is not None:
            deliver()

    def _woken(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._waker, b"\0")

    def _follow_looks(self) -> None:
        now = time.monotonic()
        looking = self._looking
        if looking is not None and looking.over:
            self._looking = None
            if self._deliver is None and self.wish.stall_s is not None and not self.stopped:
                self._judge_stall(looking.stop, self.wish.stall_s)
            elif looking.stop is not None:
                self.stops.append(looking.stop)
        if self._deliver is not None and (self._looking is None or now >= self._looking.began + INTERRUPT_S):
            self._passed_on()
        if self.wish.stall_s is not None and self._looking is None and now >= self._stall_due():
            silent = f"{now - max(relay.at for relay in self._relays):.0f} s"
            self._looking = Looking.at_stall(self.child.pid, silent, self._woken, gpus=not self.wish.offline)

    def _stall_due(self) -> float:
        last = max((relay.at for relay in self._relays), default=0.0)
        return max(last + (self.wish.stall_s or _LONG_S), self._look_at)

    def _judge_stall(self, stop: Stop | None, limit_s: float) -> None:
        """It is told once, with what was found; what works is looked at again later."""
        if stop is None or stop.works:
            self._look_at = time.monotonic() + max(_AGAIN_S, limit_s / 2)
            return
        self._look_at = float("inf")
        self.stops.append(stop)
        if self.wish.kill_on_stall:
            self.stopped = self.killed = True
            descendants.kill()
        else:
            self._stalled(self, stop)

    def say(self, text: str) -> None:
        """Write to standard error; the terminal may leave line ends to the command's pseudo-terminal."""
        if self.terminal is not None and self.child.code is None and is_terminal(2):
            text = text.replace("\n", "\r\n")
        with contextlib.suppress(OSError):
            write_all(2, text.encode("utf-8", "backslashreplace"))


def _terminal() -> Terminal | None:
    """One for the command where standard output is a terminal; without any left it gets pipes."""
    with contextlib.suppress(OSError):
        return Terminal(1, is_terminal(0)) if is_terminal(1) else None
    return None
