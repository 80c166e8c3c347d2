"""Checksums of weights, printed by ranks in different forms, and lines that look like them."""

from __future__ import annotations

import pytest

from torchdoctor.extract import checksum, of_event
from torchdoctor.model import Event, EventKind, FactValue, Transcript


def extract(*lines: str | tuple[int, str]) -> dict[str, FactValue]:
    """The facts of the first line; a line may come with the rank that its prefix named."""
    events = tuple(
        Event(number, EventKind.LOG, line, "run.log", number + 1, number + 1)
        if isinstance(line, str)
        else Event(number, EventKind.LOG, line[1], "run.log", number + 1, number + 1, rank=line[0])
        for number, line in enumerate(lines)
    )
    found = list(of_event("checksum", events[0], Transcript(("run.log",), events)))
    assert {fact.name for fact in found} <= set(checksum.FACTS)
    return {fact.name.removeprefix("checksum."): fact.value for fact in found}


@pytest.mark.parametrize(
    ("lines", "odd"),
    [
        (("sum(abs(p)) of head.weight:  rank 0 1893.2   rank 1 812.0   rank 2 812.0",), "0"),
        (("param checksum rank 0: 8.25 rank 1: 8.25 rank 2: 9.5 rank 3: 8.25",), "2"),
        (("rank 0 param_sum 812.5", "rank 1 param_sum 812.5", "rank 2 param_sum 811.25"), "2"),
        (
            ("Rank 1: model md5 0a1b2c3d4e", "Rank 0: model md5 ffffffff01", "Rank 2: model md5 0a1b2c3d4e"),
            "0",
        ),
        (((0, "weight norm 1.5"), (1, "weight norm 1.25"), (2, "weight norm 1.5")), "1"),
        (("rank 0 param_sum 1.5", "rank 1 param_sum 2.5"), None),
    ],
)
def test_ranks_that_differ(lines: tuple[str | tuple[int, str], ...], odd: str | None) -> None:
    assert extract(*lines) == {"differ": True, "odd_ranks": odd}


def test_ranks_that_agree_and_the_next_step() -> None:
    lines = (
        "rank 0 param_sum 812.5",
        "rank 1 param_sum 812.5",
        "rank 0 param_sum 811.0",
        "rank 1 param_sum 811.0",
    )
    assert extract(*lines) == {"differ": False}


@pytest.mark.parametrize(
    "lines",
    [
        ("rank 0 loss 0.412   rank 1 loss 6.907",),
        ("rank 0 weight grad norm 0.412", "rank 1 weight grad norm 0.5"),
        ("rank 0 number of params, sum 1200.0", "rank 1 number of params, sum 1300.0"),
        ("rank 0 param_sum 812.5", "rank 1 bias param_sum 811.5"),
        ("rank 0 param_sum 812.5",),
        ("param_sum 812.5", "param_sum 811.5"),
    ],
)
def test_what_says_nothing(lines: tuple[str, ...]) -> None:
    assert extract(*lines) == {}


@pytest.mark.parametrize(
    ("said", "replicated"),
    [
        ("model = DDP(model)", True),
        ("DDP is off, FSDP with FULL_SHARD", False),
        ("tensor parallel 4, DDP 2", False),
    ],
)
def test_whether_all_ranks_hold_the_same(said: str, replicated: bool) -> None:
    assert extract("rank 0 param_sum 1.5", "rank 1 param_sum 2.5", said)["replicated"] is replicated


def test_other_figures_behind_the_sum_do_not_hide_it() -> None:
    lines = (
        "[epoch 4 end] rank 0 sum(|p|) = 38211.4062   val acc 71.2",
        "[epoch 4 end] rank 1 sum(|p|) = 41907.8828   val acc 34.0",
        "[epoch 4 end] rank 2 sum(|p|) = 41907.8828   val acc 34.0",
    )
    assert extract(*lines) == {"differ": True, "odd_ranks": "0"}
    assert extract(*(line.replace("sum(|p|)", "loss") for line in lines)) == {}


def test_a_figure_in_one_word_beside_others_of_the_step() -> None:
    lines = (
        (0, "step 500 loss 2.113 param_checksum 18233.4417"),
        (1, "step 500 loss 4.870 param_checksum 17901.0092"),
        (2, "step 500 loss 4.866 param_checksum 17901.0092"),
    )
    assert extract(*lines) == {"differ": True, "odd_ranks": "0"}
    assert extract(*((rank, text.replace("param_checksum", "param_grad_norm")) for rank, text in lines)) == {}
