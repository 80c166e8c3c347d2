"""What watching costs: `import torch` and plain Python under it, and the with-block of watch_globals().

    python benchmarks/watch.py [MODULE…]

Prints the median of five for each: seconds without and with watching. Modules named are imported in children,
as `torchdoctor globals` does; torch when none is.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from torchdoctor.watch import Target, run

ROUNDS = 5
IMPORT = "import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
BLOCK = """
import time
import torch
from torchdoctor import watch_globals

def work():
    total = 0
    for number in range(100_000):
        total += number
    return total

def multiply():
    for _ in range(2000):
        x = torch.ones(100, 100) + 1

def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun

watch_globals()
def empty():
    with watch_globals():
        pass
print("with-block", timed(empty))
print("with-block, again", timed(empty))
print("loop of 100000", timed(work))
with watch_globals():
    print("loop of 100000, watched", timed(work))
print("2000 sums of torch", timed(multiply))
with watch_globals():
    print("2000 sums of torch, watched", timed(multiply))
"""


def plain(name: str) -> float:
    command = [sys.executable, "-c", IMPORT.format(name=name)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def watched(name: str) -> float:
    found = run(Target("module", name), sys.executable, 600.0)
    if found.ended != "ok":
        raise SystemExit(f"import {name}: {found.ended} {found.message}")
    return found.seconds


def main(names: list[str]) -> None:
    for name in names or ["torch"]:
        pairs = [(plain(name), watched(name)) for _ in range(ROUNDS)]
        without, under = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"import {name}: {without:.2f} s without, {under:.2f} s watched ({under / without:.2f} times)")
    seen: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        done = subprocess.run([sys.executable, "-c", BLOCK], check=True, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            what, _, seconds = line.rpartition(" ")
            seen.setdefault(what, []).append(float(seconds))
    for what, times in seen.items():
        print(f"{what}: {statistics.median(times) * 1000:.2f} ms")


if __name__ == "__main__":
    begun = time.monotonic()
    main(sys.argv[1:])
    print(f"({time.monotonic() - begun:.0f} s in all)")
