"""The same computation, over and over: every repeat must give the same bits, and so it must after a load.

A fingerprint of every result is told too: GPUs of one model with one torch must agree on it. Topic
bit-equal-hot: the results of before the load are those that the hot device must give again.
"""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, run, unequal
from torchdoctor.selftest.child.watching import Watch

SOURCE = "the first run of the same computation"
LOAD_S = 20.0
BEFORE_LOAD = "the same computation before the load"


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
    fingerprint(bench, case, first)


def fingerprint(bench: Bench, case: str, first: Any) -> None:
    if bench.fault == "odd":  # the same every time, and not what its siblings have
        first = first + 1
    held = first.detach().cpu().contiguous()
    data = ctypes.string_at(held.data_ptr(), held.numel() * held.element_size())  # without numpy
    bench.told(f"{case}, fingerprint", "measured", hashlib.sha256(data).hexdigest()[:16])


def load(bench: Bench, seconds: float) -> None:
    """Matrix products without a pause: what draws the most power of all that a job does."""
    size = 8192 if bench.on_gpu else 256
    kind = torch.bfloat16 if bench.on_gpu else torch.float32
    left = bench.put(torch.randn(size, size, generator=bench.numbers())).to(kind)
    until = time.monotonic() + seconds
    with Watch(bench) as watch:
        while time.monotonic() < until:
            for _ in range(20):
                left @ left
            bench.wait()
    watch.tell(f"load of {seconds:g} s")


def hot(bench: Bench, made: dict[str, Callable[[], Any]], repeats: int) -> None:
    before = {name: work() for name, work in made.items()}
    load(bench, LOAD_S if bench.on_gpu else 0.5)
    for name, work in made.items():
        bench.attempt(f"{name}, hot", after_load, bench, f"{name}, hot", work, before[name], repeats)


def after_load(bench: Bench, case: str, work: Callable[[], Any], before: Any, repeats: int) -> None:
    for number in range(repeats):
        again = work()
        if number == 0:
            again = bench.spoil(again)
        if not torch.equal(again, before):
            wrong, where = unequal(again, before)
            bench.exact(case, wrong, BEFORE_LOAD, f"repeat {number + 1}, {where}")
            return
    bench.exact(case, 0, BEFORE_LOAD)
    fingerprint(bench, case, before)


def check(bench: Bench) -> None:
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    repeats = {"quick": 8, "standard": 40}.get(bench.level, 2000) if bench.on_gpu else 6
    made: dict[str, Callable[[], Any]] = {}
    bench.attempt("inputs", lambda: made.update(works(bench)))
    if bench.about("bit-equal"):
        for name, work in made.items():
            bench.attempt(name, repeated, bench, name, work, repeats)
    if bench.about("bit-equal-hot"):
        bench.attempt("load", hot, bench, made, repeats)


if __name__ == "__main__":
    run(check)
