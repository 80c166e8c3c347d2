"""Which settings torch dies of: tries it again without them, in fresh interpreters of the job.

Called as ``python without.py VARIABLES FILE`` by the job's python, from the job's folder, with the job's
environment; VARIABLES are two JSON lists in one, first those that are likely. Needs nothing of ours. Writes
the one variable without which torch starts and computes, else all of them where that helps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

LIMIT_S = 25.0
BREATH_S = 0.02
TRY = "--try"


def works(left_out: list[str]) -> bool:
    """Does torch start without these? Blocks until that has ended, or LIMIT_S."""
    environ = {name: value for name, value in os.environ.items() if name not in left_out}
    tried = subprocess.Popen(
        [sys.executable, __file__, TRY],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + LIMIT_S
    while tried.poll() is None and time.monotonic() < deadline:
        time.sleep(BREATH_S)
    tried.kill()
    return tried.wait() == 0


def start() -> None:
    """What killed it, once more: the import, and a first kernel on each GPU."""
    from typing import Any

    import torch

    untyped: Any = torch
    if torch.cuda.is_available():
        untyped.cuda.init()
        for index in range(torch.cuda.device_count()):
            torch.arange(1024, device=f"cuda:{index}").sum().item()


def main() -> None:
    if sys.argv[1] == TRY:
        start()
        os._exit(0)
    likely, others = json.loads(sys.argv[1])
    if works([]):
        return  # it comes and goes: that is no setting
    for name in likely:
        if works([name]):
            fact([name])
            return
    if not works([*likely, *others]):
        return
    fact([*likely, *others])  # which stands where the time ends before one is found
    for name in others:
        if works([name]):
            fact([name])
            return


def fact(names: list[str]) -> None:
    with open(sys.argv[2], "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"name": "env.works_without", "value": names}) + "\n")


if __name__ == "__main__":
    main()
