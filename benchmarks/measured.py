"""What a command costs as a process of its own; the one place where the benchmarks take it."""

from __future__ import annotations

import os
import subprocess
import sys
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


# What is measured of a child begins with the size of who starts it, so that a small process does.
_LAUNCHER = """
import os, sys, time
told = int(sys.argv[1])
begun = time.perf_counter()
child = os.fork()
if not child:
    os.close(told)
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
took = time.perf_counter() - begun
figures = os.waitstatus_to_exitcode(status), took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss
os.write(told, " ".join(map(str, figures)).encode())
"""


def cost(
    command: Sequence[str],
    stdout: IO[bytes] | int | None = None,
    stderr: int | None = None,
    ends: Sequence[int] = (0,),
) -> Cost:
    """What the command costs, the processes that it starts included; asserts how it ends."""
    told, write = os.pipe()
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(write), *command]
    with open(told, "rb") as figures:
        try:
            subprocess.run(launcher, stdout=stdout, stderr=stderr, cwd=ROOT, pass_fds=(write,), check=True)
        finally:
            os.close(write)
        code, wall_s, cpu_s, kib = map(float, figures.read().split())
    assert code in ends, command
    return Cost(wall_s, cpu_s, kib / 1024)
