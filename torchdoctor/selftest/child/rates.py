"""How fast: copies between host and GPU, the GPU's own memory, and matrix products. Best of several runs.

With each rate what the GPU said of its clocks and limits during it (nvidia-smi, where there is one).
Topics: h2d, d2h, hbm, gemm-rate.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any, cast

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, run

COPY_BYTES = 256 << 20
RUNS = 5
ASKED = "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active"


def seconds(bench: Bench, work: Callable[[], Any], inner: int = 1) -> float:
    """The best of several runs, by the GPU's own clock."""
    work()
    bench.wait()
    best, event = float("inf"), cast("Any", torch.cuda.Event)
    for _ in range(RUNS):
        begin, end = event(enable_timing=True), event(enable_timing=True)
        begin.record()
        for _ in range(inner):
            work()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) / 1000 / inner)
    return best * (4.0 / 3.0 if bench.fault == "slow" else 1.0)


def copies(bench: Bench, topic: str) -> None:
    host = torch.empty(COPY_BYTES, dtype=torch.uint8).pin_memory()
    there = torch.empty(COPY_BYTES, dtype=torch.uint8, device=bench.device)
    to, source = (there, host) if topic == "h2d" else (host, there)
    taken = seconds(bench, lambda: to.copy_(source, non_blocking=True))
    bench.rate(topic, COPY_BYTES / taken / 1e9, "GB/s")


def own_memory(bench: Bench) -> None:
    size = min(2 << 30, int(torch.cuda.mem_get_info(bench.device)[0] * 0.3))
    one, two = (torch.empty(size, dtype=torch.uint8, device=bench.device) for _ in range(2))
    bench.rate("hbm", 2 * size / seconds(bench, lambda: two.copy_(one), 10) / 1e9, "GB/s")


def products(bench: Bench) -> None:
    size = 8192
    kind = torch.bfloat16 if torch.cuda.get_device_capability(bench.device) >= (8, 0) else torch.float16
    numbers = torch.Generator(bench.device).manual_seed(bench.seed)
    left, right = (torch.randn(size, size, device=bench.device, generator=numbers).to(kind) for _ in range(2))
    for _ in range(20):  # until the clocks are up
        left @ right
    taken = seconds(bench, lambda: left @ right, 10)
    bench.rate("gemm-rate", 2 * size**3 / taken / 1e12, "TFLOP/s")
    for _ in range(600):
        left @ right
    state = said(bench)
    bench.wait()
    if state:
        bench.told("state during the products", "measured", state)


def said(bench: Bench) -> str:
    identity = getattr(torch.cuda.get_device_properties(bench.device), "uuid", None)
    if identity is None:
        return ""
    argv = ["nvidia-smi", f"--query-gpu={ASKED}", "--format=csv,noheader", "-i", f"GPU-{identity}"]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stdout.decode("utf-8", "replace").strip()
    return f"SM clock, power, temperature, throttle reasons: {words}" if done.returncode == 0 else ""


def check(bench: Bench) -> None:
    if bench.device.type != "cuda":
        raise Lacking("rates are those of a GPU")
    torch.cuda.set_device(bench.device)
    for topic in ("h2d", "d2h"):
        if bench.about(topic):
            bench.attempt(topic, copies, bench, topic)
    if bench.about("hbm"):
        bench.attempt("hbm", own_memory, bench)
    if bench.about("gemm-rate"):
        bench.attempt("gemm-rate", products, bench)


if __name__ == "__main__":
    run(check)
