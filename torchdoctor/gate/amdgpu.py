"""The kernel log of an AMD GPU: what its driver said of memory errors, stuck queues, and resets.

The texts are those of Linux' drivers/gpu/drm/amd (amdgpu_device.c, amdgpu_job.c, amdgpu_ras.c,
amdgpu_ras_eeprom.c, mes_v11_0.c). The driver resets a GPU by itself: what was before a reset that worked
is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from torchdoctor.extract.xid import place
from torchdoctor.gate.finding import Action, Finding, Untold
from torchdoctor.gate.look import FAIL, INFO, NODE, USER, WARN, Check, Look, Said

SOURCE = "texts of the amdgpu driver (torchdoctor/gate/amdgpu.py)"
_SHOWN = 4
# register reads that gave only ones, multiplied by 16: a card that sleeps, not a million errors
_ALL_ONES = 0xFFFF0


class Kind(str, Enum):
    """What a line is about; the value is the tag of its finding."""

    WORN_OUT = "amd-ras-full"
    NEARLY_WORN_OUT = "amd-ras-nearly-full"
    UNCORRECTED = "amd-ras-uncorrected"
    CONTAINED = "amd-ras-contained"
    QUEUE = "amd-ring-timeout"
    SCHEDULER = "amd-mes-silent"
    RESET_BEGUN = "amd-reset-unfinished"
    RESET_DONE = "amd-reset-done"
    RESET_FAILED = "amd-reset-failed"
    LOST = "amd-lost"
    NOT_STARTED = "amd-not-started"


# Order matters: the first that fits. Every line must also name the driver, and its GPU where it can.
_TEXTS = (
    (r"RAS records:\d+ exceeds 90% of threshold", Kind.NEARLY_WORN_OUT),
    (r"RAS records:\d+ exceeds? (?:bad page )?threshold", Kind.WORN_OUT),
    (r"Saved bad pages \d+ reaches threshold value", Kind.WORN_OUT),
    (r"poison consumption, unmap queue flow succeed", Kind.CONTAINED),
    (r"(?P<count>\d+) (?:new )?uncorrectable hardware errors detected in", Kind.UNCORRECTED),
    (r"uncorrectable hardware error\(ERREVENT_ATHUB_INTERRUPT\) detected", Kind.UNCORRECTED),
    (r"GPU reset\(\d+\) succeeded", Kind.RESET_DONE),
    (r"GPU reset\(\d+\) failed", Kind.RESET_FAILED),
    (r"GPU reset end with ret = -\d+", Kind.RESET_FAILED),
    (r"GPU Recovery Failed: -?\d+", Kind.RESET_FAILED),
    (r"GPU reset begin!", Kind.RESET_BEGUN),
    (r"[Dd]evice lost from bus!", Kind.LOST),
    (r"Fatal error during GPU init", Kind.NOT_STARTED),
    (r"MES failed to respon(?:se|d to) msg=", Kind.SCHEDULER),
    (r"ring \S+ timeout, (?:but soft recovered|signaled seq=)", Kind.QUEUE),
)
_JUDGED = {
    Kind.WORN_OUT: (FAIL, Action.RMA, "More bad memory pages than this AMD GPU may have"),
    Kind.NEARLY_WORN_OUT: (WARN, Action.RMA, "Almost as many bad memory pages as this AMD GPU may have"),
    Kind.UNCORRECTED: (FAIL, Action.RESET_GPU, "Uncorrectable errors in an AMD GPU"),
    Kind.CONTAINED: (WARN, Action.RESTART_JOB, "An uncorrectable error hit only one process of an AMD GPU"),
    Kind.SCHEDULER: (WARN, Action.INSPECT, "The scheduler of an AMD GPU did not answer"),
    Kind.RESET_BEGUN: (FAIL, Action.REBOOT, "A reset of an AMD GPU has not finished"),
    Kind.RESET_FAILED: (FAIL, Action.REBOOT, "A reset of an AMD GPU failed"),
    Kind.LOST: (FAIL, Action.REBOOT, "An AMD GPU is lost from the bus"),
    Kind.NOT_STARTED: (FAIL, Action.REBOOT, "The driver could not start an AMD GPU"),
}
# a reset does not take these back: the pages stay bad
_LASTING = (Kind.WORN_OUT, Kind.NEARLY_WORN_OUT)
_RESET_S = 60.0  # a reset that has just begun may still end


@dataclass(frozen=True, slots=True)
class Line:
    """One line; ``at_s`` counts from boot, -1 where it has no time."""

    at_s: float
    text: str
    pci: str
    kind: Kind


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Kind], ...]:
    return tuple((re.compile(text), kind) for text, kind in _TEXTS)


@cache
def _address() -> re.Pattern[str]:
    return re.compile(r"\bamdgpu ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]):")


def read(rows: list[list[object]]) -> tuple[Line, ...]:
    """The lines that mean something. One without an address is of the GPU that a line near it names."""
    found: list[Line] = []
    last = ""
    for row in rows:
        at_s, text = row[0], str(row[1])
        if "amdgpu" not in text and "RAS" not in text:
            continue
        address = _address().search(text)
        last = place(address[1]) if address is not None else last
        kind = _kind(text)
        if kind is not None:
            found.append(
                Line(float(at_s) if isinstance(at_s, (int, float)) else -1.0, text.strip(), last, kind)
            )
    return tuple(found)


def _kind(text: str) -> Kind | None:
    if "no uncorrectable" in text:
        return None
    for pattern, kind in _patterns():
        match = pattern.search(text)
        if match is None:
            continue
        count = match.groupdict().get("count")
        # 0 is the driver's all-clear
        return kind if count is None or int(count) % _ALL_ONES else None
    return None


def _judge(look: Look) -> Said:
    rows = look.facts.rows("kernel.lines", 2)
    by_gpu: dict[str, list[Line]] = {}
    for line in read([list(row) for row in rows]):
        by_gpu.setdefault(line.pci, []).append(line)
    now_s = look.facts.number("kernel.now_s") or 0.0
    for pci, lines in by_gpu.items():
        yield from _of_gpu(look, pci, lines, now_s)


def _of_gpu(look: Look, pci: str, lines: list[Line], now_s: float) -> Iterator[Finding]:
    done = max((at for at, line in enumerate(lines) if line.kind is Kind.RESET_DONE), default=-1)
    resets = sum(line.kind is Kind.RESET_DONE for line in lines)
    groups: dict[Kind, list[Line]] = {}
    for at, line in enumerate(lines):
        if at > done or line.kind in _LASTING:
            groups.setdefault(line.kind, []).append(line)
    if Kind.RESET_FAILED in groups:
        groups.pop(Kind.RESET_BEGUN, None)
    for kind, found in groups.items():
        if kind is Kind.QUEUE:
            yield _queue(look, pci, found)
        elif kind in _JUDGED:
            weight, action, title = _JUDGED[kind]
            if kind is Kind.RESET_BEGUN and 0 <= now_s - found[-1].at_s < _RESET_S:
                weight = WARN
            yield _found(look, pci, kind.value, title, weight, action, found)
    if resets >= look.limit("amd_resets_warn") > 0:
        chosen = [line for line in lines if line.kind is Kind.RESET_DONE]
        title = "An AMD GPU had to be reset repeatedly"
        yield _found(look, pci, "amd-resets", title, WARN, Action.INSPECT, chosen)
    elif resets and done >= 0:
        before = [line for line in lines[: done + 1] if line.kind not in _LASTING]
        yield replace(
            _found(look, pci, Kind.RESET_DONE.value, "An AMD GPU was reset", INFO, Action.NONE, before),
            blame=None,
        )


def _queue(look: Look, pci: str, found: list[Line]) -> Finding:
    """A queue that stood still and went on: mostly a program's endless loop, and the driver ended it."""
    soft = all("soft recovered" in line.text for line in found)
    result = _found(
        look, pci, Kind.QUEUE.value, "A queue of an AMD GPU was stuck", INFO if soft else WARN,
        Action.NONE if soft else Action.INSPECT, found,
    )  # fmt: skip
    return replace(result, blame=None if soft else USER)


