"""What ``torchdoctor.ddp.check`` costs: time and memory beside one plain forward and backward.

    python benchmarks/ddp_overhead.py [--layers 60] [--width 4096] [--batch 8]

The default is a model of 1.0e9 parameters (4 GB in float32). Each part runs in a process of its own; its peak
is that of the whole process, the model included. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHILD = """
import json, resource, sys, time, warnings
sys.path.insert(0, {root!r})
import torch
from torch import nn
from torchdoctor import ddp
what, layers, width, batch = sys.argv[1], *map(int, sys.argv[2:])
device = "meta" if what == "meta" else "cpu"
with torch.device(device):
    model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
    x = torch.empty(batch, width).fill_(0.01)
count = sum(p.numel() for p in model.parameters())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
if what == "plain":
    model(x).square().mean().backward()
elif what != "model":
    report = ddp.check(model, (x,), lambda out: out.square().mean())
    assert not [one for one in report.checks if one.verdict.value == "fail"], report
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"parameters": count, "seconds": round(seconds, 2), "peak_mib": peak // 1024,
                   "added_mib": (peak - before) // 1024}}))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=8)
    given = parser.parse_args()
    sizes = [str(given.layers), str(given.width), str(given.batch)]
    found = {}
    for what in ("model", "plain", "check", "meta"):
        argv = [sys.executable, "-c", CHILD.format(root=str(ROOT)), what, *sizes]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        found[what] = json.loads(done.stdout.splitlines()[-1])
        print(what, found[what], flush=True)
    share = found["check"]["seconds"] / found["plain"]["seconds"]
    print(json.dumps({"check_by_plain_seconds": round(share, 2), **found}))


if __name__ == "__main__":
    main()
