"""Mutations of checkpoints: no answer may raise, run long, or take much memory.

    python benchmarks/checkpoint_fuzz.py 50000 [--seed 1]

Prints mutations a second, the slowest, and the most memory that the process took.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from checkpoint.mutations import examine, mutations

LIMIT_KIB = 100 << 10


def peak_kib() -> int:
    """The most memory of this process so far (Linux)."""
    with open("/proc/self/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    slowest = 0.0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        for number, data in enumerate(mutations(asked.count, asked.seed)):
            start = time.monotonic()
            try:
                examine(data, path)
            except BaseException:
                Path("mutation.bin").write_bytes(data)
                print(f"mutation {number} of seed {asked.seed} is kept in mutation.bin")
                raise
            slowest = max(slowest, time.monotonic() - start)
    seconds = time.monotonic() - begun
    print(
        f"{asked.count:,} mutations in {seconds:.0f} s, the slowest {slowest * 1000:.0f} ms, "
        f"at most {peak_kib() / 1024:.0f} MiB"
    )
    return 0 if peak_kib() < LIMIT_KIB else 1


if __name__ == "__main__":
    sys.exit(main())
