"""Bounds on processor time that hold on slow and busy machines, too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from torchdoctor.workbench import pace

T = TypeVar("T")
_ATTEMPTS = 3  # a neighbour on the machine may disturb one measurement, hardly three


def bounded(seconds: float, work: Callable[[], T]) -> T:
    """What the work returns; fails when it takes more processor time, as the reference machine would."""
    for _ in range(_ATTEMPTS):
        started = time.process_time()
        result = work()
        taken = time.process_time() - started
        if taken < seconds or taken / pace.slower() < seconds:
            return result
    raise AssertionError(
        f"it took {taken:.2f} s, the bound is {seconds} s ({pace.slower():.1f} x slower here)"
    )
