"""``check`` on a machine with a GPU: no finding on a quiet one, neighbours and bad settings named.

    python benchmarks/check_gpu.py [--runs 20]

Prints one line a case and exits 1 when one of them is not as it should be. Takes 2 GiB of GPU 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

BUSY = """
import torch, sys
x = torch.ones(1 << 29, device="cuda")  # 2 GiB
a = torch.ones(4096, 4096, device="cuda")
print("ready", flush=True)
while True:
    a = (a @ a).clamp(0, 1)
"""


def check(*options: str, **variables: str) -> tuple[float, dict[str, Any]]:
    """Seconds and the report."""
    call = [sys.executable, "-m", "torchdoctor", "check", "--format", "json", *options]
    begun = time.monotonic()
    done = subprocess.run(
        call, capture_output=True, text=True, check=False, env={**os.environ, **variables}, timeout=600
    )
    return time.monotonic() - begun, json.loads(done.stdout)


def bad(report: dict[str, Any]) -> dict[str, str]:
    return {
        one["id"]: " ".join(item["text"] for item in one["evidence"])
        for one in report["checks"]
        if one["verdict"] in ("fail", "warn")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    wrong = 0

    def say(name: str, right: bool, told: object) -> None:
        nonlocal wrong
        wrong += not right
        print(f"{'ok' if right else 'WRONG':5} {name}: {told}", flush=True)

    quiet = [check() for _ in range(runs)]
    found = [bad(report) for _, report in quiet]
    say(f"{runs} quiet checks", not any(found), [one for one in found if one] or "no finding")
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "torch.utils.collect_env"], capture_output=True, check=False)
    ratio = sorted(seconds for seconds, _ in quiet)[runs // 2] / (time.monotonic() - begun)
    say("time against collect_env", ratio <= 0.7, f"{ratio:.2f}")
    neighbour = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        time.sleep(2)
        told = bad(check()[1]).get("gpu-memory-held", "")
        say("a neighbour", f"process {neighbour.pid}" in told and "% busy" in told, told or "nothing")
    finally:
        neighbour.kill()
        neighbour.wait()
    time.sleep(2)
    for name, rule, variables in (
        ("CUDA_VISIBLE_DEVICES=99", "no-cuda-gpus", {"CUDA_VISIBLE_DEVICES": "99"}),
        ("a bogus allocator setting", "torch-cuda", {"PYTORCH_CUDA_ALLOC_CONF": "bogus:1"}),
    ):
        told_all = bad(check(**variables)[1])
        say(name, rule in told_all or "torch-import" in told_all, told_all)
    seconds, report = check("--deep")
    deep = {one["id"]: one["verdict"] for one in report["checks"] if one["id"].startswith("deep-")}
    say(f"--deep in {seconds:.0f} s", bool(deep) and set(deep.values()) == {"pass"}, deep)
    say("--deep left nothing on the GPU", not bad(check()[1]), bad(check()[1]))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
