"""Convolution, attention, FFT and linear algebra against float64 on the CPU, each within a stated tolerance.

The limit is a share of the largest entry: 30 eps sqrt(length of the sums) in float32 and float64; 8 eps in
the narrow types, whose sums are kept in float32. Topics: conv, attention, fft, linalg.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from torchdoctor.selftest.child.bench import Bench, Lacking, far, run

SOURCE = "float64 on the CPU"


def limit(kind: Any, length: int) -> tuple[float, str]:
    """How far a sound device may be off, and in words."""
    eps = float(torch.finfo(kind).eps)
    if kind in (torch.float16, torch.bfloat16):
        return 8 * eps, f"{SOURCE}; limit 8 eps"
    return 30 * eps * math.sqrt(length), f"{SOURCE}; limit 30 eps sqrt({length})"


def compare(bench: Bench, case: str, kind: Any, length: int, work: Callable[..., Any], *inputs: Any) -> None:
    """``work`` on the device in ``kind``, and on the CPU in float64 from the very same numbers."""
    rounded = [one.to(kind) for one in inputs]
    got = bench.spoil(work(*(bench.put(one) for one in rounded)))
    want = work(*(one.double() for one in rounded))
    bench.within(case, far(got, want), *limit(kind, length))


def convolutions(bench: Bench, kind: Any, word: str) -> None:
    numbers = bench.numbers(1)
    picture = torch.randn(2, 8, 24, 24, generator=numbers)
    weight = torch.randn(16, 8, 3, 3, generator=numbers)
    plans: dict[str, Callable[..., Any]] = {
        "conv2d": lambda x, w: F.conv2d(x, w, padding=1),
        "conv2d stride 2": lambda x, w: F.conv2d(x, w, stride=2),
        "conv2d dilated": lambda x, w: F.conv2d(x, w, dilation=2),
        "conv2d channels last": lambda x, w: F.conv2d(x.contiguous(memory_format=torch.channels_last), w),
        "conv transposed": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), stride=2),
    }
    for name, work in plans.items():
        case = f"{name} {word}"
        bench.attempt(case, compare, bench, case, kind, 72, work, picture, weight)


def attention(bench: Bench, kind: Any, word: str) -> None:
    numbers = bench.numbers(2)
    heads = [torch.randn(2, 4, 128, 64, generator=numbers) for _ in range(3)]
    for name, causal in (("attention", False), ("attention causal", True)):

        def work(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION"):
            case = f"{name} {backend.lower().replace('_', ' ')} {word}"
            bench.attempt(case, chosen, bench, case, kind, work, heads, backend)


def chosen(
    bench: Bench, case: str, kind: Any, work: Callable[..., Any], heads: list[Any], backend: str
) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not bench.on_gpu and backend == "EFFICIENT_ATTENTION":
        raise Lacking("the CPU has no memory-efficient attention")
    rounded = [one.to(kind) for one in heads]
    want = work(*(one.double() for one in rounded))
    with sdpa_kernel([getattr(SDPBackend, backend)]):
        got = bench.spoil(work(*(bench.put(one) for one in rounded)))
    bench.within(case, far(got, want), *limit(kind, 128))


def transforms(bench: Bench) -> None:
    numbers = bench.numbers(3)
    for length in (256, 1000, 1009):  # a power of two, a composite, a prime
        signal = torch.randn(8, length, generator=numbers)
        for name, work in (
            ("rfft", lambda x: torch.view_as_real(torch.fft.rfft(x))),
            ("fft and back", lambda x: torch.fft.ifft(torch.fft.fft(x)).real),
        ):
            case = f"{name} {length} float32"
            bench.attempt(case, compare, bench, case, torch.float32, length, work, signal)


def algebra(bench: Bench) -> None:
    """Well-conditioned problems, so that the error is the device's and not the problem's."""
    numbers = bench.numbers(4)
    square = torch.randn(3, 48, 48, generator=numbers)
    definite = square @ square.mT / 48 + 2 * torch.eye(48)
    target = torch.randn(3, 48, 4, generator=numbers)
    plans: dict[str, Callable[..., Any]] = {
        "solve": lambda a, b: torch.linalg.solve(a, b),
        "cholesky": lambda a, b: torch.linalg.cholesky(a),
        "eigvalsh": lambda a, b: torch.linalg.eigvalsh(a),
        "svdvals": lambda a, b: torch.linalg.svdvals(a),
        "qr product": lambda a, b: torch.matmul(*torch.linalg.qr(a)),
        "inv": lambda a, b: torch.linalg.inv(a),
        "det log": lambda a, b: torch.linalg.slogdet(a)[1],
    }
    # float64 on the CPU is the measure itself
    for kind in (torch.float32, torch.float64) if bench.device.type == "cuda" else (torch.float32,):
        for name, work in plans.items():
            case = f"{name} {str(kind)[6:]}"
            bench.attempt(case, compare, bench, case, kind, 48, work, definite, target)


def check(bench: Bench) -> None:
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    for kind in (torch.float32, torch.bfloat16) + ((torch.float16,) if bench.on_gpu else ()):
        word = str(kind)[6:]
        if bench.about("conv"):
            convolutions(bench, kind, word)
        if bench.about("attention"):
            attention(bench, kind, word)
    if bench.about("fft"):
        transforms(bench)
    if bench.about("linalg"):
        algebra(bench)


if __name__ == "__main__":
    run(check)