def _found(
    look: Look, pci: str, tag: str, title: str, weight: object, action: Action, lines: list[Line]
) -> Finding:
    times = f"{len(lines)} times since boot" if len(lines) > 1 else "once since boot"
    kind = FAIL if weight is FAIL else WARN if weight is WARN else INFO
    found = look.found(
        "amdgpu", title, kind, NODE, action, look.gpu_at(pci), tag=tag, observed=times,
        expected="none since the last reset that worked", source=SOURCE,
        evidence=tuple(line.text for line in lines[-_SHOWN:]),
    )  # fmt: skip
    return found if found.gpu is not None else replace(found, pci=pci)


def _counters(look: Look) -> Said:
    """Memory errors of AMD GPUs, which NVML does not know: from the driver's own counters."""
    if not look.only_amd:
        return
    found = {place(str(row[0])): row for row in look.facts.rows("node.amd_errors", 3)}
    silent = [pci for pci in look.amd if pci not in found]
    if silent:
        yield Untold("ecc", f"the driver counts no memory errors for {', '.join(silent)}", True)
    for pci, row in found.items():
        if isinstance(row[1], int) and row[1] > 0:
            yield replace(
                look.found(
                    "ecc", "Uncorrectable memory errors since the driver was loaded", WARN, NODE,
                    Action.RESET_GPU, observed=f"{row[1]} uncorrectable", expected="0",
                    source="/sys: RAS counters", advice="the kernel log says whether the driver recovered",
                ),
                pci=pci,
            )  # fmt: skip


CHECKS = (
    Check("ecc", "No uncorrectable memory errors in AMD GPUs", _counters),
    Check("amdgpu", "No error of an AMD GPU in the kernel log", _judge, ("kernel.lines",)),
)
