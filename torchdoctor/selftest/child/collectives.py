"""Collectives with values that can be told in advance: gloo between processes on the CPU, NCCL between GPUs.

Topics: gloo, nccl. Each rank is a process of its own; they meet through a file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
import traceback
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from torchdoctor.selftest.child.bench import Bench, Lacking, run

WAIT_S = 60.0
BIG_BYTES = {"quick": 64 << 20, "standard": 256 << 20, "deep": 1 << 30}


def spoilt(bench: Bench, name: str, rank: int, tensor: Any) -> Any:
    if bench.fault == "one-element" and name == "all_reduce" and rank == 1:
        tensor[3] += 1
    return tensor


def exchange(bench: Bench, rank: int, world: int, device: Any) -> dict[str, int]:
    """Number of wrong elements of each collective, on this rank."""
    length = 1 << 16
    mine = torch.full((length,), float(rank + 1), device=device)
    total = world * (world + 1) / 2
    wrong: dict[str, int] = {}

    def count(name: str, got: Any, wanted: Any) -> None:
        wrong[name] = int((spoilt(bench, name, rank, got) != wanted).sum())

    summed = mine.clone()
    dist.all_reduce(summed)
    count("all_reduce", summed, total)
    sent = mine.clone()
    dist.broadcast(sent, src=world - 1)
    count("broadcast", sent, float(world))
    parts = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(parts, mine)
    numbers = torch.arange(1, world + 1, device=device, dtype=mine.dtype)[:, None]
    count("all_gather", torch.stack(parts), numbers)
    if device.type != "cpu":  # gloo has them only in newer versions
        part = torch.empty(length, device=device)
        dist.reduce_scatter(part, [mine * (other + 1) for other in range(world)])
        count("reduce_scatter", part, total * (rank + 1))
        out = torch.empty(world * 1024, device=device)
        dist.all_to_all_single(out, torch.full((world * 1024,), float(rank + 1), device=device))
        count("all_to_all", out.view(world, 1024), numbers)
    else:
        kept = mine.clone()
        dist.reduce(kept, dst=0)
        count("reduce", kept, total if rank == 0 else kept)
    return wrong


def speed(bench: Bench, world: int, device: Any) -> float:
    """Bus bandwidth of an all-reduce in GB/s, best of five, as nccl-tests count it."""
    size = BIG_BYTES[bench.level]
    data = torch.ones(size // 4, device=device)
    best = float("inf")
    for number in range(7):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        dist.all_reduce(data)
        torch.cuda.synchronize()
        if number > 1:
            best = min(best, time.perf_counter() - begun)
    return size / best / 1e9 * 2 * (world - 1) / world


def rank_of(bench: Bench, topic: str, rank: int, world: int, folder: str) -> None:
    device = torch.device("cpu" if topic == "gloo" else f"cuda:{rank}")
    if topic == "nccl":
        # what NCCL says of the ways it takes; a person's own settings stand
        os.environ.setdefault("NCCL_DEBUG", "INFO")
        os.environ.setdefault("NCCL_DEBUG_SUBSYS", "INIT,P2P,SHM,NET,GRAPH,NVLS")
        os.environ.setdefault("NCCL_DEBUG_FILE", os.path.join(folder, f"nccl{rank}"))
        torch.cuda.set_device(device)
    if bench.fault == "rank-dies" and rank == 1:
        os._exit(9)
    dist.init_process_group(
        topic,
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=WAIT_S),
    )
    found: dict[str, Any] = {"wrong": exchange(bench, rank, world, device)}
    if topic == "nccl" and rank < world:
        found["busbw"] = speed(bench, world, device)
    with open(os.path.join(folder, f"rank{rank}"), "w", encoding="ascii") as stream:
        json.dump(found, stream)
    dist.barrier()
    dist.destroy_process_group()


def launch(bench: Bench, topic: str, world: int, folder: str) -> dict[int, int]:
    """Fork the ranks, wait for them, and tell how each ended; one that dies ends the others."""
    if not hasattr(os, "fork"):
        raise Lacking("this system does not fork")
    sys.stdout.flush()
    sys.stderr.flush()
    ranks: dict[int, int] = {}
    for rank in range(world):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(os.open(os.path.join(folder, f"log{rank}"), os.O_WRONLY | os.O_CREAT, 0o600), 2)
                rank_of(bench, topic, rank, world, folder)
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        ranks[child] = rank
    ended: dict[int, int] = {}
    deadline = time.monotonic() + WAIT_S + 30
    while len(ended) < world:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done in ranks:
            ended[ranks[done]] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        elif time.monotonic() > deadline or any(ended.values()):
            for child, rank in ranks.items():
                if rank not in ended:
                    os.kill(child, 9)
        time.sleep(0.02)
    return ended


def together(bench: Bench, topic: str, world: int) -> None:
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        ended = launch(bench, topic, world, folder)
        first = next((rank for rank, code in ended.items() if code != 0), None)
        good = first is None
        told = f"all {world} ended well" if good else f"rank {first} ended first, with {ended[first or 0]}"
        bench.holds(f"{topic}, {world} ranks", good, told, "all ranks end well", "values known in advance")
        if not good:
            with open(os.path.join(folder, f"log{first}"), encoding="utf-8", errors="replace") as stream:
                bench.text(f"rank {first}", stream.read()[-6000:], ())
            return
        found = []
        for rank in range(world):
            with open(os.path.join(folder, f"rank{rank}"), encoding="ascii") as stream:
                found.append(json.load(stream))
        transport(bench, topic, folder)
    for name in found[0]["wrong"]:
        counts = [one["wrong"][name] for one in found]
        where = ", ".join(f"{count} on rank {rank}" for rank, count in enumerate(counts) if count)
        bench.exact(f"{topic} {name}", sum(counts), "values known in advance", where)
    if "busbw" in found[0]:
        size = BIG_BYTES[bench.level] >> 20
        bench.rate(f"all-reduce, {world} GPUs, {size} MiB", min(one["busbw"] for one in found), "GB/s")


def transport(bench: Bench, topic: str, folder: str) -> None:
    """By which ways NCCL went, from its own log: each "via P2P/CUMEM" and the like, and NVLS."""
    if topic != "nccl":
        return
    text = ""
    for name in os.listdir(folder):
        if name.startswith("nccl"):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
                text += stream.read()
    ways: dict[str, int] = {}
    for way in re.findall(r"Channel .* via ([\w/.-]+)|NVLS comm", text):
        ways[way or "NVLS"] = ways.get(way or "NVLS", 0) + 1
    told = ", ".join(
        f"{way} ({count} channel{'s' if count > 1 else ''})" for way, count in sorted(ways.items())
    )
    version = re.search(r"NCCL version (\S+)", text)
    bench.told(
        "transport",
        "measured" if told else "note",
        (told or "NCCL's log does not tell") + (f"; NCCL {version[1]}" if version else ""),
    )


def check(bench: Bench) -> None:
    if not dist.is_available():
        raise Lacking("this torch has no torch.distributed")
    if bench.about("gloo"):
        bench.attempt("gloo", together, bench, "gloo", 2)
    if bench.topic == "nccl" or (not bench.topic and bench.on_gpu):
        world = count_gpus()
        if world < 2:
            raise Lacking("one GPU has no other GPU to communicate with")
        bench.attempt("nccl", together, bench, "nccl", world)


def count_gpus() -> int:
    """Asked in another process: this one must not touch a GPU before it forks."""
    import subprocess

    # without the empty entry, which stands for the current folder
    ask = "import sys; sys.path[:] = filter(None, sys.path); import torch; print(torch.cuda.device_count())"
    argv = [sys.executable, "-c", ask]
    done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=WAIT_S)
    return int(done.stdout.strip() or 0)


if __name__ == "__main__":
    run(check)
