"""Figures of questions in which nothing raised: norms that vanish, terms that break off, poor regressions."""

from __future__ import annotations

import pytest

from tests.extract.test_shown_values import facts, passage
from torchdoctor.extract.readings.breaking_off import last_finite
from torchdoctor.extract.readings.grad_norms import norms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Epoche 1 ||grad|| 3.84\nEpoche 2 ||grad|| 0.00", [3.84, 0.0]),
        ("ep 0 loss 0.6 (gnorm 1.22) val 0.6\nep 1 loss 0.5 (gnorm 0.000) val 0.6", [1.22, 0.0]),
        ("| ep | grad_norm |\n|---|---|\n| 1 | 2.71 |\n| 2 | 0.0 |", [2.71, 0.0]),
        # two columns are two runs, and no series
        (
            "| part | grad norm, plain | grad norm, ckpt |\n|---|---|---|\n| a | 0.4 | 0.4 |\n| b | 1 | 1 |",
            [],
        ),
        ("epoch 1 loss 0.6\nepoch 2 loss 0.5", []),
    ],
)
def test_norms_of_gradients(text: str, expected: list[float]) -> None:
    assert [value for value, _ in norms(passage(text))] == expected


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "pas 20 rec=0.3 ent=0.1\npas 30 rec=0.2 ent=0.1\npas 40 rec=nan ent=nan\npas 50 rec=nan ent=nan",
            "40",
        ),
        ("t  a    b\n1  0.1  0.2\n2  0.3  9.9\n3  nan  nan\n4  nan  nan", "3"),
        ("my losses, what is wrong?\n\n[2.3, 2.2, 4.8, 61.2, 18233.7, inf, nan]", "inf"),
        # a metric of a class without samples
        ("ep 1 iou_a 0.8 iou_b nan\nep 2 iou_a 0.8 iou_b nan\nep 3 iou_a 0.9 iou_b nan", None),
        # one step that was skipped
        ("s 1 a 0.1 b 0.2\ns 2 a 0.1 b 0.2\ns 3 a nan b nan\ns 4 a 0.1 b 0.2", None),
        ("my losses, are they fine?\n\n[2.3, 1.2, 0.8, 0.7, 0.6]", None),
    ],
)
def test_figures_that_break_off(text: str, first: str | None) -> None:
    line = last_finite(passage(text))
    assert (line is None) == (first is None)
    assert line is None or (first or "") in line.text


_WARNED = (
    "loss.py:530: UserWarning: Using a target size (torch.Size([256])) that is different to the input size "
    "(torch.Size([256, 1])). This will likely lead to incorrect results due to broadcasting.\n"
)


@pytest.mark.parametrize(
    ("text", "poor"),
    [
        ("ep 10 val r2 -0.0004\nep 20 val r2 0.0001\nbaseline r2 0.87\n", True),
        ("My net predicts the same number for every house.\n", True),
        ("ep 10 val r2 0.41\nep 20 val r2 0.63\n", False),
        ("It takes two hours for each epoch on my laptop.\n", False),
    ],
)
def test_a_regression_that_predicts_the_mean(text: str, poor: bool) -> None:
    found = facts("broadcast_loss", _WARNED + text)
    assert found["warned"] is True
    assert ("poor" in found) == poor


def test_without_the_warning_nothing_is_said() -> None:
    assert facts("broadcast_loss", "ep 10 val r2 -0.0004\nep 20 val r2 0.0001\n") == {}


def test_a_process_that_is_gone_holds_memory() -> None:
    asked = "训练被我 kill 掉了,显存一直不释放,有没有别的办法?\n\n"
    row = "$ nvidia-smi --query-compute-apps=pid,used_memory --format=csv\npid, used_gpu_memory [MiB]\n"
    row += "1284410, 10142 MiB\n$ kill -9 1284410\n"
    gone = "-bash: kill: (1284410) - No such process\n"
    assert "gone" in facts("held_memory", asked + row + gone)["holder"]
    assert (
        "gone" in facts("held_memory", asked + row + "kill: kill 1284410 failed: no such process\n")["holder"]
    )
    assert facts("held_memory", asked + row).get("holder") is None
    assert facts("held_memory", asked + row + gone.replace("1284410", "1284499")).get("holder") is None
    assert facts("held_memory", asked + row.replace("10142", "512") + gone).get("holder") is None
    assert facts("held_memory", "It is in a docker container.\n" + asked + row + gone).get("holder") is None
