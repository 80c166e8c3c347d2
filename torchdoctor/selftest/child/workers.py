"""Processes around a training run: DataLoader workers through shared memory, and fork and spawn with tensors.

Topics: dataloader, fork-spawn.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, Unclear, run

ITEMS, BATCH, LENGTH = 24, 4, 1 << 18  # batches of 4 MiB
WAIT_S = 60.0


class Numbers:
    """A data set whose every item can be told from all others; spoilt ones hold a wrong number."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> Any:
        if self.fault == "worker-killed" and index == 9:
            os.kill(os.getpid(), 9)
        item = torch.full((LENGTH,), float(index))
        if self.fault == "one-element" and index == 7:
            item[1234] += 1
        return item


def loader(bench: Bench, workers: int, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        raise Lacking(f"this system has no {method}")
    data: Any = Numbers(bench.fault)
    batches: Any = torch.utils.data.DataLoader(
        data,
        batch_size=BATCH,
        num_workers=workers,
        timeout=WAIT_S,
        multiprocessing_context=method,
    )
    wrong, where, seen = 0, "", 0
    for number, batch in enumerate(batches):
        wanted = torch.arange(number * BATCH, (number + 1) * BATCH, dtype=torch.float32)[:, None]
        apart = (batch != wanted).nonzero()
        if len(apart) and not where:
            where = f"item {number * BATCH + int(apart[0, 0])}, element {int(apart[0, 1])}"
        wrong += len(apart)
        seen += len(batch)
    wrong += abs(ITEMS - seen)
    bench.exact(f"dataloader, {method}", wrong, "what the data set holds", where)


def answer(given: Any, back: Any, received: Any, spoilt: bool) -> None:
    """In the other process: twice what was given. It must live until its tensor has been received."""
    torch.set_num_threads(1)
    back.put(given * 2 + (1 if spoilt else 0))
    received.wait(WAIT_S)


def there_and_back(bench: Bench, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        raise Lacking(f"this system has no {method}")
    import queue

    import torch.multiprocessing

    context: Any = torch.multiprocessing.get_context(method)
    given = torch.arange(1 << 16, dtype=torch.float32)
    back = context.Queue()
    received = context.Event()
    spoilt = bench.fault == "one-element"
    process = context.Process(target=answer, args=(given, back, received, spoilt))
    process.start()
    try:
        got = back.get(timeout=WAIT_S).clone()
    except queue.Empty:
        raise Unclear(f"no answer within {WAIT_S:.0f} s, exit code {process.exitcode}") from None
    finally:
        received.set()
        process.join(5)
        if process.is_alive():
            process.kill()
    bench.exact(f"process, {method}", int((got != given * 2).sum()), "twice what was sent")


def check(bench: Bench) -> None:
    if bench.about("dataloader"):
        bench.attempt("dataloader, fork", loader, bench, 2, "fork")
    if bench.about("fork-spawn"):
        for method in ("fork", "spawn"):
            bench.attempt(f"process, {method}", there_and_back, bench, method)


if __name__ == "__main__":
    run(check)
