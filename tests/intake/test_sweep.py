"""Searches over trials: what some of them raised and was caught, and what ended the search."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.model import Ending, EventKind

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.78 GiB."
TRACE = (
    f'Traceback (most recent call last):\n  File "/srv/hpo.py", line 88, in run\n    y = model(x)\n{OOM}\n'
)
DONE = (
    "[I 2025-02-11 08:37:02,388] Trial 4 finished with value: 0.94 and parameters: {'d': 7}. "
    "Best is trial 4 with value: 0.94.\n"
)
LOST = (
    "[W 2025-02-11 08:30:21,734] Trial 3 failed with parameters: {'d': 9} because of the "
    "following error: OutOfMemoryError('CUDA out of memory').\n"
)


def open_failures(text: str) -> list[str]:
    return [
        event.text
        for event in read_text(text).events
        if ("out of memory" in event.text or event.kind is EventKind.EXCEPTION)
        and not (event.recovered or event.quoted)
    ]


WELL = {
    "optuna": f"{DONE}{LOST}{TRACE}{DONE}Best trial 4, value 0.94\n",
    "no trial behind it": f"{DONE}{LOST}{TRACE}Best params: {{'d': 7}}\n",
    "without a stack": f"{DONE}{LOST}{DONE}best value: 0.94\n",
    "ray": f"2024-10-02 07:41:12,553\tERROR tune_controller.py:1331 -- Trial task failed for trial "
    f"t_00002\n{TRACE}"
    "2024-10-02 07:41:12,570\tINFO tune_controller.py:1470 -- attempting restore of t_00002\n"
    "restored from checkpoint_000006\nTrial status: 4 TERMINATED\n",
    "of one's own": f"config 1/3: acc 0.71\nconfig 2/3: FAILED ({OOM})\nconfig 3/3: acc 0.74\nbest "
    f"config: 3 with acc 0.74\n",
    "German": f"Lauf 1: val 0.71\nLauf 2 fehlgeschlagen: {OOM}\nLauf 3: val 0.74\nBester Lauf: 3 "
    f"(val 0.74)\n",
}


@pytest.mark.parametrize("name", WELL)
def test_what_a_search_caught_is_no_failure(name: str) -> None:
    assert open_failures(WELL[name]) == []
    assert read_text(WELL[name]).ending is not Ending.BAD


BADLY = {
    "no result": f"{DONE}{LOST}{TRACE}",
    "the exception goes on": f"{DONE}{LOST}{TRACE}{TRACE}",
    "none is the best": f"{LOST}{TRACE}Best value: nan\n",
    "no trial came to its end": f"{LOST}{TRACE}Best config: 3\n",
    "something else behind it": f"{DONE}{LOST}{TRACE}{DONE}Best trial 4, value 0.94\nrefit\nepoch "
    f"1\nepoch 2\n{TRACE}",
    "trials with errors": f"{DONE}{LOST}{TRACE}Trial status: 2 ERROR | 1 TERMINATED\nBest config: 3\n",
    "the last of a loop": f"config 1/3: acc 0.71, best so far\n{TRACE}",
}


@pytest.mark.parametrize("name", BADLY)
def test_what_ended_a_search_is_a_failure(name: str) -> None:
    assert open_failures(BADLY[name])
