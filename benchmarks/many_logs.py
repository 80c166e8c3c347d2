"""What ``explain --each --jobs`` costs: many logs by one process and by two, and very many in one call.

    python benchmarks/many_logs.py FOLDER [LOGS [SMALL]]

Writes LOGS logs (2,000) of 2 to 200 kB, log-uniform, into FOLDER/logs, and with SMALL that many of 2 kB into
FOLDER/small: cases of the catalog behind lines of training, seeded. Prints wall time, CPU and the largest
process of each call. Wall times mean something on an idle machine only.
"""

from __future__ import annotations

import math
import os
import random
import sys
from pathlib import Path

from measured import Cost, torchdoctor

from torchdoctor.workbench.cases import read_all

ROOT = Path(__file__).resolve().parent.parent


def texts() -> list[bytes]:
    """The inputs of all cases of rules that are small enough."""
    cases, _ = read_all(str(ROOT / "fixtures"))
    return [data for case in cases if len(data := case.input()) < 100_000]


def write(folder: Path, count: int, low: int, high: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(22)
    known = texts()
    for number in range(count):
        size = int(math.exp(chance.uniform(math.log(low), math.log(high))))
        case = chance.choice(known)
        parts, length = [], len(case)
        step = 0
        while length < size:
            step += 1
            parts.append(
                b"step %d loss %.4f lr 3e-4 tokens/s %d\n" % (step, 9 / (step + 1), chance.randrange(10**6))
            )
            length += len(parts[-1])
        place = folder / f"{number // 1000:03}"
        place.mkdir(exist_ok=True)
        (place / f"job-{number}.log").write_bytes(b"".join(parts) + case)


def measured(folder: Path, jobs: int) -> Cost:
    args = ("explain", "--offline", "--each", "--jobs", str(jobs), "--format", "jsonl", str(folder))
    with open(folder.parent / f"{folder.name}-{jobs}.jsonl", "wb") as stream:
        return torchdoctor(*args, stdout=stream)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    write(folder / "logs", count, 2_000, 200_000)
    one, two = measured(folder / "logs", 1), measured(folder / "logs", 2)
    for jobs, (wall, cpu, size) in ((1, one), (2, two)):
        print(f"{count:,} logs, --jobs {jobs}: {wall:.1f} s, {cpu:.1f} s of CPU, {size:.0f} MiB")
    same = len({(folder / f"logs-{jobs}.jsonl").read_bytes() for jobs in (1, 2)}) == 1
    print(f"wall {two[0] / one[0]:.2f} of one process, CPU {two[1] / one[1]:.2f}; equal output: {same}")
    if len(sys.argv) > 3:
        small = int(sys.argv[3])
        write(folder / "small", small, 2_000, 2_000)
        wall, cpu, size = measured(folder / "small", os.cpu_count() or 2)
        print(f"{small:,} logs of 2 kB: {wall:.0f} s, {cpu:.0f} s of CPU, {size:.0f} MiB")


if __name__ == "__main__":
    main()
