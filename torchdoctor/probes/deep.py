"""What a run does, done once in small: a kernel, library handles, Inductor, a DataLoader, a process group."""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchdoctor.model import Fact
from torchdoctor.probes.machine import Command
from torchdoctor.probes.probe import Context, Cost, Probe, failure

NAME = "deep.steps"
USES = (
    "--deep takes about 1 GiB of GPU 0 where there is one, two worker processes, a compiler and a temporary "
    "folder; it leaves nothing behind"
)
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "deep.py")


def command(context: Context) -> Command:
    limit_s = context.limits.deep_s
    return Command("deep", (context.python, _PROGRAM, f"{limit_s:g}"), limit_s + 10.0, reports=True)


def _look(context: Context) -> Iterator[Fact]:
    outcome = context.machine.finish(command(context))
    wanted: list[str] = []
    found: dict[str, tuple[str, str, float | None, str]] = {}
    for line in outcome.lines:
        steps, seconds = line.get("steps"), line.get("seconds")
        if isinstance(steps, list):
            wanted = [str(step) for step in steps]
        elif "step" in line:
            words = (str(line.get(key) or "") for key in ("state", "detail"))
            state, detail = words
            taken = float(seconds) if isinstance(seconds, (int, float)) else None
            found[str(line["step"])] = (state, detail, taken, str(line.get("traceback") or ""))
    if not wanted:
        reason, detail = failure(outcome)
        yield Fact.unknown(NAME, reason, "deep", detail)
        return
    untold = ("late", "no time was left", None, "")
    yield Fact.known(NAME, tuple((step, *found.get(step, untold)) for step in wanted), "deep")


PROBES = (Probe((NAME,), Cost.INVASIVE, _look, command),)
