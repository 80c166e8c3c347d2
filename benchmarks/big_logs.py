"""Big logs: makes them, and measures ``explain`` on them, against ripgrep and for its peak memory.

    python benchmarks/big_logs.py make FILE --megabytes 500     # one log, interleaved by 64 ranks
    python benchmarks/big_logs.py mix FILE --megabytes 500      # steps, NCCL, bars, one warning
    python benchmarks/big_logs.py folder DIR --ranks 1024       # a log of 4 MB for each of 1,024 ranks
    python benchmarks/big_logs.py compare FILE                  # beside rg -a -j1 -c -F -f TRIGGERS
    python benchmarks/big_logs.py memory FILE|DIR               # peak resident memory and time

The same arguments make the same log. ``compare`` runs both programs in turns and takes the best of each;
``--limit`` makes it end with 1 when the ratio is above the limit. The interpreter that runs this file runs
torchdoctor, too: whether the ``fast`` extra is there depends on it, and is printed.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANKS = 64
GPUS = 8
START = 1_700_000_000
WARNING = (
    "/opt/env/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:62: UserWarning: The verbose "
    "parameter is deprecated. Please use get_last_lr() to access the learning rate.",
    "  warnings.warn(",
)
PACKAGES = "/opt/env/lib/python3.11/site-packages"
FAILURE = (
    "Traceback (most recent call last):",
    '  File "/opt/job/train.py", line 412, in <module>',
    "    main()",
    '  File "/opt/job/train.py", line 388, in main',
    "    loss = criterion(model(images), labels)",
    f'  File "{PACKAGES}/torch/nn/modules/module.py", line 1773, in _wrapped_call_impl',
    "    return self._call_impl(*args, **kwargs)",
    f'  File "{PACKAGES}/torch/nn/functional.py", line 3458, in cross_entropy',
    "    return torch._C._nn.cross_entropy_loss(",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of "
    "79.15 GiB of which 1.04 GiB is free. Including non-PyTorch memory, this process has 78.10 GiB memory "
    "in use. Of the allocated memory 74.52 GiB is allocated by PyTorch, and 2.11 GiB is reserved by PyTorch "
    "but unallocated.",
)


def clock(second: float) -> str:
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
    return f"{whole},{int(second % 1 * 1000):03d}"


def head_of(rank: int, tag: bool) -> str:
    return f"[rank{rank}]: " if tag else ""


def begin(ranks: Sequence[int], tag: bool) -> Iterator[str]:
    """What the ranks print before the first step."""
    for rank in ranks:
        local = rank % GPUS
        node = rank // GPUS
        pid = 4100 + local
        nccl = f"{head_of(rank, tag)}node-{node:03d}:{pid}:{pid} [{local}] NCCL INFO"
        yield f"{nccl} Bootstrap: Using eth0:10.0.0.{node}<0>"
        for channel in range(4):
            other = (rank + 1) % RANKS
            yield f"{nccl} Channel {channel:02d}/0 : {rank}[{local}] -> {other}[{other % GPUS}] via P2P/CUMEM"
        for line in WARNING:
            yield head_of(rank, tag) + line


def steps(rng: random.Random, ranks: Sequence[int], tag: bool) -> Iterator[list[str]]:
    """The lines of one training step after the other, all ranks of it, without end."""
    second = float(START)
    number = 0
    while True:
        number += 1
        second += 0.8
        loss = 11.0 / (1 + number / 400) + rng.random()
        stamp = clock(second)[:-3]
        lines = [
            f"{head_of(rank, tag)}{stamp}{rng.randrange(1000):03d} - INFO - train - step {number:7d} | "
            f"epoch {number // 5000:3d} | loss {loss + rng.random() / 50:.4f} | grad norm "
            f"{rng.random() * 3:.3f} | lr 3.00e-04 | tokens/s {50_000 + rng.randrange(4000)} | mem "
            f"{60 + rng.random() * 4:.2f} GiB"
            for rank in ranks
        ]
        rng.shuffle(lines)
        if number % 50 == 0:
            done = number % 5000 // 50
            bar = "█" * (done // 4)
            lines.append(
                f"{head_of(ranks[0], tag)}Training: {done:3d}%|{bar:<25}| {number}/100000 "
                f"[{number // 75:02d}:12<1:02:33, 1.25it/s]"
            )
        if number % 1000 == 0:
            lines.append(
                f"{head_of(ranks[0], tag)}{stamp}001 - INFO - checkpoint - saving checkpoint to "
                f"/data/run/step_{number}.pt"
            )
        if number % 2000 == 7:
            lines.append(
                f"{head_of(rng.choice(ranks), tag)}{stamp}002 - WARNING - loader - slow batch: "
                f"{rng.random() * 9:.2f} s of waiting for data"
            )
        yield lines


def echo(ranks: Sequence[int], tag: bool) -> Iterator[str]:
    """What other ranks print once one is gone."""
    for rank in ranks:
        yield (
            f"{head_of(rank, tag).rstrip()}[E1114 22:13:20.{rank:06d}000 ProcessGroupNCCL.cpp:632] "
            f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88123, "
            "OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600047 "
            "milliseconds before timing out."
        )


def write_log(
    path: Path,
    size: int,
    ranks: Sequence[int] = range(RANKS),
    tag: bool = True,
    seed: int = 7,
    failing: int | None = 13,
) -> None:
    """A log of at least ``size`` bytes; rank ``failing`` runs out of memory after six tenths of it.

    Its traceback stands line by line between the steps of the others; six of them tell of a time limit at
    the end.
    """
    rng = random.Random(seed)
    written = 0
    failed = failing is None or failing not in ranks
    with path.open("w", encoding="utf-8") as file:
        written += file.write("\n".join(begin(ranks, tag)) + "\n")
        alive = list(ranks)
        for lines in steps(rng, alive, tag):
            if not failed and failing is not None and written > size * 0.6:
                failed = True
                trace = [head_of(failing, tag) + line for line in FAILURE]
                lines = list(mixed(lines, trace))
                alive.remove(failing)
            written += file.write("\n".join(lines) + "\n")
            if written >= size or not alive:
                break
        if failing is not None and len(alive) > 1:
            file.write("\n".join(echo(alive[:6], tag)) + "\n")


def mixed(lines: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Two lists of lines in one, in turns."""
    for index in range(max(len(lines), len(others))):
        yield from lines[index : index + 1]
        yield from others[index : index + 1]


