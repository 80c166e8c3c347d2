"""Each finding of the issue's kind, on a model that has just that, with the place named."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from torchdoctor import ddp  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Two(nn.Module):
    def __init__(self, second: str = "cpu") -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3, device=second)


class BothOut(Two):
    def forward(self, x: Any) -> Any:
        return self.a(x), self.b(x)


class FirstOnly(Two):
    def forward(self, x: Any) -> Any:
        return self.a(x)


class Branch(Two):
    def forward(self, x: Any) -> Any:
        return self.b(x) if x.sum() > 0 else self.a(self.b(x))


class Reentrant(Two):
    def forward(self, x: Any) -> Any:
        x = x.requires_grad_()
        twice = checkpoint(self.a, checkpoint(self.a, x, use_reentrant=True), use_reentrant=True)
        return self.b(twice)


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.a(x)


class Decays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.a.weight.mul_(0.9)
        return self.a(x)


def found(model: Any, *batches: Any, loss: Any = None) -> dict[str, str]:
    """Findings at or above a warning: id -> all that is said of it."""
    loss = loss or (lambda out: out.square().mean())
    report = ddp.check(model, [(batch,) for batch in batches], loss)
    return {
        one.id: " ".join([one.observed or "", *(item.text for item in one.evidence)])
        for one in report.checks
        if one.verdict.value in ("fail", "warn")
    }


X = torch.ones(4, 3)


def test_an_output_that_does_not_reach_the_loss() -> None:
    told = found(BothOut(), X, loss=lambda out: out[0].mean())
    assert "outputs[1]" in told["ddp-output-unused"]
    assert "b.weight" in told["ddp-unused-parameters"]


def test_parameters_that_ddp_raises_on_are_told_once_and_with_the_advice_for_them() -> None:
    report = ddp.check(FirstOnly(), [(X,), (X,)], lambda out: out.mean())
    assert [one.id for one in report.checks if "b.weight" in (one.observed or "")] == [
        "ddp-unused-parameters"
    ]
    (action,) = (one.action or "" for one in report.checks if one.id == "ddp-unused-parameters")
    assert "No batch gave them a gradient" in action
    assert "find_unused_parameters" not in action


def test_branches_that_leave_parameters_out_in_some_batches() -> None:
    told = found(Branch(), X, -X)
    assert "a.weight (no gradient in batch 1)" in told["ddp-branch"]
    assert "b.weight" not in told["ddp-branch"]


def test_a_parameter_used_twice_under_reentrant_checkpointing() -> None:
    told = found(Reentrant(), X)
    assert "a.weight" in told["ddp-ready-twice"]
    assert "b.weight" not in told["ddp-ready-twice"]


def test_a_buffer_changed_in_forward_and_left_as_it_was() -> None:
    model = Counts()
    assert "count" in found(model, X)["ddp-buffers"]
    assert model.count.item() == 0


def test_a_parameter_changed_in_place_and_left_as_it_was() -> None:
    model = Decays()
    before = model.a.weight.clone()
    assert "a.weight" in found(model, X)["ddp-parameters-diverged"]
    assert torch.equal(model.a.weight, before)


def test_a_model_without_parameters_to_train() -> None:
    assert "ddp-no-grad-params" in found(nn.Sequential(nn.ReLU()), X)


def test_parameters_on_several_devices() -> None:
    assert "b.weight" in found(FirstOnly("meta"), X)["ddp-parameters-on-devices"]


def test_batch_norm_with_a_batch_of_one() -> None:
    assert "batchnorm-one-value" in found(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), X[:1])


def test_a_sound_model_has_no_finding() -> None:
    assert found(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), X, -X) == {}
