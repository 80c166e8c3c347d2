"""What ``torchdoctor run`` costs a program that prints 100 MB in at least 20 s, against the same behind cat.

    python benchmarks/run_overhead.py [RUNS]

Alternates the two, seven times each unless told otherwise, and prints both medians, what run adds, and the
largest memory of its process. Fails where it adds more than 3 % and 0.3 s, or takes more than 60 MiB.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from measured import Cost, torchdoctor

PROGRAM = """
import sys, time
for chunk in range(100):
    for step in range(10_000):
        figures = f"loss {1 / (step + 1):.6f} lr 1.0e-04 tokens/s 81234.5 mem 61.2 GiB {step * 7:8}"
        print(f"rank 0 epoch {chunk:3} step {step:6} {figures}".ljust(99))
    sys.stdout.flush()
    time.sleep(0.19)
"""
MOST_SHARE, MOST_S, MOST_MIB = 0.03, 0.3, 60


def behind_cat() -> float:
    """Seconds of the program, its output going through cat."""
    begun = time.monotonic()
    with open(os.devnull, "wb") as nowhere:
        program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
        subprocess.run(["cat"], stdin=program.stdout, stdout=nowhere, check=True)
        assert program.wait() == 0
    return time.monotonic() - begun


def behind_run() -> Cost:
    """The program under ``torchdoctor run``."""
    return torchdoctor("run", "--", sys.executable, "-c", PROGRAM, stdout=subprocess.DEVNULL)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    plain, ours, sizes = [], [], []
    for number in range(runs):
        plain.append(behind_cat())
        seconds, _, size = behind_run()
        ours.append(seconds)
        sizes.append(size)
        print(
            f"run {number + 1}: cat {plain[-1]:.2f} s, torchdoctor run {seconds:.2f} s, {size:.0f} MiB",
            flush=True,
        )
    base, median = statistics.median(plain), statistics.median(ours)
    added = f"{(median / base - 1) * 100:+.1f} %, {median - base:+.2f} s"
    print(f"median: cat {base:.2f} s, run {median:.2f} s: {added}; {max(sizes):.0f} MiB")
    return int(median > base * (1 + MOST_SHARE) + MOST_S or max(sizes) > MOST_MIB)


if __name__ == "__main__":
    sys.exit(main())
