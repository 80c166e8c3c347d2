"""The processes that descend from this one: orphans come to it, and none of them outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import time

_SET_CHILD_SUBREAPER = 36  # of prctl(2)
_ROUNDS = 3
_REAP_S = 0.3


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind. Linux only, else nothing."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill() -> bool:
    """Send SIGKILL to whatever descends from us, wherever its process group is; was there anything?

    Raises nothing and waits for nothing: a signal handler may call it.
    """
    found = pids()
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def end() -> None:
    """Kill and reap all of them; blocks a second at most. Kernel threads cannot be meant."""
    for _ in range(_ROUNDS):
        if not kill():
            return
        deadline = time.monotonic() + _REAP_S
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.01)
            except ChildProcessError:
                return


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
