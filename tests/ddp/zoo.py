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
def healthy() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (x(),), total


@case
def healthy_batchnorm() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)), [(x(),), (x(),)], total


@case
def unused_layer() -> Any:
    return Net(lambda m, v: m.a(v)), (x(),), total


@case
def unused_layer_frozen() -> Any:
    net = Net(lambda m, v: m.a(v))
    net.b.requires_grad_(False)
    return net, (x(),), total


@case
def output_left_out() -> Any:
    return Net(lambda m, v: (m.a(v), m.b(v))), (x(),), first


@case
def output_left_out_dict() -> Any:
    return Net(lambda m, v: {"main": m.a(v), "aux": m.b(v)}), (x(),), lambda o: o["main"].sum()


@dataclass
class Pair:
    main: torch.Tensor
    aux: torch.Tensor


@case
def output_left_out_dataclass() -> Any:
    return Net(lambda m, v: Pair(m.a(v), m.b(v))), (x(),), lambda o: o.main.sum()


@case
def all_of_dataclass() -> Any:
    return Net(lambda m, v: Pair(m.a(v), m.b(v))), (x(),), lambda o: (o.main + o.aux).sum()


class Opaque:
    def __init__(self, main: torch.Tensor) -> None:
        self.main = main


@case
def opaque_output() -> Any:
    return Net(lambda m, v: Opaque(m.b(m.a(v)))), (x(),), lambda o: o.main.sum()


@case
def opaque_output_unused() -> Any:
    return Net(lambda m, v: Opaque(m.a(v))), (x(),), lambda o: o.main.sum()


@case
def branch_by_input() -> Any:
    return Net(lambda m, v, f: m.a(v) if f else m.b(v)), [(x(), True), (x(), False)], total


@case
def branch_extra_in_second() -> Any:
    return Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v)), [(x(), False), (x(), True)], total


@case
def branch_missing_in_second() -> Any:
    return Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v)), [(x(), True), (x(), False)], total


@case
def detached_part() -> Any:
    return Net(lambda m, v: m.b(m.a(v).detach())), (x(),), total


@case
def no_grad_part() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            v = m.a(v)
        return m.b(v)

    return Net(run), (x(),), total


@case
def no_parameters() -> Any:
    return nn.ReLU(), (x().requires_grad_(),), total


@case
def all_frozen() -> Any:
    return nn.Linear(4, 4).requires_grad_(False), (x().requires_grad_(),), total


def reentrant(module: nn.Module, v: torch.Tensor) -> torch.Tensor:
    return checkpoint(module, v, use_reentrant=True)


@case
def reentrant_once() -> Any:
    return Net(lambda m, v: reentrant(m.b, m.a(v))), (x(),), total


@case
def reentrant_twice() -> Any:
    return Net(lambda m, v: reentrant(m.b, reentrant(m.b, m.a(v)))), (x(),), total


@case
def reentrant_shared_with_plain() -> Any:
    return Net(lambda m, v: reentrant(m.b, m.b(m.a(v)))), (x(),), total


@case
def reentrant_no_input_grad() -> Any:
    return Net(lambda m, v: m.b(reentrant(m.a, v))), (x(),), total


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
def reentrant_and_unused() -> Any:
    return Net(lambda m, v: reentrant(m.b, m.a(v)), c=nn.Linear(4, 4)), (x(),), total


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
def layer_used_twice() -> Any:
    return Net(lambda m, v: m.b(m.b(m.a(v)))), (x(),), total


@case
def returns_own_parameter() -> Any:
    net = Net(lambda m, v: (m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4)))
    return net, (x(),), lambda o: o[0].sum() + o[1].sum()


@case
def returns_own_parameter_unused() -> Any:
    net = Net(lambda m, v: (m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4)))
    return net, (x(),), first


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
def devices_cpu_and_meta() -> Any:
    return Net(lambda m, v: m.b(m.a(v)), c=nn.Linear(4, 4, device="meta")), (x(),), total


@case
def lazy_layer() -> Any:
    return nn.Sequential(nn.LazyLinear(4)), (x(),), total


@case
def sparse_embedding() -> Any:
    return nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 4)), (torch.arange(4),), total


@case
def sparse_embedding_unused() -> Any:
    return Net(lambda m, v: m.b(m.a(v)), e=nn.Embedding(9, 4, sparse=True)), (x(),), total


@case
def sparse_gradient_elsewhere() -> Any:
    def run(m: Any, v: torch.Tensor) -> torch.Tensor:
        return m.b(m.a(F.embedding(v, m.w, sparse=True)))

    return Net(run, w=nn.Parameter(torch.randn(9, 4))), (torch.arange(4),), total


@case
def sparse_tied_to_dense() -> Any:
    net = Net(lambda m, v: m.b(m.a(m.e(v))) @ m.e.weight.t(), e=nn.Embedding(9, 4, sparse=True))
    return net, (torch.arange(4),), total


@case
def complex_parameter() -> Any:
    w = nn.Parameter(torch.ones(4, dtype=torch.complex64))
    return Net(lambda m, v: (m.b(m.a(v)) * m.w).abs(), w=w), (x(),), total


@case
def complex_unused() -> Any:
    w = nn.Parameter(torch.ones(4, dtype=torch.complex64))
    return Net(lambda m, v: m.b(m.a(v)), w=w), (x(),), total


@case
def integer_parameter() -> Any:
    w = nn.Parameter(torch.ones(4, dtype=torch.int64), requires_grad=False)
    return Net(lambda m, v: m.b(m.a(v)) * m.w, w=w), (x(),), total


class NoneForWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return v * w

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None


@case
def function_returns_none() -> Any:
    net = Net(lambda m, v: NoneForWeight.apply(m.b(m.a(v)), m.w), w=nn.Parameter(torch.ones(4)))
    return net, (x(),), total


@case
def multiplied_by_zero() -> Any:
    return Net(lambda m, v: m.a(v) + 0.0 * m.b(v)), (x(),), total


@case
def loss_reaches_no_parameter() -> Any:
    net = Net(lambda m, v: (m.b(m.a(v)), v * 2))
    return net, (x().requires_grad_(),), lambda o: o[1].sum()


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
def syncbn_on_cpu() -> Any:
    return nn.Sequential(nn.Linear(4, 4), nn.SyncBatchNorm(4)), (x(),), total


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


@case
def unused_in_last_of_three() -> Any:
    net = Net(lambda m, v, f: m.b(m.a(v)) if f else m.a(v))
    return net, [(x(), True), (x(), True), (x(), False)], total


@case
def named_batches() -> Any:
    net = Net(lambda m, v, scale: m.a(v) * scale)
    return net, [{"v": x(), "scale": 2.0}, {"v": x(), "scale": 1.0}], total


@case
def own_loss() -> Any:
    return Net(lambda m, v: {"loss": m.a(v).sum(), "logits": m.b(v)}), (x(),), None
