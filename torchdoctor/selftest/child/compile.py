"""torch.compile: small functions and a training step, against float64 on the CPU without it.

On a GPU the Inductor writes Triton kernels, on the CPU C++, at the deep level alone and where there is a C++
compiler; else the CPU gets the part before the Inductor (aot_eager), and that is said. The compiled files go
into a folder of their own, so that nothing is taken from an earlier run.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from torchdoctor.selftest.child.bench import Bench, Lacking, far, run

SOURCE = "float64 on the CPU, not compiled"


def functions() -> dict[str, Callable[..., Any]]:
    return {
        "pointwise": lambda x, w: torch.sin(x) * torch.exp(-x * x) + x.abs().sqrt(),
        "reduction": lambda x, w: torch.softmax(x, -1).sum(0) + x.var(0),
        "product": lambda x, w: F.gelu(x @ w) + 1,
        "layer norm": lambda x, w: F.layer_norm(x @ w, (w.shape[1],)),
        "gather": lambda x, w: torch.cumsum(x, 1)[:, ::3] - x.amax(1, keepdim=True),
    }


def backend(bench: Bench) -> str:
    """The Inductor, or what there is where it cannot work or would take too long."""
    if bench.on_gpu:
        return "inductor"
    if bench.level != "deep":
        bench.told("inductor", "skip", "on the CPU only at the deep level; aot_eager was tested instead")
        return "aot_eager"
    chosen = os.environ.get("CXX") or next(
        (one for one in ("g++", "clang++", "c++") if shutil.which(one)), ""
    )
    if not (chosen and shutil.which(chosen)):
        bench.told("inductor", "skip", "there is no C++ compiler: aot_eager was tested instead")
        return "aot_eager"
    return "inductor"


def same(bench: Bench, case: str, work: Callable[..., Any], name: str) -> None:
    numbers = bench.numbers()
    x, w = torch.randn(48, 96, generator=numbers), torch.randn(96, 32, generator=numbers)
    compiled: Any = torch.compile(work, backend=name, dynamic=False)
    got = bench.spoil(compiled(bench.put(x), bench.put(w)))
    bench.within(case, far(got, work(x.double(), w.double())), 2e-5, SOURCE)


def train(bench: Bench, case: str, name: str) -> None:
    torch.manual_seed(bench.seed)
    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.GELU())
    plain = copy.deepcopy(net).double()
    here: Any = net.to(bench.device)
    inputs = torch.randn(16, 32, generator=bench.numbers(1))
    compiled: Any = torch.compile(here, backend=name)
    loss: Any = (compiled(bench.put(inputs)) ** 2).mean()
    loss.backward()
    want: Any = (plain(inputs.double()) ** 2).mean()
    want.backward()
    pairs = zip(here.parameters(), plain.parameters())  # noqa: B905 (strict is of Python 3.10)
    worst = max(far(bench.spoil(one.grad), other.grad) for one, other in pairs)
    bench.within(case, worst, 2e-5, SOURCE)


def check(bench: Bench) -> None:
    if not hasattr(torch, "compile"):
        raise Lacking("this torch has no torch.compile")
    torch.backends.cuda.matmul.allow_tf32 = False
    if bench.device.type == "cuda":
        torch.cuda.set_device(bench.device)
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
        # compiled here: workers would be processes that import torch, for a handful of kernels
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        name = backend(bench)
        for word, work in functions().items():
            case = f"compiled {word}"
            bench.attempt(case, same, bench, case, work, name)
        bench.attempt("compiled training step", train, bench, "compiled training step", name)


if __name__ == "__main__":
    run(check)
