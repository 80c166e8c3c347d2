"""Copies between GPUs: every byte must arrive, and how fast they do.

Up to four GPUs every pair is tried, above that each GPU and its neighbour; at the deep level all pairs. Where
there is no GPU two buffers of the host are copied, for the arithmetic alone.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, run

COPY_BYTES = 256 << 20
RUNS = 5
ALL_PAIRS = 4


def pairs(count: int, every: bool) -> list[tuple[int, int]]:
    if every or count <= ALL_PAIRS:
        return [(one, other) for one in range(count) for other in range(count) if one != other]
    return [(one, (one + step) % count) for one in range(count) for step in (1, count - 1)]


def pattern(length: int, number: int) -> Any:
    """Bytes that differ from place to place and from copy to copy."""
    return ((torch.arange(length, dtype=torch.int64) * 31 + number * 7 + 1) % 251).to(torch.uint8)


def wrong(bench: Bench, case: str, got: Any, want: Any) -> None:
    apart = got != want
    count = int(torch.count_nonzero(apart))
    where = f"first at byte {int(apart.nonzero()[0])}" if count else ""
    bench.exact(case, count, "what was sent", where)


def between(bench: Bench, one: int, other: int) -> None:
    source, target = torch.device(f"cuda:{one}"), torch.device(f"cuda:{other}")
    small = pattern(8 << 20, one * 64 + other)
    sent = small.to(source)
    got = bench.spoil(sent.to(target))
    wrong(bench, f"bytes, {one} to {other}", got, small.to(target))
    data = torch.empty(COPY_BYTES, dtype=torch.uint8, device=source)
    there = torch.empty(COPY_BYTES, dtype=torch.uint8, device=target)
    best = float("inf")
    for number in range(RUNS + 1):
        for device in (source, target):
            torch.cuda.synchronize(device)
        begun = time.perf_counter()
        for _ in range(4):
            there.copy_(data, non_blocking=True)
        for device in (source, target):
            torch.cuda.synchronize(device)
        if number:
            best = min(best, (time.perf_counter() - begun) / 4)
    slower = bench.fault == "slow" and (one, other) == (0, 1)
    rate = COPY_BYTES / best / 1e9 * (0.75 if slower else 1.0)
    if torch.cuda.can_device_access_peer(source, target):
        bench.rate(f"p2p, {one} to {other}", rate, "GB/s")
    else:
        bench.note(f"p2p, {one} to {other}", f"{rate:.4g} GB/s; no direct path, it goes through the host")


def check(bench: Bench) -> None:
    if bench.device.type != "cuda":
        if bench.on_gpu:
            raise Lacking(f"{bench.device.type} has no copies between GPUs")
        sent = pattern(1 << 20, 0)
        wrong(bench, "bytes, host to host", bench.spoil(sent.clone()), sent)
        return
    count = torch.cuda.device_count()
    if count < 2:
        raise Lacking("one GPU has no other GPU to copy to")
    for one, other in pairs(count, bench.level == "deep"):
        bench.attempt(f"{one} to {other}", between, bench, one, other)


if __name__ == "__main__":
    run(check)
