"""Memory: patterns must be read back as written, and a request too large must leave nothing behind."""

from __future__ import annotations

from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, Unclear, far, run

BLOCK = 64 << 20
PATTERNS = (0x00, 0xFF, 0x55, 0xAA)
ABSURD = 1 << 50  # bytes; no machine has them


def patterns(bench: Bench) -> None:
    """Whole blocks of one byte, then each block its own number; wrong bytes are told with their block."""
    of_free = ""
    if bench.device.type == "cuda":
        share = 0.93 if bench.level == "deep" else 0.05
        size = BLOCK
        free = torch.cuda.mem_get_info(bench.device)[0]
        count = max(1, int(free * share) // BLOCK)
        of_free = f", {count * size / free:.1%} of what was free"
    else:
        size, count = BLOCK // 8, 2
    blocks = [torch.empty(size, dtype=torch.uint8, device=bench.device) for _ in range(count)]
    wrong = 0
    places: list[str] = []
    for pattern in (*PATTERNS, None):
        for number, block in enumerate(blocks):
            block.fill_(number % 251 if pattern is None else pattern)
        if bench.fault == "one-element":
            blocks[-1][size // 3] ^= 1
        for number, block in enumerate(blocks):
            expected = number % 251 if pattern is None else pattern
            off = int(torch.count_nonzero(block != expected))
            wrong += off
            if off and len(places) < 4:
                places.append(f"block {number} of {size >> 20} MiB, pattern {expected:#04x}")
    source = f"what was written into {count * size >> 20} MiB{of_free}"
    bench.exact("patterns", wrong, source, "; ".join(places))


def too_large(bench: Bench) -> None:
    """Ask for what cannot be had, catch the error, and go on as if nothing had been."""
    numbers = bench.numbers()
    left, right = torch.randn(64, 64, generator=numbers), torch.randn(64, 64, generator=numbers)
    counts = bench.device.type == "cuda"
    bench.put(left) @ bench.put(right)  # what the libraries take for themselves is taken now
    base = torch.cuda.memory_allocated(bench.device) if counts else 0
    kept: list[Any] = []
    try:
        kept.append(torch.empty(ABSURD, dtype=torch.uint8, device=bench.device))
    except (RuntimeError, MemoryError) as error:
        bench.holds("too large a request", True, type(error).__name__, "an error", "no device has 1 PiB")
    else:
        bench.holds("too large a request", False, "granted", "an error", "no device has 1 PiB")
    if counts and bench.level == "deep":  # others may use this GPU too
        fill(bench)
    if bench.fault == "leak" and counts:
        kept.append(torch.empty(BLOCK, dtype=torch.uint8, device=bench.device))
    got = bench.spoil(bench.put(left) @ bench.put(right))
    bench.within("result afterwards", far(got, left.double() @ right.double()), 1e-5, "float64 on the CPU")
    del got
    if counts:
        more = torch.cuda.memory_allocated(bench.device) - base
        bench.exact("bytes not given back", more, "what torch had allocated before")


def fill(bench: Bench) -> None:
    """Take blocks until there is no more, as a training run does that is too large."""
    free = torch.cuda.mem_get_info(bench.device)[0]
    kept: list[Any] = []
    try:
        for _ in range(10 + free // (8 * BLOCK)):
            kept.append(torch.empty(8 * BLOCK, dtype=torch.uint8, device=bench.device))
    except torch.cuda.OutOfMemoryError as error:
        bench.holds("memory used up", True, type(error).__name__, "OutOfMemoryError", "all of it was taken")
    else:
        raise Unclear("memory could not be used up: it grows while it is taken")
    finally:
        kept.clear()
        torch.cuda.empty_cache()


def pinned(bench: Bench) -> None:
    if bench.device.type != "cuda":
        raise Lacking("pinned memory is for a GPU")
    numbers = bench.numbers(2)
    data = torch.randint(0, 256, (BLOCK // 4,), generator=numbers, dtype=torch.uint8).pin_memory()
    back = torch.empty_like(data).pin_memory()
    there = data.to(bench.device, non_blocking=True)
    back.copy_(there, non_blocking=True)
    bench.wait()
    bench.exact("pinned copy there and back", int((bench.spoil(back) != data).sum()), "what was sent")


def check(bench: Bench) -> None:
    bench.attempt("patterns", patterns, bench)
    bench.attempt("too large a request", too_large, bench)
    bench.attempt("pinned copy there and back", pinned, bench)


if __name__ == "__main__":
    run(check)
