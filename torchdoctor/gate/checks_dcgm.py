"""Judging what NVIDIA's own diagnostic (dcgmi diag) said of every GPU, where it is installed.

It is one more witness: a wrong result or a broken part counts, a setting warns, and a speed below DCGM's own
bound only warns, as the active set measures the same and retests it. What it skipped or could not do is told.
"""

from __future__ import annotations

import re
import sys
from functools import cache

from torchdoctor.gate.finding import Action, Untold
from torchdoctor.gate.look import FAIL, NODE, WARN, Look, Said
from torchdoctor.probes.machine import Json

PROGRAM = "gate-dcgm"
_SPEED = (
    "pcie",
    "memory bandwidth",
    "memory_bandwidth",
    "nvbandwidth",
    "targeted",
    "sm stress",
    "power",
    "stress",
)
_SETTINGS = ("deployment", "software")
# dcgmErrorSeverity_t of DCGM's dcgm_errors.h
_ISOLATE, _CONFIG, _RESET = 2, 5, 6
_PASSED, _FAILED, _WARNED = ("pass", "passed"), ("fail", "failed"), ("warn", "warning")


def argv(level: int, limit_s: float, gpus: str, program: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", program, str(level), str(limit_s), gpus)


def judge(look: Look) -> Said:
    """Findings for each GPU with a failed test, and what was not tested."""
    facts = look.facts
    if PROGRAM not in facts.ended:
        return
    error = facts.text("dcgm.error")
    if error:
        yield Untold("dcgm", error)
    rows = [one for one in facts.items("dcgm.results") if isinstance(one, dict)]
    if not rows:
        if not error:
            yield from look.untold("dcgm", "dcgm.results")
        return
    seen: set[int] = set()
    for row in rows:
        gpus = [one for one in _list(row.get("gpus")) if isinstance(one, int)]
        seen.update(gpus)
        for gpu in gpus:
            yield from _one(look, row, gpu)
        if not gpus:
            yield from _one(look, row, None)
    for gpu in range(look.count):
        if seen and gpu not in seen and look.mine(gpu):
            yield Untold("dcgm", f"GPU {gpu}: no result of dcgmi diag is about it")
    code = facts.number("dcgm.exit_code")
    told = {str(row.get("status")).lower() for row in rows}
    if code and not told & {*_FAILED, *_WARNED}:
        yield Untold("dcgm", f"dcgmi ended with {code:g} and names no failed test")


def _one(look: Look, row: dict[str, Json], gpu: int | None) -> Said:
    status, test = str(row.get("status")).strip().lower(), str(row.get("test"))
    warnings = tuple(str(one) for one in _list(row.get("warnings")))
    if status in _PASSED:
        # a memory test that got no memory has tested nothing, whatever it says
        texts = (*warnings, *map(str, _list(row.get("info"))))
        words = next((one for one in texts if _no_memory().search(one)), "")
        if words:
            yield Untold("dcgm", f"{test}{_of(gpu)} passed without testing: {words}")
        return
    if status not in (*_FAILED, *_WARNED):
        if gpu is not None or "skip" not in status:
            yield Untold("dcgm", f"{test}{_of(gpu)}: {status}{': ' + warnings[0] if warnings else ''}")
        return
    severity = row.get("severity")
    setting = severity == _CONFIG or (
        severity not in (_ISOLATE, _RESET) and f"{row.get('category')} {test}".lower().startswith(_SETTINGS)
    )
    slow = severity not in (_ISOLATE, _RESET) and test.lower().startswith(_SPEED)
    counts = status in _FAILED and not setting and not slow
    if gpu is not None and not look.mine(gpu):
        return
    if gpu is None and any(_about_gpus(look, test)):
        return  # the summary of what is told for each GPU
    action = (
        Action.CHANGE_SETTING if setting
        else Action.INSPECT if severity == _ISOLATE or slow
        else Action.RESET_GPU
    )  # fmt: skip
    yield look.found(
        "dcgm", f"dcgmi diag: {test} {'failed' if status in _FAILED else 'warns'}", FAIL if counts else WARN,
        NODE, action, gpu, tag=f"dcgm-{'-'.join(test.lower().replace('_', ' ').split())}",
        observed=warnings[0] if warnings else status, expected="pass", source="dcgmi diag",
        evidence=warnings or (f"{test}: {status}",),
        advice="torchdoctor's own measurements decide" if slow else "",
    )  # fmt: skip


def _about_gpus(look: Look, test: str) -> list[bool]:
    """For each result of a test that names GPUs: did it fail?"""
    return [
        str(row.get("status")).lower() in _FAILED
        for row in look.facts.items("dcgm.results")
        if isinstance(row, dict) and row.get("test") == test and row.get("gpus")
    ]


def _of(gpu: int | None) -> str:
    return "" if gpu is None else f" on GPU {gpu}"


@cache
def _no_memory() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:unable|fail\w*|could not|error|cannot)\b.{0,60}alloc"
        r"|alloc\w*\b.{0,60}\bfail"
    )


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
