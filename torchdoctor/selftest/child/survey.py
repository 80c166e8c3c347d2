"""Which torch this is and which devices it sees. Called as ``python survey.py FILE``; one fact a line."""

from __future__ import annotations

import json
import os
import platform
import sys


def fact(name: str, value: object) -> None:
    line = json.dumps({"name": name, "value": value})
    with open(sys.argv[1], "a", encoding="ascii") as stream:
        stream.write(line + "\n")


def look() -> None:
    fact("survey.python", sys.executable)
    import torch

    fact("survey.torch", str(torch.__version__))
    # what decides which bits the CPU computes
    able = torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, "cpu") else ""
    fact("survey.cpu", f"{platform.machine()} {able}, {torch.get_num_threads()} threads")
    fact("survey.mps", bool(getattr(torch.backends, "mps", None) and torch.backends.mps.is_available()))
    built = bool(torch.version.cuda or getattr(torch.version, "hip", None))
    fact("survey.built", str(torch.version.cuda or getattr(torch.version, "hip", None) or ""))
    if not built:
        fact("survey.gpus", [])
        return
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        fact("survey.gpus", [torch.cuda.get_device_name(index) for index in range(count)])
        known = [torch.cuda.get_device_properties(index) for index in range(count)]
        fact("survey.uuids", [str(getattr(one, "uuid", "")) for one in known])
        fact("survey.processors", [int(one.multi_processor_count) for one in known])
        return
    try:
        torch.zeros(1, device="cuda")
    except Exception as error:
        fact("survey.why", f"{type(error).__name__}: {error}".splitlines()[0])
    fact("survey.gpus", [])


if __name__ == "__main__":
    look()
    sys.stdout.flush()
    os._exit(0)
