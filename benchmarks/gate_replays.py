"""30,000 looks at healthy machines with measured noise: how often the gate blames one.

    python benchmarks/gate_replays.py [--count 30000] [--first 0]

Every look is judged as the command judges what it read. Prints JSON; exit code 1 when one is not fit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from gate_noise import look, originals  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=30000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    base = originals()
    verdicts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    bad = []
    begun = time.monotonic()
    for number in range(given.first, given.first + given.count):
        drawn, outcome = look(number, base)
        verdicts[outcome.verdict.value] += 1
        kinds[f"{drawn.machine} {'busy' if drawn.busy else 'idle'}"] += 1
        tags.update(f"{one.weight.value} {one.tag}" for one in outcome.findings)
        if outcome.verdict.value != "fit":
            bad.append(
                {
                    "number": number,
                    "machine": drawn.machine,
                    "busy": drawn.busy,
                    "findings": str(outcome.findings),
                }
            )
    print(
        json.dumps(
            {
                "looks": given.count,
                "verdicts": dict(verdicts),
                "not_fit": bad[:5],
                "machines": dict(kinds),
                "findings": dict(tags),
                "seconds": round(time.monotonic() - begun, 1),
            },
            indent=1,
        )
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
