"""What a command costs as a process of its own; the one place where the benchmarks take it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Cost(NamedTuple):
    """Seconds by the clock, seconds of CPU with all children, and MiB of the largest process."""

    wall_s: float
    cpu_s: float
    mib: float


def torchdoctor(*args: str, stdout: IO[bytes] | int | None = None) -> Cost:
    """What a call of torchdoctor costs; asserts that it ends with 0."""
    return cost([sys.executable, "-m", "torchdoctor", *args], stdout)


def cost(command: Sequence[str], stdout: IO[bytes] | int | None = None) -> Cost:
    """What the command costs; asserts that it ends with 0."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=stdout, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Cost(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
