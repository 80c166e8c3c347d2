"""500 runs of the gate with one to three random signals at random times: what they end with.

    python benchmarks/gate_signals.py [--count 500] [--first 0] [--program …/bin/torchdoctor]

Passive and quick tier, native codes and those of deploy/torchdoctor-gate, on a node that the policy holds for
fit or for unfit. Takes some three seconds a run. Prints JSON; exit code 1 when a code or a file says what the
verdict did not reach, or a native code is none of the contract. Counted apart is "python": the interpreter
had not come to the first instruction of ours.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from gate_signalled import signalled  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first run")
    parser.add_argument("--program", type=Path, default=Path(sys.executable).with_name("torchdoctor"))
    given = parser.parse_args()
    codes: dict[str, Counter[str]] = {}
    files: Counter[str] = Counter()
    faults = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.count):
            ended = signalled(given.program, Path(folder), Random(seed))
            code = f"{ended.code} python" if ended.before_us else str(ended.code)
            codes.setdefault(f"{ended.tier} {ended.style}", Counter())[code] += 1
            files[ended.verdict or "none"] += 1
            if ended.fault:
                faults.append(f"{seed}: {ended}")
    print(
        json.dumps(
            {
                "runs": given.count,
                "codes": {name: dict(sorted(found.items())) for name, found in sorted(codes.items())},
                "files": dict(sorted(files.items())),
                "faults": faults,
                "seconds": round(time.monotonic() - begun, 1),
            },
            indent=1,
        )
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
