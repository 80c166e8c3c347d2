"""How a gate is ended from outside, by signals and by the clock: a code of the contract, and no traceback.

The handlers are set once, before anything else is imported, and stay to the end. They raise nothing, so that
no ``finally`` is left half-way and a second signal finds the first one dealt with: an exception of a handler
surfaces wherever the program happens to be. What is done depends on how far the gate is:

- beginning: nothing was looked at. It ends at once, with the code for what could not be told.
- looking: what was started is killed, the gate goes on with what it has, and the verdict cannot be fit.
- giving: the verdict is reached and being written. It gets two seconds more.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import time
from collections.abc import Sequence
from enum import Enum
from types import FrameType

from torchdoctor.probes import descendants

INCONCLUSIVE = 12
# what could not be told, in the codes of others
UNTOLD = {"slurm": 0, "slurm-prolog": 0, "nagios": 3, "npd": 2, "k8s": 1}
# Slurm sends USR1 and USR2 before a job's time is over, the kernel XCPU when a limit of its own is
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU")
BEGIN_S = 10.0  # for the command line, the policy and a recording
_GIVE_S = 2.0
_AGAIN_S = 0.1  # what is started while a signal is dealt with is killed the next time
_TICK_S = 0.2


class _Stage(Enum):
    BEGINNING = "before anything was examined"
    LOOKING = "while the node was being examined"
    GIVING = "while the verdict was being written"


class _Process:
    """This process. ``signal`` is the first one that asked it to end, ``code`` that of an untold verdict."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.deadline: float | None = None
        self.stage = _Stage.BEGINNING
        self.signal = ""
        self.code = INCONCLUSIVE
        self.give_until = 0.0
        self.pid = 0  # 0: nobody has called begin()


_process = _Process()


def begin(argv: Sequence[str]) -> None:
    """Take over signals and clock; to be the first thing that a process does which is a gate. POSIX only."""
    if _process.pid or os.name != "posix":
        return
    _process.pid = os.getpid()
    _process.code = _untold(argv)
    _process.deadline = _process.begun + BEGIN_S
    signal.signal(signal.SIGALRM, _tick)
    for name in _SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _told)
    _thread.start_new_thread(_watch, ())


def _untold(argv: Sequence[str]) -> int:
    """The code for what could not be told, by the style that is asked for; the last one counts."""
    code = INCONCLUSIVE
    for at, word in enumerate(argv):
        name, is_given, value = word.partition("=")
        if name == "--exit-style":
            style = value if is_given else next(iter(argv[at + 1 : at + 2]), "")
            code = UNTOLD.get(style, INCONCLUSIVE)
    return code


def began() -> float:
    """When this process began, on the monotonic clock; now where nobody called ``begin``."""
    return _process.begun if _process.pid else time.monotonic()


def limit(seconds: float | None) -> None:
    """The process ends so long after its beginning, whatever holds it; None lets it take its time."""
    _process.deadline = None if seconds is None else _process.begun + seconds


def looking() -> None:
    """From now on a signal ends what was started and cuts the looking short."""
    _process.stage = _Stage.LOOKING


def giving() -> str:
    """From now on there is a verdict, and a signal no longer changes it; the one that did, or ""."""
    _process.give_until = time.monotonic() + _GIVE_S
    _process.stage = _Stage.GIVING
    if _process.pid:
        signal.setitimer(signal.ITIMER_REAL, _GIVE_S if _process.signal else 0.0)
    return _process.signal


def asked() -> str:
    """The signal that told us to end, or ""."""
    return _process.signal


def _told(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _process.pid or _process.signal:
        return  # a fork of ours, which writes a file; or it is being done
    _process.signal = signal.Signals(number).name
    if _process.stage is _Stage.BEGINNING:
        _leave(f"stopped by {_process.signal}")
    elif _process.stage is _Stage.LOOKING:
        descendants.kill()
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
    else:
        _process.give_until = time.monotonic() + _GIVE_S
        signal.setitimer(signal.ITIMER_REAL, _GIVE_S)


def _tick(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _process.pid or not _process.signal:
        return  # of somebody else's clock
    if _process.stage is _Stage.LOOKING:
        descendants.kill()
    elif _process.stage is _Stage.GIVING and time.monotonic() >= _process.give_until:
        _leave(f"stopped by {_process.signal}")


def _watch() -> None:
    """In a thread of its own: it gets through where the main one hangs in the kernel."""
    while True:
        deadline = _process.deadline
        left = _TICK_S if deadline is None else deadline - time.monotonic()
        if left <= 0:
            _leave("its time limit is reached")
        time.sleep(min(max(left, 0.0), _TICK_S))


def _leave(why: str) -> None:
    """End at once: nothing is cleaned up but processes, and nothing waited for."""
    if _process.stage is not _Stage.GIVING:  # then there is but a file being written
        descendants.kill()
    _say(f"torchdoctor: {why} {_process.stage.value}: it could not be determined\n")
    os._exit(_process.code)


def _say(text: str) -> None:
    """On standard error, where that takes it now: a full pipe holds nobody up."""
    try:
        if select.select((), (2,), (), 0)[1]:
            os.write(2, text.encode("ascii", "replace"))
    except (OSError, ValueError):
        pass  # nobody is left to be told
