"""The caller's model and process after a check: as they were."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.ddp.zoo import ZOO  # noqa: E402
from torchdoctor import ddp  # noqa: E402

# as a program of the user's runs: torch warns of much, and here alone that would be an error
pytestmark = pytest.mark.filterwarnings("ignore")


class Restless(nn.Module):
    """Changes everything it can reach, then may raise."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails
        self.a = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1d(4)
        self.drop = nn.Dropout()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("table", torch.zeros(300_000))
        self.calls = 0
        self.log: list[int] = []
        self.cache: dict[str, Any] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.log.append(1)
        self.cache["x"] = x
        self.last = x
        self.seen += 1
        self.table.add_(1)
        with torch.no_grad():
            self.a.weight.mul_(2)
            self.a.bias.data.fill_(7)
        x.mul_(3)
        random.random()
        torch.rand(3)
        self.drop.eval()
        self.bn.weight.requires_grad_(False)
        self.extra = nn.Parameter(torch.ones(4))
        self.register_buffer("late", torch.ones(1))
        self.add_module("more", nn.Linear(4, 4))
        self.register_forward_hook(lambda *_: None)
        self.a.bias.register_hook(lambda grad: None)
        if self.fails:
            torch.set_grad_enabled(False)
            raise ValueError("as planned")
        return self.drop(self.bn(self.a(x))) * self.extra


@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_put_back(fails: bool) -> None:
    numpy = pytest.importorskip("numpy")
    model = Restless(fails)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    identities = {name: id(value) for name, value in model.named_parameters()}
    addresses = {name: value.data_ptr() for name, value in model.named_parameters()}
    grads = {name: torch.full_like(p, 5.0) for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        p.grad = grads[name]
    fired: list[str] = []
    model.a.weight.register_hook(lambda grad: fired.append("tensor"))
    model.a.weight.register_post_accumulate_grad_hook(lambda p: fired.append("after"))
    flags = {
        name: (m.training, dict(m._forward_hooks), dict(m._forward_pre_hooks))
        for name, m in model.named_modules()
    }
    attributes = set(model.__dict__)
    x = torch.randn(4, 4)
    kept = x.clone()
    states = (torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].copy())

    report = ddp.check(model, [(x,), (x,)], lambda out: out.sum())

    assert any(one.id == "ddp-model-raises" for one in report.checks) == fails
    assert torch.is_grad_enabled()
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == numpy.random.get_state()[1]).all()
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert {name: id(value) for name, value in model.named_parameters()} == identities
    assert {name: value.data_ptr() for name, value in model.named_parameters()} == addresses
    assert all(p.grad is grads[name] and (p.grad == 5).all() for name, p in model.named_parameters())
    assert all(p.requires_grad for p in model.parameters())
    assert fired == []
    assert list(model.a.weight._backward_hooks or ())
    assert list(model.a.weight._post_accumulate_grad_hooks or ())
    assert not model.a.bias._backward_hooks
    assert flags == {
        name: (m.training, dict(m._forward_hooks), dict(m._forward_pre_hooks))
        for name, m in model.named_modules()
    }
    assert set(model.__dict__) == attributes
    assert (model.calls, model.log, model.cache) == (0, [], {})
    assert torch.equal(x, kept)
    model.a(x).sum().backward()
    assert fired == ["tensor", "after"]  # the user's hooks work as before


@pytest.mark.parametrize("name", ZOO)
def test_zoo_is_left_alone(name: str) -> None:
    model, inputs, loss_fn = ZOO[name]()
    lazy = name == "lazy_layer"
    before = {} if lazy else {key: value.clone() for key, value in model.state_dict().items()}
    trainable = [p.requires_grad for p in model.parameters()]
    first = ddp.check(model, inputs, loss_fn)
    assert [p.requires_grad for p in model.parameters()] == trainable
    assert all(p.grad is None for p in model.parameters())
    if not lazy:
        after = model.state_dict()
        assert list(after) == list(before)
        assert all(v.is_meta or torch.equal(v, before[k]) for k, v in after.items())
    assert ddp.check(model, inputs, loss_fn) == first  # and a second look sees the same


def test_gradients_of_inputs_and_of_other_leaves_are_left_alone() -> None:
    scale = torch.ones(4, requires_grad=True)
    x = torch.randn(4, 4, requires_grad=True)
    x.grad = torch.full_like(x, 2.0)
    ddp.check(nn.Linear(4, 4), (x,), lambda out: (out * scale).sum())
    assert scale.grad is None
    assert x.grad is not None
    assert (x.grad == 2).all()


def test_meta_model_is_checked_without_memory() -> None:
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(4)])
        x = torch.empty(1, 16384)
    assert sum(p.numel() for p in model.parameters()) > 1_000_000_000
    report = ddp.check(model, (x,), lambda out: out.sum())
    assert [one.verdict.value for one in report.checks] == ["pass"]


def test_gradients_never_stand_in_memory_together() -> None:
    alive: list[int] = []
    model = nn.Sequential(*[nn.Linear(8, 8, bias=False) for _ in range(6)])
    for layer in model:
        layer.register_full_backward_hook(
            lambda *_: alive.append(sum(p.grad is not None for p in model.parameters()))
        )
    ddp.check(model, (torch.randn(2, 8, requires_grad=True),), lambda out: out.sum())
    assert len(alive) == 6
    assert max(alive) <= 1
