"""Big logs: makes them, and measures ``explain`` on them against ripgrep and for its peak memory.

    python benchmarks/big_logs.py make FILE --megabytes 500     # an interleaved log of 64 ranks
    python benchmarks/big_logs.py folder DIR --ranks 1024 --megabytes 4
    python benchmarks/big_logs.py compare FILE                  # wall time beside rg -j1 -c -F -f TRIGGERS
    python benchmarks/big_logs.py memory FILE|DIR…              # peak resident memory of explain

All made logs are the same for the same arguments. ``compare`` takes the better of several runs of each
program, in turns, in one go; with ``--limit`` it ends with 1 when the ratio is above it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANKS = 64
GPUS = 8
START = 1_700_000_000
WARNING = (
    "/opt/env/lib/python3.11/site-packages/torch/utils/checkpoint.py:85: UserWarning: None of the inputs have "
    "requires_grad=True. Gradients will be None",
    "  warnings.warn(",
)
FAILURE = (
    "Traceback (most recent call last):",
    '  File "/opt/job/train.py", line 412, in <module>',
    "    main()",
    '  File "/opt/job/train.py", line 388, in main',
    "    loss = criterion(model(images), labels)",
    '  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1773, in _wrapped_call_impl',
    "    return self._call_impl(*args, **kwargs)",
    '  File "/opt/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3458, in cross_entropy',
    "    return torch._C._nn.cross_entropy_loss(",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of "
    "79.15 GiB of which 1.04 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory in use. "
    "Of the allocated memory 74.52 GiB is allocated by PyTorch, and 2.11 GiB is reserved by PyTorch but "
    "unallocated.",
)


def clock(second: float) -> str:
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
    return f"{whole},{int(second % 1 * 1000):03d}"


def begin(ranks: Sequence[int], tag: bool) -> Iterator[str]:
    """What the ranks print before the first step."""
    for rank in ranks:
        head = f"[rank{rank}]: " if tag else ""
        host = f"node-{rank // GPUS:03d}"
        local = rank % GPUS
        yield f"{head}{host}:{4100 + local}:{4100 + local} [{local}] NCCL INFO Bootstrap: Using eth0:10.0.0.{rank // GPUS}<0>"
        for channel in range(4):
            yield (
                f"{head}{host}:{4100 + local}:{4200 + local} [{local}] NCCL INFO Channel {channel:02d}/0 : "
                f"{rank}[{local}] -> {(rank + 1) % RANKS}[{(local + 1) % GPUS}] via P2P/CUMEM"
            )
        for line in WARNING:
            yield head + line


def steps(rng: random.Random, ranks: Sequence[int], tag: bool) -> Iterator[list[str]]:
    """The lines of one training step after the other, all ranks of it, without end."""
    second = float(START)
    number = 0
    while True:
        number += 1
        second += 0.8
        lines = []
        loss = 11.0 / (1 + number / 400) + rng.random()
        stamp = clock(second)[:-3]
        for rank in ranks:
            head = f"[rank{rank}]: " if tag else ""
            lines.append(
                f"{head}{stamp}{rng.randrange(1000):03d} - INFO - train - step {number:7d} | epoch {number // 5000:3d} | "
                f"loss {loss + rng.random() / 50:.4f} | grad norm {rng.random() * 3:.3f} | lr 3.00e-04 | "
                f"tokens/s {50_000 + rng.randrange(4000)} | mem {60 + rng.random() * 4:.2f} GiB"
            )
        rng.shuffle(lines)
        if number % 50 == 0:
            done = number % 5000 // 50
            bar = "█" * (done // 4)
            head = "[rank0]: " if tag else ""
            lines.append(
                f"{head}Training: {done:3d}%|{bar:<25}| {number}/100000 [{number // 75:02d}:12<1:02:33, 1.25it/s]"
            )
        if number % 1000 == 0:
            head = f"[rank{ranks[0]}]: " if tag else ""
            lines.append(
                f"{head}{stamp}001 - INFO - checkpoint - saving checkpoint to /data/run/step_{number}.pt"
            )
        if number % 2000 == 7:
            head = f"[rank{rng.choice(ranks)}]: " if tag else ""
            lines.append(
                f"{head}{stamp}002 - WARNING - loader - slow batch: {rng.random() * 9:.2f} s of waiting for data"
            )
        yield lines


def fail(rank: int, tag: bool) -> Iterator[str]:
    head = f"[rank{rank}]: " if tag else ""
    for line in FAILURE:
        yield head + line


def echo(ranks: Sequence[int], tag: bool) -> Iterator[str]:
    """What other ranks print once one is gone."""
    for rank in ranks:
        head = f"[rank{rank}]:" if tag else ""
        yield (
            f"{head}[E1114 22:13:20.{rank:06d}000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=88123, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
            "Timeout(ms)=600000) ran for 600047 milliseconds before timing out."
        )


def write_log(path: Path, size: int, ranks: Sequence[int] = range(RANKS), tag: bool = True, seed: int = 7,
              failing: int | None = 13) -> None:  # fmt: skip
    """A log of at least ``size`` bytes; ``failing`` runs out of memory in the middle of its last hundredth."""
    rng = random.Random(seed)
    written = 0
    failed = failing is None or failing not in ranks
    with path.open("w", encoding="utf-8") as file:
        written += file.write("\n".join(begin(ranks, tag)) + "\n")
        for lines in steps(rng, ranks, tag):
            if not failed and written > size * 0.6:
                failed = True
                assert failing is not None
                lines = [
                    line for group in zip_longest_lines(lines, list(fail(failing, tag))) for line in group
                ]
            written += file.write("\n".join(lines) + "\n")
            if written >= size:
                break
        if failing is not None and len(ranks) > 1:
            file.write("\n".join(echo([rank for rank in ranks if rank != failing][:6], tag)) + "\n")


def zip_longest_lines(lines: list[str], others: list[str]) -> Iterator[list[str]]:
    """Two lists of lines, shuffled into each other one by one."""
    for index in range(max(len(lines), len(others))):
        yield [*lines[index : index + 1], *others[index : index + 1]]
