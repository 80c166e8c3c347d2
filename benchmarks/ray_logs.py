"""The recipe for Ray Data on a local cluster: how long many logs take there, and with --each --jobs.

    python benchmarks/ray_logs.py FOLDER [LOGS]

Needs ``pip install 'ray[data]'`` beside torchdoctor. Writes the logs of ``many_logs.py`` into FOLDER/logs and
fails where the two do not give the same outcomes. Wall times mean something on an idle machine only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import many_logs

RECIPE = many_logs.ROOT / "deploy" / "fleet" / "ray_data.py"


def outcomes(path: Path) -> Counter[str]:
    return Counter(json.loads(line)["outcome"] for line in path.read_text(encoding="utf-8").splitlines())


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    many_logs.write(folder / "logs", count, 2_000, 200_000)
    begun = time.monotonic()
    with open(folder / "ray.jsonl", "wb") as stream:
        subprocess.run([sys.executable, str(RECIPE), str(folder / "logs")], stdout=stream, check=True)
    ray = time.monotonic() - begun
    jobs = os.cpu_count() or 2
    wall, _, _ = many_logs.measured(folder / "logs", jobs)
    print(f"{count:,} logs: {ray:.0f} s with Ray Data, {wall:.0f} s with --jobs {jobs}")
    return int(outcomes(folder / "ray.jsonl") != outcomes(folder / f"logs-{jobs}.jsonl"))


if __name__ == "__main__":
    sys.exit(main())
