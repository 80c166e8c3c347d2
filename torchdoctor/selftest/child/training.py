"""Training in small: gradients, mixed precision, random numbers, and a transformer's step without NaN.

The gradients and the losses must be those of the CPU in float64; GradScaler must skip a step with an infinite
gradient and no other; random numbers must have their moments and repeat from their seed. Topics: autograd,
nan, amp, rng.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F

from torchdoctor.selftest.child.bench import Bench, far, run

STEPS = 5


def model(bench: Bench) -> Any:
    torch.manual_seed(bench.seed)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 8)
    )


def gradients(bench: Bench) -> None:
    numbers = bench.numbers()
    inputs, labels = torch.randn(16, 32, generator=numbers), torch.randint(0, 8, (16,), generator=numbers)
    here = model(bench)
    there = copy.deepcopy(here).double()
    here = here.to(bench.device)
    losses: list[Any] = [F.cross_entropy(here(bench.put(inputs)), bench.put(labels))]
    losses.append(F.cross_entropy(there(inputs.double()), labels))
    for loss in losses:
        loss.backward()
    pairs = zip(here.parameters(), there.parameters())  # noqa: B905 (strict is of Python 3.10)
    worst = max(far(bench.spoil(one.grad), other.grad) for one, other in pairs)
    bench.within("gradients float32", worst, 1e-5, "float64 on the CPU")


def descend(net: Any, inputs: Any, labels: Any) -> list[float]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss: Any = F.cross_entropy(net(inputs).mean(1), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.use_deterministic_algorithms(False)
    return losses


def transformer(bench: Bench) -> None:
    torch.manual_seed(bench.seed + 1)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    here = torch.nn.Sequential(layer, torch.nn.Linear(32, 8))
    there = copy.deepcopy(here).double()
    numbers = bench.numbers(1)
    inputs, labels = torch.randn(8, 12, 32, generator=numbers), torch.randint(0, 8, (8,), generator=numbers)
    got = descend(here.to(bench.device), bench.put(inputs), bench.put(labels))
    want = descend(there, inputs.double(), labels)
    if bench.fault == "nan":
        got[-1] = math.nan
    finite = all(math.isfinite(loss) for loss in got)
    bench.holds(
        "transformer, finite", finite, f"losses {', '.join(f'{one:.4g}' for one in got)}", "finite losses",
        "a sound network of this size",
    )  # fmt: skip
    worst = far(bench.spoil(torch.tensor(got)), torch.tensor(want))
    bench.within(f"transformer, {STEPS} steps", worst, 1e-4, "float64 on the CPU")
    if bench.fault == "odd":
        got[-1] += 1e-6
    # no atomic additions in it: GPUs of one model must agree to the last bit
    bench.told("transformer, fingerprint", "measured", " ".join(float(one).hex() for one in got))


def mixed(bench: Bench, kind: Any) -> None:
    case = f"autocast {str(kind)[6:]}"
    numbers = bench.numbers(2)
    inputs = torch.randn(16, 32, generator=numbers)
    here = model(bench)
    want = copy.deepcopy(here).double()(inputs.double())
    with torch.autocast(bench.device.type, dtype=kind):
        got = here.to(bench.device)(bench.put(inputs))
    bench.holds(case, got.dtype == kind, str(got.dtype), str(kind), "a Linear under autocast")
    bench.within(f"{case}, result", far(bench.spoil(got), want), 16 * float(torch.finfo(kind).eps), "float64")


def scaler(bench: Bench) -> None:
    weight = torch.nn.Parameter(torch.ones(4, device=bench.device))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scale = torch.amp.GradScaler(bench.device.type, init_scale=8.0)
    moved = []
    for factor in (0.5, math.inf, 0.25):
        before = weight.detach().clone()
        optimizer.zero_grad()
        loss: Any = scale.scale((weight * factor).sum())
        loss.backward()
        scale.step(optimizer)
        scale.update()
        moved.append(float((before - weight.detach()).abs().max()))
    moved = bench.spoil(torch.tensor(moved)).tolist()
    good = moved == [0.5, 0.0, 0.25] and scale.get_scale() == 4.0
    told = f"steps {moved}, scale {scale.get_scale():g}"
    bench.holds(
        "GradScaler", good, told, "steps [0.5, 0.0, 0.25], scale 4", "an infinite gradient is skipped"
    )


def moments(bench: Bench) -> None:
    count = 1 << 18

    def draw(seed: int) -> Any:
        source = torch.Generator(bench.device).manual_seed(seed)
        return torch.randn(count, device=bench.device, generator=source)

    first, again, other = draw(bench.seed), draw(bench.seed), draw(bench.seed + 1)
    spoilt = bench.spoil(again)
    bench.exact("random, same seed", int((first != spoilt).sum()), "the same seed")
    same = float((first == other).float().mean())
    bench.within("random, other seed", same, 1e-3, "other numbers")
    # five standard errors of each: chance fails one seed in a million
    mean, spread = abs(float(first.double().mean())), abs(float(first.double().std()) - 1)
    bench.within("random, mean", mean, 5 / math.sqrt(count), "5 standard errors")
    bench.within("random, deviation", spread, 5 / math.sqrt(2 * count), "5 standard errors")
    kept = torch.nn.functional.dropout(torch.ones(count, device=bench.device), 0.25).count_nonzero().item()
    share = abs(kept / count - 0.75)
    bench.within("dropout, share", share, 5 * math.sqrt(0.75 * 0.25 / count), "5 standard errors")


def check(bench: Bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    if bench.about("autograd"):
        bench.attempt("gradients", gradients, bench)
    if bench.about("nan"):
        bench.attempt("transformer", transformer, bench)
    if bench.about("amp"):
        for kind in (torch.bfloat16, torch.float16):
            bench.attempt(f"autocast {str(kind)[6:]}", mixed, bench, kind)
        bench.attempt("GradScaler", scaler, bench)
    if bench.about("rng"):
        torch.manual_seed(bench.seed)
        bench.attempt("random", moments, bench)


if __name__ == "__main__":
    run(check)
