"""The processes that descend from this one: orphans come to it, and what our programs left is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 1, 36, 37  # of prctl(2)
_ROUNDS = 3
_REAP_S = 0.3


@contextlib.contextmanager
def ended_with_us() -> Iterator[None]:
    """What begins in this block ends with it, also what left its process group and its parent, as daemons do.

    What descended from us before is left alone. Linux only, else nothing; blocks a second at most.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    before = frozenset(pids())
    adopted = _reaper()
    _become_reaper(1)
    try:
        yield
    finally:
        end(before)
        _become_reaper(adopted)


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind, for good. Linux only, else nothing."""
    _become_reaper(1)


def die_with_parent() -> None:
    """Be killed when our parent is gone, which watches us. Linux only, else nothing."""
    _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def kill(spared: frozenset[int] = frozenset()) -> list[int]:
    """Send SIGKILL to whatever descends from us but those, in whichever process group; to which was it sent?

    Raises nothing and waits for nothing: a signal handler may call it. Kernel threads cannot be meant.
    """
    found = [pid for pid in pids() if pid not in spared]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return found


def end(spared: frozenset[int] = frozenset()) -> None:
    """Kill and reap all but those; blocks a second at most."""
    for _ in range(_ROUNDS):
        found = kill(spared)
        if not found:
            return
        deadline = time.monotonic() + _REAP_S
        while found and time.monotonic() < deadline:
            found = [pid for pid in found if not _reaped(pid)]
            if found:
                time.sleep(0.01)


def _reaped(pid: int) -> bool:
    """Is it gone? A grandchild becomes our child once its parent has gone."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not os.path.exists(f"/proc/{pid}")


def pids() -> list[int]:
    """Their numbers, children before grandchildren; reads /proc once."""
    parents: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isascii() and name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stream:
                        parent = int(stream.read().rpartition(")")[2].split()[1])
                    parents.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = list(parents.get(os.getpid(), ()))
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, ())
    return found


def _become_reaper(value: int) -> None:
    _control(_SET_CHILD_SUBREAPER, value)


def _reaper() -> int:
    import ctypes

    value = ctypes.c_int(0)
    _control(_GET_CHILD_SUBREAPER, ctypes.byref(value))
    return value.value


def _control(what: int, value: Any) -> None:
    """prctl(2), where there is one."""
    import ctypes

    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(what, value, 0, 0, 0)
