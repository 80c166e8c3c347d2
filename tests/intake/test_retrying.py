"""Failures that a program caught and went on from, and those after which only others speak."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.model import Ending, EventKind

RAISED = (
    'Traceback (most recent call last):\n  File "/srv/app/run.py", line 88, in attempt\n'
    "    out = model(batch)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.78 GiB.  See documentation for Memory "
    "Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n"
)


def recovered(above: str, *below: str) -> bool:
    text = f"{above}\n{RAISED}" + "".join(f"{line}\n" for line in below)
    read = read_text(text)
    (raised,) = (event for event in read.events if event.kind is EventKind.EXCEPTION)
    assert raised.recovered == (read.ending is Ending.GOOD)
    return raised.recovered


CAUGHT = {
    "another size": ("tile size 1024 too big, trying again with 512", "tile 512: 16 tiles", "saved up.png"),
    "another batch": (
        "WARNING:root:batch 64 did not fit",
        "INFO:root:batch 32",
        "INFO:root:checkpoint saved",
    ),
    "a probe": ("probe bs=256 failed, see below", "probe bs=128 fits (peak 17.2 GiB)", "val acc 0.913"),
    "requeued": (
        "2024-05-01 10:00:00,000 ERROR worker: job 7 failed on gpu 0, requeued",
        "2024-05-01 10:00:05,000 INFO worker: job 7 moved to gpu 1",
        "2024-05-01 10:07:41,000 INFO worker: job 7 result uploaded",
    ),
    "another device": ("caught, will use the CPU:", "device: cpu", "frame 1/240", "frame 240/240"),
    "a sample": ("error ignored, skipping sample 1042", "[1043/5000] 0.31s", "[5000/5000] 0.30s"),
    "an attempt like it": ("attempt 1: batch 128 failed", "attempt 2: batch 64", "attempt 2 ok", "step 1/9"),
    "a smaller one below": (
        "epoch 3 step 10 loss 1.2",
        "reducing batch size to 8",
        "step 11 loss 1.1",
        "step 12/90",
    ),
}


@pytest.mark.parametrize("lines", CAUGHT.values(), ids=CAUGHT)
def test_what_was_caught(lines: tuple[str, ...]) -> None:
    assert recovered(*lines)


LOST = {
    "nothing behind": ("epoch 3 step 200 loss 1.2",),
    "loggers": ("epoch 3 step 200 loss 1.2", "closing writers", "wandb: run summary:", "wandb: loss 1.2"),
    "given up": ("trying batch 64", "trying batch 32", "giving up"),
    "all attempts": ("retry 1/3", "retry 2/3", "retry 3/3", "all attempts failed"),
    "the next test": ("test_big ... FAILED", "test_small skipped 1/2", "2 passed, 1 error in 3.3s"),
    "a task that will be retried": (
        "{taskinstance.py:2699} ERROR - Task failed with exception",
        "{taskinstance.py:1138} INFO - Marking task as UP_FOR_RETRY. task_id=score",
    ),
    "somebody who tells": ("running fit.py", "It crashes in fit.py line 12, with any batch size."),
    "the next request": ('level=error msg="predict failed"', "level=info msg=ok"),
}


@pytest.mark.parametrize("lines", LOST.values(), ids=LOST)
def test_what_was_not(lines: tuple[str, ...]) -> None:
    assert not recovered(*lines)


def test_the_kernels_that_torch_lists_are_no_other_way() -> None:
    listed = (
        "CPU: registered at /torch/op.cpp:412 [kernel]",
        "CUDA: fell back, registered at /torch/op.cu:1/2",
    )
    assert not recovered("running the quantized model", *listed)
