"""Errors of GPUs in the kernel log, where this user may read it: with a driver, by a program of ours."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

from torchdoctor.model import Fact
from torchdoctor.probes.driver import any_sign
from torchdoctor.probes.machine import Command, Json
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reason_of

_NAME = "kernel.gpu_errors"
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "kernel_log.py")
# "NVRM: Xid (PCI:0000:3b:00): 79, …"; what stands behind the number is chosen by whoever named the process
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d{1,3}),")


def command(context: Context) -> Command | None:
    if not any_sign(context):
        return None
    argv = (sys.executable, "-I", "-S", _PROGRAM)
    return Command("kernel-log", argv, context.limits.tool_s, reports=True)


def _look(context: Context) -> Iterator[Fact]:
    machine = context.machine
    ran = Command("kernel-log", (), 0.0) if machine.running("kernel-log") else command(context)
    if ran is None:
        yield Fact.absent(_NAME, "kernel log", "no NVIDIA driver is visible")
        return
    outcome = machine.finish(ran)
    told: dict[str, Json] = {str(line.get("name")): line.get("value") for line in outcome.lines}
    lines, now = told.get("kernel.lines"), told.get("kernel.now_s")
    if not isinstance(lines, list) or not isinstance(now, (int, float)):
        refused = next((line for line in outcome.lines if line.get("state") == "unknown"), None)
        reason, detail = failure(outcome)
        if refused is not None:
            reason, detail = reason_of(refused.get("reason")), str(refused.get("detail"))
        yield Fact.unknown(_NAME, reason, "kernel log", detail)
        return
    found: list[tuple[str, int, float]] = []
    for line in lines:
        time_s, text = line if isinstance(line, list) and len(line) == 2 else (None, "")
        match = _XID.search(str(text))
        if match and isinstance(time_s, (int, float)) and time_s >= 0:
            found.append((match[1].lower(), int(match[2]), round(max(0.0, now - time_s))))
    yield Fact.known(_NAME, tuple(found), "kernel log")


PROBES = (Probe((_NAME,), Cost.SLOW, _look, command),)
