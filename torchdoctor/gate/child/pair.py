"""Sums over the GPUs of two nodes, or of all, in the job's own torch: exact, timed, and ended in time.

Started on each GPU of the nodes by srun (``srun -N 2 --ntasks-per-node 8 python pair.py FOLDER [SECONDS]``)
or torchrun, with MASTER_ADDR and MASTER_PORT set. Writes one file for the nodes into FOLDER, which all of
them see. Needs nothing of ours. Without GPUs it sums over gloo.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
from datetime import timedelta
from typing import Any

# what torchrun calls them, and what Slurm does
NAMES = (("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS"), ("LOCAL_RANK", "SLURM_LOCALID"))
ELEMENTS = 64 << 20  # 256 MiB of float32: large enough for the speed of the network to show
ELEMENTS_CPU = 1 << 20
WARM, TIMES = 2, 5
LIMIT_S = 60.0


def node_name() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE_NAME") or socket.gethostname()


class Result:
    """The file of this test; the first to fail writes it, whoever that is."""

    def __init__(self, folder: str, nodes: list[str]) -> None:
        self.folder = folder
        self.nodes = nodes
        self.rail = os.environ.get("NCCL_IB_HCA", "")
        self.backend = ""

    @property
    def path(self) -> str:
        name = "+".join(self.nodes) if len(self.nodes) <= 2 else f"all-{len(self.nodes)}"
        rail = f"@{self.rail}" if self.rail else ""
        plain = "".join(char if char.isalnum() or char in "-._+@" else "_" for char in name + rail)
        return os.path.join(self.folder, f"{plain}.pair.json")

    def write(self, passed: bool, reason: str = "", bandwidth: float = 0.0) -> None:
        told = {
            "schema": "torchdoctor.pair/1", "nodes": self.nodes, "passed": passed, "reason": reason,
            "bandwidth": round(bandwidth, 3), "rail": self.rail, "backend": self.backend,
            "time_s": time.time(),
        }  # fmt: skip
        handle, temporary = tempfile.mkstemp(prefix=".pair.", dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(told) + "\n")
        os.chmod(temporary, 0o644)
        if passed:
            os.replace(temporary, self.path)
            return
        # a failure is never written over by a later one
        with contextlib.suppress(FileExistsError):
            os.link(temporary, self.path)
        os.unlink(temporary)


def measure(torch: Any, dist: Any, device: Any, elements: int) -> float:
    """Bus bandwidth in GB/s. Raises ValueError when a sum is wrong."""
    rank, world = dist.get_rank(), dist.get_world_size()
    steps = torch.arange(elements, device=device, dtype=torch.float32).remainder_(251)
    expected = steps * world + world * (world - 1) // 2  # small whole numbers: exact in any order
    best = float("inf")
    for number in range(WARM + TIMES):
        values = steps + rank
        if device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        dist.all_reduce(values)
        if device.type == "cuda":
            torch.cuda.synchronize()
        if number >= WARM:
            best = min(best, time.perf_counter() - begun)
        wrong = int((values != expected).sum().item())
        if wrong:
            raise ValueError(f"{wrong} of {elements} sums are wrong on rank {rank}")
    return float(2 * (world - 1) / world * elements * 4 / best / 1e9)


def main() -> None:
    folder = sys.argv[1]
    limit_s = float(sys.argv[2]) if len(sys.argv) > 2 else LIMIT_S
    # who takes part is told by whoever starts us: a node that never comes cannot tell its name
    planned = os.environ.get("TORCHDOCTOR_PAIR", "")
    result = Result(folder, planned.split(",") if planned else [node_name()])

    def too_late() -> None:
        if len(result.nodes) > 1:
            result.write(False, f"no sum within {limit_s:g} s, seen from {node_name()}")
        os._exit(3)

    for name, of_slurm in NAMES:
        os.environ.setdefault(name, os.environ.get(of_slurm, ""))
    timer = threading.Timer(limit_s, too_late)
    timer.daemon = True
    timer.start()
    import torch
    import torch.distributed as dist

    gpus = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    try:
        result.backend = "nccl" if gpus else "gloo"
        dist.init_process_group(result.backend, timeout=timedelta(seconds=limit_s))
        names: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(names, node_name())
        result.nodes = sorted(set(names)) if not planned else result.nodes
        bandwidth = measure(torch, dist, device, ELEMENTS if gpus else ELEMENTS_CPU)
        wait: Any = dist.barrier
        wait()
    except Exception as error:  # whatever it is, the pair did not work
        if len(result.nodes) > 1:
            words = (str(error).splitlines() or [""])[0][:200]
            result.write(False, f"{type(error).__name__}: {words}, seen from {node_name()}")
        os._exit(1)
    if dist.get_rank() == 0:
        result.write(True, "", bandwidth)
    timer.cancel()
    sys.stdout.flush()
    os._exit(0)  # tearing groups down may hang as well


if __name__ == "__main__":
    main()