def write_mix(path: Path, size: int, addresses: bool, seed: int = 7) -> None:
    """A log of at least ``size`` bytes in which nothing fails: 70 % lines of steps, 15 % of NCCL, 10 % states
    of bars that end with a carriage return, 5 % the same warning. ``addresses``: the lines of NCCL hold some.
    """
    rng = random.Random(seed)
    number = written = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for lines in steps(rng, range(RANKS), True):
            number += 1
            told = [_mixed_in(rng, line, number, addresses) for line in lines[:RANKS]]
            written += file.write("".join(told))
            if written >= size:
                return


def _mixed_in(rng: random.Random, step: str, number: int, addresses: bool) -> str:
    kind, rank = rng.random(), rng.randrange(RANKS)
    head, local = head_of(rank, True), rank % GPUS
    if kind < 0.70:
        return f"{step}\n"
    if kind < 0.85:
        nccl = f"{head}node-{rank // GPUS:03d}:{4100 + local}:{4100 + local} [{local}] NCCL INFO"
        if addresses:
            send, receive, comm = (rng.randrange(1 << 44) for _ in range(3))
            return (
                f"{nccl} AllReduce: opCount {number:x} sendbuff 0x{send:x} recvbuff 0x{receive:x} count "
                f"{rng.randrange(1 << 24)} datatype 7 op 0 root 0 comm 0x{comm:x} [nranks={RANKS}]\n"
            )
        other = (rank + 1) % RANKS
        to = f"{rank}[{local}] -> {other}[{other % GPUS}]"
        return f"{nccl} Channel {rng.randrange(16):02d}/0 : {to} via P2P\n"
    if kind < 0.95:
        done = number % 100
        bar = "█" * (done // 4)
        return (
            f"{head}Training: {done:3d}%|{bar:<25}| {number}/100000 "
            f"[{number // 75:02d}:12<1:02:33, {1 + rng.random():.2f}it/s]\r"
        )
    return f"{head}{WARNING[0]}\n"


def write_folder(folder: Path, size: int, ranks: int) -> None:
    """A log of ``size`` bytes for each rank, as ``torchrun --log-dir`` lays them out; rank 13 fails."""
    for rank in range(ranks):
        path = folder / f"node{rank // GPUS:03d}" / "attempt_0" / str(rank % GPUS) / "stderr.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_log(path, size, [rank], False, rank, 13)


def explain(path: str) -> None:
    command = [sys.executable, "-m", "torchdoctor", "explain", "--offline", "--format", "json", path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is kept, as in any installation
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def wall(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def compare(path: str, rounds: int, limit: float | None) -> int:
    """Wall time of explain and of ripgrep over the catalog's trigger literals, in turns in one go."""
    sys.path.insert(0, str(ROOT))
    from torchdoctor.catalog import load

    program = shutil.which("rg")
    if program is None:
        print("big_logs: ripgrep (rg) is not installed; it is what explain is compared with", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        triggers = Path(folder) / "triggers"
        literals = list(load().literals())
        triggers.write_text("".join(f"{literal}\n" for literal in literals), encoding="utf-8")
        search = [program, "-a", "-j1", "-c", "-F", "-f", str(triggers), path]

        def rg() -> None:
            subprocess.run(search, check=False, stdout=subprocess.DEVNULL)

        rg()  # the file into the page cache
        explain(path)  # the catalog compiled
        theirs, ours = [], []
        for _ in range(rounds):
            theirs.append(wall(rg))
            ours.append(wall(lambda: explain(path)))
    ratio = min(ours) / min(theirs)
    fast = "with" if find_spec("zstandard") else "without"
    print(
        f"{os.path.getsize(path) / 1e6:.0f} MB, {len(literals)} triggers, {fast} the fast extra, "
        f"{len(os.sched_getaffinity(0))} processors"
    )
    print(f"rg -a -j1 -c -F -f TRIGGERS {min(theirs):6.2f} s  of {' '.join(f'{one:.2f}' for one in theirs)}")
    print(f"torchdoctor explain        {min(ours):6.2f} s  of {' '.join(f'{one:.2f}' for one in ours)}")
    print(f"ratio                      {ratio:6.2f}")
    return 1 if limit is not None and ratio > limit else 0


def memory(path: str, limit: float | None) -> int:
    """Peak resident memory: of the largest process, and of all of them together, sampled."""
    import psutil

    command = [sys.executable, "-m", "torchdoctor", "explain", "--offline", "--format", "json", path]
    begun = time.perf_counter()
    child = psutil.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)})
    together = 0
    while child.poll() is None:
        try:
            family = [child, *child.children(recursive=True)]
            together = max(together, sum(one.memory_info().rss for one in family))
        except psutil.Error:
            pass
        time.sleep(0.02)
    took = time.perf_counter() - begun
    single = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    peak = max(single, together) / (1 << 20)
    print(
        f"{path}: {took:.1f} s, peak {single / (1 << 20):.0f} MiB in one process, "
        f"{together / (1 << 20):.0f} MiB in all"
    )
    return 1 if limit is not None and peak > limit else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("path", type=Path)
    make.add_argument("--megabytes", type=float, default=500)
    mix = commands.add_parser("mix")
    mix.add_argument("path", type=Path)
    mix.add_argument("--megabytes", type=float, default=500)
    mix.add_argument("--addresses", action="store_true", help="addresses in the lines of NCCL")
    folder = commands.add_parser("folder")
    folder.add_argument("path", type=Path)
    folder.add_argument("--ranks", type=int, default=1024)
    folder.add_argument("--megabytes", type=float, default=4)
    against = commands.add_parser("compare")
    against.add_argument("path")
    against.add_argument("--rounds", type=int, default=5)
    against.add_argument("--limit", type=float)
    peak = commands.add_parser("memory")
    peak.add_argument("path")
    peak.add_argument("--limit", type=float, help="MiB")
    given = parser.parse_args()
    if given.command == "make":
        write_log(given.path, int(given.megabytes * 1e6))
        return 0
    if given.command == "mix":
        write_mix(given.path, int(given.megabytes * 1e6), given.addresses)
        return 0
    if given.command == "folder":
        write_folder(given.path, int(given.megabytes * 1e6), given.ranks)
        return 0
    if given.command == "compare":
        return compare(given.path, given.rounds, given.limit)
    return memory(given.path, given.limit)


if __name__ == "__main__":
    sys.exit(main())
