"""How slow this machine is at the moment, so that a bound on time means the same everywhere."""

from __future__ import annotations

import time

REFERENCE_S = 0.02  # what the yardstick takes on the machine whose seconds the bounds are
_ATTEMPTS = 3


def slower() -> float:
    """How many times longer a fixed piece of work takes here and now than on the reference; at least 1."""
    return max(1.0, min(_yardstick() for _ in range(_ATTEMPTS)) / REFERENCE_S)


def _yardstick() -> float:
    """Processor time of a fixed piece of work, in seconds."""
    started = time.thread_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return time.thread_time() - started
