"""The same computation, over and over: every repeat must give the same bits.

A fingerprint of every result is told too: GPUs of one model with one torch must agree on it.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, run, unequal

SOURCE = "the first run of the same computation"


def works(bench: Bench) -> dict[str, Callable[[], Any]]:
    """Computations that are the same each time by what torch promises: no atomic additions among them."""
    size = 2048 if bench.on_gpu else 256
    numbers = bench.numbers()
    kind = torch.bfloat16 if bench.on_gpu else torch.float32
    left = bench.put(torch.randn(size, size, generator=numbers)).to(kind)
    right = bench.put(torch.randn(size, size, generator=numbers)).to(kind)
    picture = bench.put(torch.randn(4, 16, 64, 64, generator=numbers)).to(kind)
    weight = bench.put(torch.randn(32, 16, 3, 3, generator=numbers)).to(kind)
    heads = [bench.put(torch.randn(2, 4, 256, 64, generator=numbers)).to(kind) for _ in range(3)]
    flat = bench.put(torch.randn(1 << 18, generator=numbers))

    def stream() -> Any:
        return torch.randn(
            1 << 16, device=bench.device, generator=torch.Generator(bench.device).manual_seed(5)
        )

    return {
        "matrix product": lambda: left @ right,
        "convolution": lambda: torch.nn.functional.conv2d(picture, weight, padding=1),
        "attention": lambda: torch.nn.functional.scaled_dot_product_attention(*heads),
        "sum": lambda: flat.view(512, -1).sum(1),
        "softmax": lambda: torch.softmax(flat.view(512, -1), 1),
        "sort": lambda: torch.sort(flat).values,
        "random numbers": stream,
    }


def repeated(bench: Bench, case: str, work: Callable[[], Any], repeats: int) -> None:
    first = work()
    wrong, where = 0, ""
    for number in range(repeats):
        again = work()
        if number == repeats // 2:
            again = bench.spoil(again)
        if not torch.equal(again, first):
            wrong, where = unequal(again, first)
            where = f"repeat {number + 1}, {where}"
            break
    bench.exact(case, wrong, SOURCE, where)
    if bench.fault == "odd":  # the same every time, and not what its siblings have
        first = first + 1
    held = first.detach().cpu().contiguous()
    data = ctypes.string_at(held.data_ptr(), held.numel() * held.element_size())  # without numpy
    bench.told(f"{case}, fingerprint", "measured", hashlib.sha256(data).hexdigest()[:16])


def check(bench: Bench) -> None:
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    repeats = {"quick": 8, "standard": 40}.get(bench.level, 2000)
    made: dict[str, Callable[[], Any]] = {}
    bench.attempt("inputs", lambda: made.update(works(bench)))
    for name, work in made.items():
        bench.attempt(name, repeated, bench, name, work, repeats if bench.on_gpu else 6)


if __name__ == "__main__":
    run(check)
