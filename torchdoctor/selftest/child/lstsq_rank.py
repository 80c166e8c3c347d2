"""torch.linalg.lstsq: right where the problem has full rank, and what it gives where it has not.

Full rank: the answer must agree with float64 on the CPU (driver gelsd). Dependent columns and all zeros: CUDA
has only the driver gels, which presumes full rank; what it returns is told, as a note, beside the smallest
solution, which gelsd on the CPU and pinv on the device must both find.
"""

from __future__ import annotations

from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, far, run

# singular values of the full-rank problems lie in [1, CONDITION]
CONDITION = 4.0
SHAPES = {
    "square": (24, 24),
    "tall": (160, 24),
    "wide": (24, 160),
    "batched": (5, 40, 12),
    "batched wide": (3, 12, 40),
}
TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
SOURCE = "float64 on the CPU, driver gelsd; limit 100 eps cond^2 with cond = 4"


def random(shape: tuple[int, ...], kind: Any, numbers: Any) -> Any:
    return torch.randn(shape, dtype=torch.complex128 if kind.is_complex else torch.float64, generator=numbers)


def whole(shape: tuple[int, ...], kind: Any, numbers: Any) -> Any:
    return (4 * random(shape, kind, numbers)).real.round().to(kind)


def full_rank(shape: tuple[int, ...], kind: Any, numbers: Any) -> Any:
    """A matrix of known condition, in double precision: orthogonal times diagonal times orthogonal."""
    rows, columns = shape[-2:]
    rank = min(rows, columns)
    left = torch.linalg.qr(random((*shape[:-2], rows, rank), kind, numbers))[0]
    right = torch.linalg.qr(random((*shape[:-2], columns, rank), kind, numbers))[0]
    return left * torch.linspace(1.0, CONDITION, rank, dtype=torch.float64) @ right.mH


def solve(bench: Bench, matrix: Any, target: Any) -> Any:
    return torch.linalg.lstsq(bench.put(matrix), bench.put(target), driver="gels").solution


def agree(bench: Bench, name: str, shape: tuple[int, ...], kind: Any) -> None:
    numbers = bench.numbers()
    # rounded first, so that the reference solves the very same problem
    matrix = full_rank(shape, kind, numbers).to(kind)
    target = random((*shape[:-1], 3), kind, numbers).to(kind)
    got = bench.spoil(solve(bench, matrix, target))
    double = torch.complex128 if kind.is_complex else torch.float64
    want = torch.linalg.lstsq(matrix.to(double), target.to(double), driver="gelsd").solution
    limit = 100 * torch.finfo(kind).eps * CONDITION**2
    bench.within(name, far(got, want), limit, SOURCE)


def deficient(numbers: Any, kind: Any) -> dict[str, tuple[Any, Any]]:
    """Problems without full rank, in the given type; whole numbers, so that sums are exact in each."""
    twin = whole((6, 3), kind, numbers)
    twin[:, 2] = twin[:, 1]
    batch = whole((4, 30, 8), kind, numbers)
    batch[..., 7] = batch[..., 0] + batch[..., 3]
    wide = whole((6, 12), kind, numbers)
    wide[5] = wide[0]
    return {
        "two equal columns": (twin, random((6, 1), kind, numbers).to(kind)),
        "batched, a column that is a sum": (batch, random((4, 30, 2), kind, numbers).to(kind)),
        "wide, two equal rows": (wide, random((6, 1), kind, numbers).to(kind)),
        "all zeros": (torch.zeros(6, 3, dtype=kind), random((6, 1), kind, numbers).to(kind)),
    }


def show(bench: Bench, name: str, kind: Any, matrix: Any, target: Any) -> None:
    double = torch.complex128 if kind.is_complex else torch.float64
    want = torch.linalg.lstsq(matrix.to(double), target.to(double), driver="gelsd").solution
    smallest = float(want.abs().max())
    # where the rank is cut is said: the defaults differ between functions and versions
    cut = 10 * max(matrix.shape[-2:]) * float(torch.finfo(kind).eps)
    answer = bench.spoil(torch.linalg.pinv(bench.put(matrix), rtol=cut) @ bench.put(target))
    bench.within(
        f"pinv, {name}", far(answer, want), 1e4 * float(torch.finfo(kind).eps), "float64 on the CPU, gelsd"
    )
    try:
        got = solve(bench, matrix, target).cpu()
    except RuntimeError as error:
        bench.note(f"gels, {name}", f"raises {str(error).splitlines()[0][:160]}")
        return
    finite = bool(torch.isfinite(torch.view_as_real(got) if got.is_complex() else got).all())
    largest = float(got.abs().max()) if finite else float("nan")
    entries = f"entries up to {largest:.3g}" if finite else "nan or inf"
    bench.note(
        f"gels, {name}", f"{entries} where the smallest solution has at most {smallest:.3g}", far(got, want)
    )


def check(bench: Bench) -> None:
    for kind in TYPES:
        word = str(kind).replace("torch.", "")
        for name, shape in SHAPES.items():
            case = f"{name} {word}"
            bench.attempt(case, agree, bench, case, shape, kind)
        for name, (matrix, target) in deficient(bench.numbers(7), kind).items():
            case = f"{name}, {word}"
            bench.attempt(case, show, bench, case, kind, matrix, target)


if __name__ == "__main__":
    run(check)
