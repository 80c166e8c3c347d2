"""The gate on a machine with GPUs: how long its tiers take, and whether it ever blames a healthy node.

    python benchmarks/gate_gpu.py [--out FOLDER] [--seconds 480]

Runs 20 passive gates, 40 quick ones and one standard one, each in a process, as a job would. Writes
``gate_gpu.json`` with percentiles, verdicts and every finding, the verdict files, and a recording of
the machine. Ends early, and says so, when the time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def gate(tier: str, file: Path, *words: str) -> tuple[int, float, dict[str, Any]]:
    """Exit code, seconds from start to end, and the verdict."""
    file.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "torchdoctor", "gate", "--tier", tier, "-o", str(file), *words]
    begun = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1000, check=False)
    seconds = time.monotonic() - begun
    verdict: dict[str, Any] = {}
    if file.exists():
        verdict = json.loads(file.read_text(encoding="utf-8"))
    else:
        verdict = {"verdict": "no file", "stderr": done.stderr[-2000:], "stdout": done.stdout[-2000:]}
    return done.returncode, seconds, verdict


def percentile(values: list[float], share: float) -> float:
    order = sorted(values)
    return order[min(len(order) - 1, int(share * len(order)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--seconds", type=float, default=480.0)
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + given.seconds
    summary: dict[str, Any] = {"python": sys.version.split()[0], "cut_short": []}
    # the standard one first, so that it is not what a slow machine leaves out; it also warms the file cache
    code, seconds, verdict = gate("standard", out / "standard.json")
    summary["standard"] = {"exit_code": code, "seconds": round(seconds, 2), "verdict": verdict}
    code, seconds, verdict = gate("passive", out / "passive.json", "--save", str(out / "machine.json"))
    summary["first_passive"] = {"exit_code": code, "seconds": round(seconds, 2), "verdict": verdict}
    for tier, count in (("passive", 20), ("quick", 40)):
        summary[tier] = repeat(tier, count, out, deadline, summary["cut_short"])
        print(
            tier,
            json.dumps({name: value for name, value in summary[tier].items() if name != "others"}),
            flush=True,
        )
        (out / "gate_gpu.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    print("standard", summary["standard"]["exit_code"], summary["standard"]["seconds"], "s")


def repeat(tier: str, count: int, out: Path, deadline: float, cut: list[str]) -> dict[str, Any]:
    times: list[float] = []
    imports: list[float] = []
    codes: Counter[int] = Counter()
    weights: Counter[str] = Counter()
    others = []
    for number in range(count):
        if time.monotonic() > deadline - 20:
            cut.append(f"{tier}: {number} of {count} runs")
            break
        code, seconds, verdict = gate(tier, out / f"{tier}.json")
        times.append(seconds)
        codes[code] += 1
        share = verdict.get("seconds", {}).get("import_torch")
        if isinstance(share, (int, float)):
            imports.append(float(share))
        for one in verdict.get("findings", ()):
            weights[f"{one['weight']} {one['check']} {one['tag']}"] += 1
        if code != 0:
            others.append({"run": number, "exit_code": code, "verdict": verdict})
    found: dict[str, Any] = {"runs": len(times), "exit_codes": dict(codes), "false_unfit": codes[10]}
    found["false_verdicts"] = len(times) - codes[0]
    if times:
        found |= {
            "median_s": round(median(times), 3),
            "p95_s": round(percentile(times, 0.95), 3),
            "p95_of_first_20_s": round(percentile(times[:20], 0.95), 3),
            "most_s": round(max(times), 3),
        }
    if imports:
        found["import_torch_median_s"] = round(median(imports), 3)
        found["import_torch_p95_s"] = round(percentile(imports, 0.95), 3)
    return {**found, "findings": dict(weights), "others": others[:3]}


if __name__ == "__main__":
    main()
