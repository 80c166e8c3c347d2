"""Runs the zoo under DistributedDataParallel in two processes: ``python real.py FOLDER``.

Each process writes one JSON line per model and setting into FOLDER/RANK.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent.parent))
SETTINGS: dict[str, dict[str, bool]] = {
    "find_unused_parameters=False": {},
    "find_unused_parameters=True": {"find_unused_parameters": True},
    "static_graph=True": {"static_graph": True},
}


def step(model: Any, batch: Any, loss_fn: Any, stage: list[str]) -> None:
    from torchdoctor.ddp.child.examine import loss_of

    stage[0] = "forward"
    out = model(**batch) if isinstance(batch, dict) else model(*batch)
    stage[0] = "backward"
    loss_of(out, loss_fn).backward()
    stage[0] = "step"
    model.zero_grad()


def run(name: str, options: dict[str, bool]) -> dict[str, Any]:
    """What DDP raises; None for the message when nothing."""
    from zoo import ZOO

    torch.manual_seed(0)
    model, inputs, loss_fn = ZOO[name]()
    batches = inputs if isinstance(inputs, list) else [inputs]
    steps = 2 * len(batches) + 1
    order = [
        n
        for n, p in _in_order(model)
        if p.requires_grad and n not in getattr(model, "_ddp_params_and_buffers_to_ignore", ())
    ]
    stage = ["wrap"]
    iteration = 0
    try:
        wrapped = DistributedDataParallel(model, **options)
        for number in range(steps):
            iteration = number + 1
            step(wrapped, batches[number % len(batches)], loss_fn, stage)
    except Exception as error:
        text = str(error)
        names: list[str] = []
        found = re.search(r"did not receive grad for rank \d+: ([\d ]+)", text)
        if found:
            names = [order[int(one)] for one in found.group(1).split()]
        found = re.search(r"Parameter at index (\d+)", text)
        if found:
            names = [order[int(found.group(1))]]
        return {"iteration": iteration, "stage": stage[0], "names": names, "message": text[:1500]}
    return {"iteration": 0, "stage": "", "names": [], "message": None}


def _in_order(model: Any) -> Any:
    memo: set[int] = set()
    for prefix, module in model.named_modules():
        for own, parameter in module.named_parameters(recurse=False):
            if id(parameter) not in memo:
                memo.add(id(parameter))
                yield (f"{prefix}.{own}" if prefix else own), parameter


def worker(rank: int, folder: str) -> None:
    from zoo import ZOO

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), 2)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=2, timeout=datetime.timedelta(seconds=20)
    )
    with open(os.path.join(folder, str(rank)), "w") as stream:
        for name in ZOO:
            for setting, options in SETTINGS.items():
                result = run(name, options)
                stream.write(json.dumps({"name": name, "setting": setting, **result}) + "\n")
                stream.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    import multiprocessing

    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
    others = [
        multiprocessing.get_context("fork").Process(target=worker, args=(r, sys.argv[1])) for r in (0, 1)
    ]
    for one in others:
        one.start()
    for one in others:
        one.join()
    sys.exit(max(one.exitcode or 0 for one in others))
