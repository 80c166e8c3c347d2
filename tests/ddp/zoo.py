"""Small models on which DistributedDataParallel raises, or does not, each with its batches and its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Case = Callable[[], tuple[nn.Module, Any, Any]]
ZOO: dict[str, Case] = {}


def case(make: Case) -> Case:
    ZOO[make.__name__] = make
    return make


def x(rows: int = 4) -> torch.Tensor:
    return torch.randn(rows, 4)


def first(outputs: Any) -> torch.Tensor:
    return outputs[0].pow(2).sum()


def total(outputs: Any) -> torch.Tensor:
    return outputs.pow(2).sum()


class Net(nn.Module):
    """Three layers; what forward does with them is given."""

    def __init__(self, run: Callable[..., Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.step = 0
        for name, part in parts.items():
            setattr(self, name, part)
        self.run = run

    def forward(self, *args: Any, **named: Any) -> Any:
        self.step += 1
        return self.run(self, *args, **named)


@case
def unused_layer_frozen() -> Any:
    net = Net(lambda m, v: m.a(v))
    net.b.requires_grad_(False)
    return net, (x(),), total


@dataclass
class Pair:
    main: torch.Tensor
    aux: torch.Tensor


class Opaque:
    def __init__(self, main: torch.Tensor) -> None:
        self.main = main


@case
def no_grad_part() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            v = m.a(v)
        return m.b(v)

    return Net(run), (x(),), total


def reentrant(module: nn.Module, v: torch.Tensor) -> torch.Tensor:
    return checkpoint(module, v, use_reentrant=True)


@case
def reentrant_only_layer_twice() -> Any:
    class Only(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, v: torch.Tensor) -> torch.Tensor:
            return reentrant(self.a, reentrant(self.a, v))

    return Only(), (x().requires_grad_(),), total


@case
def not_reentrant_twice() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        v = checkpoint(m.b, m.a(v), use_reentrant=False)
        return checkpoint(m.b, v, use_reentrant=False)

    return Net(run), (x(),), total


@case
def shared_weight() -> Any:
    net = Net(lambda m, v: m.b(m.a(v)))
    net.b.weight = net.a.weight
    return net, (x(),), total


@case
def loss_on_attribute() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        m.aux = m.b(v).pow(2).sum()
        return m.a(v)

    net = Net(run)
    return net, (x(),), lambda o: o.sum() + net.aux


@case
def parameter_used_in_loss() -> Any:
    net = Net(lambda m, v: m.a(v))
    return net, (x(),), lambda o: net.b(o).sum()


@case
def parameter_replaced() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        m.w = nn.Parameter(torch.ones(4))
        return m.b(m.a(v)) * m.w

    return Net(run, w=nn.Parameter(torch.ones(4))), (x(),), total


@case
def parameter_added() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        if not hasattr(m, "w"):
            m.w = nn.Parameter(torch.ones(4))
        return m.b(m.a(v)) * m.w

    return Net(run), (x(),), total


@case
def frozen_in_forward() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        m.a.requires_grad_(False)
        return m.b(m.a(v))

    return Net(run), (x(),), total


@case
def parameter_changed_in_place() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            m.a.weight.mul_(0.99)
        return m.b(m.a(v))

    return Net(run), (x(),), total


@case
def buffer_changed() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        m.seen += 1
        return m.b(m.a(v))

    net = Net(run)
    net.register_buffer("seen", torch.zeros(()))
    return net, (x(),), total


@case
def sparse_gradient_elsewhere() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        return m.b(m.a(F.embedding(v, m.w, sparse=True)))

    return Net(run, w=nn.Parameter(torch.randn(9, 4))), (torch.arange(4),), total


class NoneForWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return v * w

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None


@case
def backward_in_forward() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        m.a(v).sum().backward()
        return m.b(m.a(v))

    return Net(run), (x(),), total


@case
def ignored_parameter() -> Any:
    net = Net(lambda m, v: m.a(v))
    net._ddp_params_and_buffers_to_ignore = ["b.weight", "b.bias"]  # type: ignore[assignment]
    return net, (x(),), total


@case
def alternating_reentrant() -> Any:
    def run(m: Any, v: torch.Tensor, f: bool) -> torch.Tensor:
        v = reentrant(m.b, m.a(v))
        return reentrant(m.b, v) if f else v

    return Net(run), [(x(), False), (x(), True)], total


@case
def first_batch_complete_then_output_left_out() -> Any:
    def loss(o: Any) -> torch.Tensor:
        return o[0].sum() if o[2] else (o[0] + o[1]).sum()

    return Net(lambda m, v, f: (m.a(v), m.b(v), f)), [(x(), False), (x(), True)], loss


# cases of one expression
ZOO |= {
    "healthy": lambda: (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (x(),), total),
    "healthy_batchnorm": lambda: (
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)),
        [(x(),), (x(),)],
        total,
    ),
    "unused_layer": lambda: (Net(lambda m, v: m.a(v)), (x(),), total),
    "output_left_out": lambda: (Net(lambda m, v: (m.a(v), m.b(v))), (x(),), first),
    "output_left_out_dict": lambda: (
        Net(lambda m, v: {"main": m.a(v), "aux": m.b(v)}),
        (x(),),
        lambda o: o["main"].sum(),
    ),
    "output_left_out_dataclass": lambda: (
        Net(lambda m, v: Pair(m.a(v), m.b(v))),
        (x(),),
        lambda o: o.main.sum(),
    ),
    "all_of_dataclass": lambda: (
        Net(lambda m, v: Pair(m.a(v), m.b(v))),
        (x(),),
        lambda o: (o.main + o.aux).sum(),
    ),
    "opaque_output": lambda: (Net(lambda m, v: Opaque(m.b(m.a(v)))), (x(),), lambda o: o.main.sum()),
    "opaque_output_unused": lambda: (Net(lambda m, v: Opaque(m.a(v))), (x(),), lambda o: o.main.sum()),
    "branch_by_input": lambda: (
        Net(lambda m, v, f: m.a(v) if f else m.b(v)),
        [(x(), True), (x(), False)],
        total,
    ),
    "branch_extra_in_second": lambda: (
        Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v)),
        [(x(), False), (x(), True)],
        total,
    ),
    "branch_missing_in_second": lambda: (
        Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v)),
        [(x(), True), (x(), False)],
        total,
    ),
    "detached_part": lambda: (Net(lambda m, v: m.b(m.a(v).detach())), (x(),), total),
    "no_parameters": lambda: (nn.ReLU(), (x().requires_grad_(),), total),
    "all_frozen": lambda: (nn.Linear(4, 4).requires_grad_(False), (x().requires_grad_(),), total),
    "reentrant_once": lambda: (Net(lambda m, v: reentrant(m.b, m.a(v))), (x(),), total),
    "reentrant_twice": lambda: (Net(lambda m, v: reentrant(m.b, reentrant(m.b, m.a(v)))), (x(),), total),
    "reentrant_shared_with_plain": lambda: (Net(lambda m, v: reentrant(m.b, m.b(m.a(v)))), (x(),), total),
    "reentrant_no_input_grad": lambda: (Net(lambda m, v: m.b(reentrant(m.a, v))), (x(),), total),
    "reentrant_and_unused": lambda: (
        Net(lambda m, v: reentrant(m.b, m.a(v)), c=nn.Linear(4, 4)),
        (x(),),
        total,
    ),
    "layer_used_twice": lambda: (Net(lambda m, v: m.b(m.b(m.a(v)))), (x(),), total),
    "returns_own_parameter": lambda: (
        Net(lambda m, v: (m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4))),
        (x(),),
        lambda o: o[0].sum() + o[1].sum(),
    ),
    "returns_own_parameter_unused": lambda: (
        Net(lambda m, v: (m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4))),
        (x(),),
        first,
    ),
    "devices_cpu_and_meta": lambda: (
        Net(lambda m, v: m.b(m.a(v)), c=nn.Linear(4, 4, device="meta")),
        (x(),),
        total,
    ),
    "lazy_layer": lambda: (nn.Sequential(nn.LazyLinear(4)), (x(),), total),
    "sparse_embedding": lambda: (
        nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 4)),
        (torch.arange(4),),
        total,
    ),
    "sparse_embedding_unused": lambda: (
        Net(lambda m, v: m.b(m.a(v)), e=nn.Embedding(9, 4, sparse=True)),
        (x(),),
        total,
    ),
    "sparse_tied_to_dense": lambda: (
        Net(lambda m, v: m.b(m.a(m.e(v))) @ m.e.weight.t(), e=nn.Embedding(9, 4, sparse=True)),
        (torch.arange(4),),
        total,
    ),
    "complex_parameter": lambda: (
        Net(lambda m, v: (m.b(m.a(v)) * m.w).abs(), w=nn.Parameter(torch.ones(4, dtype=torch.complex64))),
        (x(),),
        total,
    ),
    "complex_unused": lambda: (
        Net(lambda m, v: m.b(m.a(v)), w=nn.Parameter(torch.ones(4, dtype=torch.complex64))),
        (x(),),
        total,
    ),
    "integer_parameter": lambda: (
        Net(
            lambda m, v: m.b(m.a(v)) * m.w,
            w=nn.Parameter(torch.ones(4, dtype=torch.int64), requires_grad=False),
        ),
        (x(),),
        total,
    ),
    "function_returns_none": lambda: (
        Net(lambda m, v: NoneForWeight.apply(m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4))),
        (x(),),
        total,
    ),
    "multiplied_by_zero": lambda: (Net(lambda m, v: m.a(v) + 0.0 * m.b(v)), (x(),), total),
    "loss_reaches_no_parameter": lambda: (
        Net(lambda m, v: (m.b(m.a(v)), v * 2)),
        (x().requires_grad_(),),
        lambda o: o[1].sum(),
    ),
    "syncbn_on_cpu": lambda: (nn.Sequential(nn.Linear(4, 4), nn.SyncBatchNorm(4)), (x(),), total),
    "unused_in_last_of_three": lambda: (
        Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v)),
        [(x(), True), (x(), True), (x(), False)],
        total,
    ),
    "named_batches": lambda: (
        Net(lambda m, v, scale: m.a(v) * scale),
        [{"v": x(), "scale": 2.0}, {"v": x(), "scale": 1.0}],
        total,
    ),
    "own_loss": lambda: (Net(lambda m, v: {"loss": m.a(v).sum(), "logits": m.b(v)}), (x(),), None),
}


class Three(nn.Module):
    """Three layers and a way through them."""

    def __init__(self, way: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.way = way

    def forward(self, v: torch.Tensor) -> Any:
        return self.way(self.l, v)


def _leaf(v: torch.Tensor) -> torch.Tensor:
    return v.clone().requires_grad_()


def _square(outputs: Any) -> torch.Tensor:
    return (outputs[0] if isinstance(outputs, tuple) else outputs).square().mean()


# found by comparing further models with DDP: a nested graph task does not end the one around it
_WAYS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "reentrant_before_a_layer": lambda m, v: m[2](reentrant(m[1], reentrant(m[0], _leaf(v)))),
    "reentrant_between_layers": lambda m, v: m[2](reentrant(m[1], m[0](v))),
    "reentrant_shared_between_layers": lambda m, v: m[2](reentrant(m[1], reentrant(m[1], m[0](v)))),
    "reentrant_and_plain": lambda m, v: m[2](reentrant(m[1], m[0](v)) + m[1](v)),
    "reentrant_nested": lambda m, v: m[2](reentrant(lambda t: reentrant(m[1], t) * 2, m[0](v))),
    "reentrant_nested_shared": lambda m, v: m[2](reentrant(lambda t: reentrant(m[1], m[1](t)) * 2, m[0](v))),
    "reentrant_last": lambda m, v: reentrant(m[2], m[1](m[0](v))),
    "reentrant_last_twice": lambda m, v: reentrant(m[2], reentrant(m[2], m[1](m[0](v)))),
    "reentrant_first_and_one_unused": lambda m, v: m[2](reentrant(m[0], _leaf(v))),
    "reentrant_two_paths": lambda m, v: reentrant(m[0], _leaf(v)) + reentrant(m[1], _leaf(v)) + m[2](v),
    "reentrant_two_paths_shared": lambda m, v: (
        reentrant(m[0], _leaf(v)) + reentrant(m[0], _leaf(v)) + m[2](m[1](v))
    ),
    "used_three_times": lambda m, v: m[2](m[1](m[1](m[1](m[0](v))))),
    "detached_in_the_middle": lambda m, v: m[2](m[1](m[0](v)).detach()),
    "detached_beside": lambda m, v: m[2](m[0](v)) + m[1](v).detach(),
}
for _name, _way in _WAYS.items():
    ZOO[_name] = lambda way=_way: (Three(way), (x(),), _square)
