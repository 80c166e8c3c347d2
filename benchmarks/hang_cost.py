"""What a target loses while ``torchdoctor hang`` looks at it: alternating windows, with and without.

    python benchmarks/hang_cost.py [--windows 20] [--seconds 10]

The target is pinned to one processor, and hang to another. Prints the median loss in per cent.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

TARGET = """
import time, sys
count = 0
begun = time.monotonic()
while True:
    for value in range(2000):
        count += value & 1
    now = time.monotonic()
    if now - begun > 0.25:
        print(count, now, flush=True)
        begun = now
"""


def processor_seconds(pid: int) -> float:
    """The time that the process had on a processor so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        fields = stream.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(stream: object, pid: int, seconds: float) -> tuple[float, float]:
    """Steps a second over a window, and steps a second on a processor, which other work does not change."""
    first = last = None
    used = processor_seconds(pid)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        count, at = map(float, stream.readline().split())  # type: ignore[attr-defined]
        first = first or (count, at)
        last = (count, at)
    assert first is not None
    assert last is not None
    steps = last[0] - first[0]
    return steps / (last[1] - first[1]), steps / max(processor_seconds(pid) - used, 0.01)


def looking(pid: int, processor: int) -> subprocess.Popen[bytes]:
    """hang, again and again without a pause, on a processor of its own."""
    line = (
        f"while true; do taskset -c {processor} {sys.executable} -m torchdoctor hang {pid} >/dev/null; done"
    )
    return subprocess.Popen(["sh", "-c", line], start_new_session=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))
    target = subprocess.Popen(
        ["taskset", "-c", str(processors[0]), sys.executable, "-u", "-c", TARGET],
        stdout=subprocess.PIPE,
        text=True,
    )
    losses: list[float] = []
    slowed: list[float] = []
    try:
        rate(target.stdout, target.pid, 1.0)
        for _ in range(asked.windows // 2):
            alone = rate(target.stdout, target.pid, asked.seconds)
            hang = looking(target.pid, processors[-1])
            try:
                watched = rate(target.stdout, target.pid, asked.seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(hang.pid, signal.SIGKILL)
                hang.wait()
            losses.append(100 * (1 - watched[0] / alone[0]))
            slowed.append(100 * (1 - watched[1] / alone[1]))
            print(f"loss {losses[-1]:+.1f} %, a second on a processor {slowed[-1]:+.1f} %", flush=True)
    finally:
        target.kill()
        target.wait()
    median = statistics.median(losses)
    print(
        f"median loss {median:.1f} % over {len(losses)} pairs of windows; "
        f"of a second on a processor {statistics.median(slowed):.1f} %"
    )
    return 0 if median <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
