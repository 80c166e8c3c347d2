"""Matrix products of whole numbers -4 ... 4: every partial sum is exact in every type, so nothing may be off.

The product is proved by Freivalds' method: (A B) x = A (B x) for two random whole x, in float64 on the CPU,
where these sums are exact; a wrong element escapes both with a chance below 1 in a million. Where it does not
hold, the places are told. At the deep level one product is repeated until the device is warm, and its clocks
and its heat are told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, run
from torchdoctor.selftest.child.watching import Watch

SOURCE = "whole numbers, exact in every type; Freivalds' product in float64 on the CPU"
SOAK_S = 60.0
SPREAD = 1000  # x lies in -SPREAD ... SPREAD


def whole(shape: tuple[int, ...], numbers: Any) -> Any:
    return torch.randint(-4, 5, shape, generator=numbers, dtype=torch.int8)


def wide(kind: Any) -> Callable[[Any, Any], Any]:
    """The product with float32 results: a result in the narrow type would be rounded."""

    def product(left: Any, right: Any) -> Any:
        return torch.mm(left.to(kind), right.to(kind), out_dtype=torch.float32)

    return product


def narrow(kind: Any) -> Callable[[Any, Any], Any]:
    def product(left: Any, right: Any) -> Any:
        return left.to(kind) @ right.to(kind)

    return product


def int8(left: Any, right: Any) -> Any:
    return torch._int_mm(left, right)


def tf32(left: Any, right: Any) -> Any:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return left.float() @ right.float()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def fp8(left: Any, right: Any) -> Any:
    one = torch.ones((), device=left.device)
    columns = right.t().contiguous().to(torch.float8_e4m3fn).t()
    rows = left.to(torch.float8_e4m3fn)
    return torch._scaled_mm(rows, columns, scale_a=one, scale_b=one, out_dtype=torch.float32)


def agrees(left: Any, right: Any, got: Any, numbers: Any) -> bool:
    """In float64 on the CPU, whose sums stay below 2^53 here and are exact; a NaN agrees with nothing."""
    x = torch.randint(-SPREAD, SPREAD + 1, (right.shape[1], 2), generator=numbers).double()
    return torch.equal(got.double() @ x, left.double() @ (right.double() @ x))


def prove(bench: Bench, case: str, product: Callable[[Any, Any], Any], size: int, repeats: int) -> None:
    numbers = bench.numbers()
    left, right = whole((size, size), numbers), whole((size, size), numbers)
    if product is fp8:
        # its sums are kept in fewer bits than float32 has; those of -1 ... 1 stay below 2^13
        left, right = left.clamp(-1, 1), right.clamp(-1, 1)
    here, there = bench.put(left), bench.put(right)
    first = None
    for _ in range(repeats):
        got = product(here, there)
        if first is not None and torch.equal(got, first):
            continue  # proved already
        first = got
        spoilt = bench.spoil(got).cpu()
        if not agrees(left, right, spoilt, numbers):
            apart = (spoilt.double() != left.double() @ right.double()).nonzero()
            places = f"first at {apart[0].tolist()}, within rows {span(apart, 0)}, columns {span(apart, 1)}"
            bench.exact(case, int(apart.shape[0]), SOURCE, places)
            return
    bench.exact(case, 0, SOURCE)


def span(places: Any, axis: int) -> str:
    return f"{int(places[:, axis].min())}-{int(places[:, axis].max())}"


def products(bench: Bench) -> dict[str, Callable[[Any, Any], Any]]:
    if not bench.on_gpu:
        # sums of 512 products stay below 2^13: bfloat16's own result would be rounded, so only these types
        return {"fp32": narrow(torch.float32), "fp64": narrow(torch.float64), "int8": int8}
    return {
        "bf16": wide(torch.bfloat16),
        "fp16": wide(torch.float16),
        "fp32": narrow(torch.float32),
        "tf32": tf32,
        "int8": int8,
        "fp8": fp8,
    }


def small(bench: Bench, case: str, kind: Any) -> None:
    """A narrow result is exact while sums stay below its precision: 256 for bfloat16, 2048 for float16."""
    numbers = bench.numbers(1)
    left = whole((96, 16), numbers)
    right = torch.randint(-1, 2, (16, 96), generator=numbers, dtype=torch.int8)
    got = bench.spoil(bench.put(left).to(kind) @ bench.put(right).to(kind))
    wrong = int((got.cpu().double() != left.double() @ right.double()).sum())
    bench.exact(case, wrong, "whole numbers below 64, exact in every type")


def fits(product: Callable[[Any, Any], Any], bench: Bench) -> None:
    if product is fp8 and torch.cuda.get_device_capability(bench.device) < (8, 9):
        raise Lacking("fp8 needs compute capability 8.9")


def soak(bench: Bench, seconds: float) -> None:
    """One product, over and over, until the device is warm: every result must be that which was proved."""
    case = f"under heat, {seconds:.0f} s"
    name, product = next(iter(products(bench).items()))
    size = 8192 if bench.on_gpu else 512
    numbers = bench.numbers()
    left, right = whole((size, size), numbers), whole((size, size), numbers)
    here, there = bench.put(left), bench.put(right)
    first = product(here, there)
    if not agrees(left, right, first.cpu(), numbers):
        bench.exact(case, 1, SOURCE, f"the first product of {name}")
        return
    count, until = 0, time.monotonic() + seconds
    with Watch(bench) as watch:
        while time.monotonic() < until:
            wrong = torch.zeros((), dtype=torch.int64, device=bench.device)
            for number in range(20):  # told by the device, so that it never waits for the host
                got = product(here, there)
                if count == 0 and number == 7:
                    got = bench.spoil(got)
                wrong += torch.count_nonzero(got != first)
            count += 20
            if int(wrong):
                bench.exact(case, int(wrong), SOURCE, f"within products {count - 19} to {count} of {name}")
                return
    bench.exact(case, 0, f"the product of {name} that was proved, {count} time{'s' if count > 1 else ''}")
    watch.tell(case)


def check(bench: Bench) -> None:
    size, repeats = (
        (512, 2)
        if not bench.on_gpu
        else {"quick": (2048, 4), "standard": (4096, 8)}.get(bench.level, (8192, 100))
    )
    for name, product in products(bench).items():
        bench.attempt(f"{name}, n = {size}", one, bench, name, product, size, repeats)
    for kind in (torch.bfloat16, torch.float16):
        name = f"small {str(kind)[6:]}"
        bench.attempt(name, small, bench, name, kind)
    if bench.level == "deep":
        bench.attempt("under heat", soak, bench, SOAK_S if bench.on_gpu else 1.0)


def one(bench: Bench, name: str, product: Callable[[Any, Any], Any], size: int, repeats: int) -> None:
    if bench.on_gpu:
        fits(product, bench)
    prove(bench, f"{name}, n = {size}", product, size, repeats)


if __name__ == "__main__":
    run(check)
