"""The end from outside: what was started must not outlive a program that is told to end.

An exception of a signal handler surfaces wherever the program happens to be. In a destructor or a callback of
a weak reference it is lost, and in ``__set_name__`` it comes out as a RuntimeError; neither may hide that we
were told to end.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP") if sys.platform != "win32" else ("SIGINT", "SIGTERM")

_AGAIN_S = 0.01  # what lost the first one is over by then


class _Told(KeyboardInterrupt):
    """A signal told us to end."""


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end what is inside with a KeyboardInterrupt, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: list[int] = []
    again: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        told.append(number)
        raise _Told

    def lost(what: UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, _Told):
            again.append(threading.Timer(_AGAIN_S, _tell_main_thread, told[-1:]))
            again[-1].start()
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, lost
    before = {}
    try:
        for name in _NAMES:
            number = getattr(signal, name)
            before[number] = signal.signal(number, interrupt)
        yield
    finally:
        for timer in again:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
        if told:  # whatever became of its exception on the way
            raise KeyboardInterrupt


def _tell_main_thread(number: int) -> None:
    """Only a signal to that very thread ends what it waits for."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)
