"""Several checks one after the other in one process, which pays once for its GPU context and libraries.

Called as ``python batch.py PLAN REPORT``. PLAN is a list in JSON of {"argv", "stdout", "stderr"}: a program
with its arguments (the last is its own file of results) and the files for what it prints. REPORT gets a line
{"begin": number} and a line {"end": number} for each. The first check that crashes, runs out of time or loses
its GPU ends the process; what stands behind it is for another one. Standard library and torch.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import time
from typing import Any


def say(**record: object) -> None:
    record["t"] = round(time.monotonic(), 3)
    with open(sys.argv[-1], "a", encoding="ascii") as stream:
        stream.write(json.dumps(record) + "\n")


def settings() -> dict[str, Any]:
    """What checks change of torch for themselves, to be as it was for the next."""
    import torch

    return {
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
    }


def restore(values: dict[str, Any]) -> None:
    import torch

    for name, value in values.items():
        owner: Any = torch.backends
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, value)
    gc.collect()
    torch.cuda.empty_cache()  # nothing where no GPU was touched


def one(asked: dict[str, Any]) -> int:
    """Run a program to its end and give back its exit code; 0 when another can follow."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        target = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(target, number)
        os.close(target)
    sys.argv = [str(word) for word in asked["argv"]]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 1  # a check ends by sys.exit, or not at all


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as stream:
        plan = json.load(stream)
    before = settings()
    own = sys.argv
    for number, asked in enumerate(plan):
        say(begin=number)
        code = one(asked)
        sys.argv = own
        say(end=number)
        sys.stdout.flush()
        sys.stderr.flush()
        if code != 0:
            break
        restore(before)
    # taking a CUDA context down can hang where the computation did not
    os._exit(0)


if __name__ == "__main__":
    main()
