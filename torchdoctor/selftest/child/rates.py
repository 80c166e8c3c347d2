"""How fast: copies between host and GPU, the GPU's own memory, and matrix products. Best of several runs.

With each rate what the GPU said of its clocks, its heat and its limits during it. And how evenly: the times
of one kernel, launched repeatedly. Topics: jitter, h2d, d2h, hbm, gemm-rate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, cast

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, run
from torchdoctor.selftest.child.watching import Watch

COPY_BYTES = 256 << 20
RUNS = 5
SLOWER = 4.0 / 3.0  # what the fault "slow" makes of a time: a rate of 75 %
LAUNCHES = 300
BUSY = 0.5  # of the processors: with more of a load beside it the times are those of the others


def timed(bench: Bench, work: Callable[[], Any], inner: int = 1) -> float:
    """Seconds of one run, by the GPU's own clock where there is one."""
    if bench.device.type != "cuda":
        begun = time.perf_counter()
        for _ in range(inner):
            work()
        bench.wait()
        return (time.perf_counter() - begun) / inner
    event = cast("Any", torch.cuda.Event)
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    for _ in range(inner):
        work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1000 / inner


def seconds(bench: Bench, work: Callable[[], Any], inner: int = 1) -> float:
    """The best of several runs."""
    work()
    bench.wait()
    best = min(timed(bench, work, inner) for _ in range(RUNS))
    return best * (SLOWER if bench.fault == "slow" else 1.0)


def copies(bench: Bench, topic: str) -> None:
    host = torch.empty(COPY_BYTES, dtype=torch.uint8).pin_memory()
    there = torch.empty(COPY_BYTES, dtype=torch.uint8, device=bench.device)
    to, source = (there, host) if topic == "h2d" else (host, there)
    with Watch(bench) as watch:
        taken = seconds(bench, lambda: to.copy_(source, non_blocking=True), 4)
    bench.rate(topic, COPY_BYTES / taken / 1e9, "GB/s")
    watch.tell(topic)


def own_memory(bench: Bench) -> None:
    size = min(2 << 30, int(torch.cuda.mem_get_info(bench.device)[0] * 0.3))
    one, two = (torch.empty(size, dtype=torch.uint8, device=bench.device) for _ in range(2))
    with Watch(bench) as watch:
        taken = seconds(bench, lambda: two.copy_(one), 20)
    bench.rate("hbm", 2 * size / taken / 1e9, "GB/s")
    watch.tell("hbm")


def products(bench: Bench) -> None:
    size = 8192
    kind = torch.bfloat16 if torch.cuda.get_device_capability(bench.device) >= (8, 0) else torch.float16
    numbers = torch.Generator(bench.device).manual_seed(bench.seed)
    left, right = (torch.randn(size, size, device=bench.device, generator=numbers).to(kind) for _ in range(2))
    for _ in range(20):  # until the clocks are up
        left @ right
    with Watch(bench) as watch:
        taken = seconds(bench, lambda: left @ right, 10)
        bench.rate("gemm-rate", 2 * size**3 / taken / 1e12, "TFLOP/s")
        if bench.level == "deep":  # what it keeps up when it is warm
            begun, last = time.monotonic(), taken
            while time.monotonic() - begun < 10:
                last = timed(bench, lambda: left @ right, 100)
            bench.rate("gemm-rate, after 10 s", 2 * size**3 / last / 1e12, "TFLOP/s")
        else:
            timed(bench, lambda: left @ right, 400)
    watch.tell("gemm-rate")


def evenness(bench: Bench) -> None:
    """Times of single launches: those of a sound GPU lie close together, whatever their median is."""
    if not bench.on_gpu and hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
        raise Lacking(f"the processor is busy: a load of {os.getloadavg()[0]:.1f}")
    size = 4096 if bench.on_gpu else 192
    kind = torch.bfloat16 if bench.on_gpu else torch.float32
    numbers = bench.numbers()
    left = bench.put(torch.randn(size, size, generator=numbers)).to(kind)
    right = bench.put(torch.randn(size, size, generator=numbers)).to(kind)
    for _ in range(50):
        left @ right
    bench.wait()
    with Watch(bench) as watch:
        times = [timed(bench, lambda: left @ right, 4) for _ in range(LAUNCHES)]
    if bench.fault in ("slow", "stall"):  # every third launch by a quarter, or twenty times as long
        times[::3] = [one * (SLOWER if bench.fault == "slow" else 20) for one in times[::3]]
    times.sort()
    middle = times[LAUNCHES // 2]
    parts = {share: times[min(LAUNCHES - 1, LAUNCHES * share // 100)] for share in (1, 75, 90, 95, 99)}
    spread = ", ".join(f"{share} %: {value / middle:.3f}" for share, value in parts.items())
    # a processor has other things to do, and a GPU has not; its clocks move by a few percent
    share, limit = (90, 1.2) if bench.on_gpu else (75, 5.0)
    source = f"the median of {LAUNCHES} launches, {middle * 1e6:.0f} µs"
    bench.within(
        f"slowest {100 - share} % of launches", parts[share] / middle, limit, source, " × the median", "warn"
    )
    bench.told(
        "launch times", "measured", f"{spread}, 100 %: {times[-1] / middle:.3f} of {middle * 1e6:.0f} µs"
    )
    watch.tell("launches")


def check(bench: Bench) -> None:
    cuda = bench.device.type == "cuda"
    if cuda:
        torch.cuda.set_device(bench.device)
    if bench.about("jitter"):
        bench.attempt("launch times", evenness, bench)
    if not cuda:
        if bench.topic != "jitter":
            raise Lacking("rates are those of a GPU of CUDA or ROCm")
        return
    for topic in ("h2d", "d2h"):
        if bench.about(topic):
            bench.attempt(topic, copies, bench, topic)
    if bench.about("hbm"):
        bench.attempt("hbm", own_memory, bench)
    if bench.about("gemm-rate"):
        bench.attempt("gemm-rate", products, bench)


if __name__ == "__main__":
    run(check)
