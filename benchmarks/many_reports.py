"""What ``stats`` costs: generated reports of about 2.5 kB a line, a tenth of them and all.

    python benchmarks/many_reports.py FILE [REPORTS]

Writes REPORTS (1,000,000) seeded reports into FILE (2.5 GB), and prints seconds, CPU and memory of ``stats``
on a tenth of them and on all. Fails beyond 90 s or 300 MiB for a million, or where time outgrows bytes.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import date, timedelta
from pathlib import Path

from measured import torchdoctor

ROOT = Path(__file__).resolve().parent.parent
MOST_S, MOST_MIB = 90, 300


def write(path: Path, count: int) -> None:
    chance = random.Random(22)
    rules = sorted(one.stem for one in (ROOT / "rules").glob("*/*.toml"))
    days = [(date(2026, 6, 1) + timedelta(days=day)).isoformat() for day in range(180)]
    with open(path, "w", encoding="ascii") as stream:
        for _ in range(count):
            rule, node, rank = chance.choice(rules), chance.randrange(2_000), chance.randrange(512)
            first = {
                "rank": rank, "host": f"node{node:04}", "time": f"{chance.choice(days)}T12:00:00",
                "decided_by": "time", "tie": [],
            }  # fmt: skip
            file, line = f"/home/u{node % 97}/train.py", chance.randrange(400)
            frame = {"file": file, "line": line, "function": "step", "code": "x"}
            evidence = {"text": f"Xid (PCI:0000:{rank % 8:02x}:00): 79", "file": "a", "line": 3, "rank": rank,
                        "fact": None, "against": False}  # fmt: skip
            diagnosis = {
                "rule": rule, "family": "gpu", "title": rule, "severity": "fatal", "role": "cause",
                "standing": "confirmed", "why": "w" * 700, "more": None, "rank": rank, "frame": frame,
                "evidence": [evidence] * 3, "missing": [], "leads_to": [],
                "fixes": [{"do": "d" * 200, "run": None, "risk": "safe"}] * 2, "decide_with": None,
                "references": ["https://example.org"], "reasons": ["r" * 80] * 3,
            }  # fmt: skip
            report = {
                "schema": "torchdoctor.report/1", "outcome": "diagnosed", "source": ["job.log"],
                "diagnoses": [diagnosis], "suspect": None, "first_failure": first, "timeline": [],
                "checks": [],
                "not_checked": [], "notes": [], "facts": [], "runs": [], "incidents": [],
            }  # fmt: skip
            stream.write(json.dumps(report, separators=(",", ":")) + "\n")


def main() -> int:
    path, count = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    tenth = path.with_suffix(".tenth")
    write(path, count)
    write(tenth, count // 10)
    part, whole = torchdoctor("stats", str(tenth)), torchdoctor("stats", str(path))
    for name, one in ((tenth, part), (path, whole)):
        size = name.stat().st_size
        print(f"{size / 1e6:.0f} MB: {one[0]:.1f} s, {one[1]:.1f} s of CPU, {one[2]:.0f} MiB")
    print(f"ten times the bytes take {whole[1] / part[1]:.1f} times the CPU")
    scale = count / 1_000_000
    return int(whole[0] > MOST_S * scale or whole[2] > MOST_MIB or whole[1] > 12 * part[1])


if __name__ == "__main__":
    sys.exit(main())
