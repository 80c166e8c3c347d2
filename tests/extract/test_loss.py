"""Losses that are not a number, in the formats of different programs, and look-alikes."""

from __future__ import annotations

import pytest

from torchdoctor.extract import loss, of_event
from torchdoctor.model import Event, EventKind, FactValue, Transcript


def extract(text: str) -> dict[str, FactValue]:
    event = Event(0, EventKind.LOG, text, "run.log", 1, 1)
    found = list(of_event("loss", event, Transcript(("run.log",), (event,))))
    assert {fact.name for fact in found} <= set(loss.FACTS)
    return {fact.name.removeprefix("loss."): fact.value for fact in found}


@pytest.mark.parametrize(
    "text",
    [
        "step 5 loss: nan",
        "Speed 2178.40 samples/sec   Loss nan   LearningRate 0.001000",
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-5}",
        '{"loss": NaN, "epoch": 1}',
        "epoch 1 train_loss=inf",
        "loss tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)",
        " 10%|#  | 2/20 [00:01<00:02, 3it/s, loss=nan, v_num=0]",
        "loss_cls: 3.1, loss_bbox: nan",
        "total_word=29310 ppl=nan",
        "total_loss -> nan",
        "Loss_D: 0.31 Loss_G: nan",
        "lossD=nan",
        "     1/299     5.31G       nan       nan       nan        71       640: 100%|###| 110/110",
    ],
)
def test_a_loss_that_is_no_number(text: str) -> None:
    assert extract(text) == {"not_a_number": True}


@pytest.mark.parametrize(
    "text",
    [
        "     1/299     5.31G    0.1021   0.06512   0.04411        71       640: 100%|###| 110/110",
        "number of nan iterations: 0",
        "best_loss: inf",
        "Validation loss decreased (inf --> 0.31)",
        "val_loss improved from inf to 0.2",
        "loss_scale inf --> 65536",
        "MeanSquaredError: 0.01",
        "skip_nan_loss: True",
        "loss nan_count=0",
        "loss: nano",
        "loss: 0.3, info: nan",
        "finance loss 3.2",
    ],
)
def test_look_alikes(text: str) -> None:
    assert extract(text) == {}
