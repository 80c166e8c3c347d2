"""Healthy machines with the noise that was measured on healthy machines: no two looks are the same."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gate_machines import MACHINES, Altered, result

from torchdoctor.gate.outcome import GateOutcome

# Measured on H100 and H200, driver 580: copies with the host 54 to 56 GB/s, device copies 4261 to 4273 GB/s,
# products 778 to 819 TFLOP/s, idle at 34 to 41 C, 70 to 82 W and 345 MHz. Wider here than there. What was not
# measured is assumed on the wide side: temperatures and power under load, corrected errors, replays of links,
# clocks, disks.
_SPEED = {"h2d": (55.4, 0.01), "gemm-rate": (796.0, 0.03), "hbm": (4261.0, 0.02), "d2h": (55.2, 0.01)}
_JOB_ERRORS = (13, 31, 43, 45, 8)


@dataclass(frozen=True)
class Drawn:
    """What one look was drawn from."""

    machine: str
    busy: bool


def draw(dice: random.Random, base: dict[str, Altered]) -> tuple[Drawn, Altered]:
    """A healthy machine as it may be found at any time: idle before a job, or beside one that runs."""
    name = dice.choice(list(base))
    it = Altered.__new__(Altered)
    origin = base[name]
    it.known, it.ended = dict(origin.known), dict(origin.ended)
    it.options, it.policy, it.tier = dict(origin.options), origin.policy, origin.tier
    count = len(it.known["gpu.uuids"].value)
    busy = dice.random() < 0.5
    it.options["before_job"] = not busy

    def each(low: float, high: float) -> list[int]:
        return [round(dice.uniform(low, high)) for _ in range(count)]

    total = it.known["gpu.memory_total_bytes"].value
    it.put("gpu.temperature_c", each(40, 74) if busy else each(24, 42))
    it.put("gpu.power_w", each(200, 700) if busy else each(65, 82))
    it.put("gpu.sm_clock_mhz", each(1200, 1980) if busy else each(210, 345))
    it.put("gpu.utilization", each(80, 100) if busy else [0] * count)
    it.put(
        "gpu.memory_used_bytes",
        [round(one * dice.uniform(0.2, 0.98)) for one in total] if busy else each(0, 490e6),
    )
    it.put("gpu.pcie_generation", [5] * count if busy else [dice.choice((1, 3, 5)) for _ in range(count)])
    it.put(
        "gpu.throttle_reasons", [dice.choice(([], ["sw-power-cap"])) if busy else [] for _ in range(count)]
    )
    it.put("gpu.ecc_corrected", [dice.choice((0, 0, 0, dice.randrange(2000))) for _ in range(count)])
    if "gpu.nvlink_errors" in it.known:
        it.put("gpu.nvlink_errors", [dice.choice((0, 0, dice.randrange(40))) for _ in range(count)])
    # repaired errors of links, which a long uptime collects
    addresses = [str(one)[4:] for one in it.known["gpu.pci"].value]
    it.put(
        "node.pcie_errors",
        [[one, one, dice.choice((0, 0, 3, dice.randrange(800))), 0, 0] for one in addresses],
    )
    it.put("node.clock_offset_s", dice.gauss(0, 0.002))
    it.put("node.uptime_s", dice.uniform(60, 1e7))
    it.put("node.zombies", dice.choice((0, 0, 1, 12)))
    it.put("node.taint", dice.choice((0, 4096, 4097, 12288)))
    ports = [[*row[:6], dice.choice((0, 0, 1, 2))] for row in it.known["node.ib_ports"].value]
    it.put("node.ib_ports", ports)
    answers = []
    for place, kind, options, space in it.known["mounts.answers"].value:
        answers.append(
            [place, kind, options, [space[0], round(space[0] * dice.uniform(0.12, 0.95)), *space[2:]]]
        )
    it.put("mounts.answers", answers)
    _log(dice, it)
    if not busy:
        _measured(dice, it, count)
    return Drawn(name, busy), it


def _log(dice: random.Random, it: Altered) -> None:
    """Errors of jobs, which prove nothing, and what the driver says of resets that were made."""
    lines = []
    addresses = [str(one)[4:-2] for one in it.known["gpu.pci"].value]
    for _ in range(dice.choice((0, 0, 0, 1, 2, 6))):
        pci, pid = dice.choice(addresses), dice.randrange(1000, 9999)
        lines.append(
            f"NVRM: Xid (PCI:{pci}): {dice.choice(_JOB_ERRORS)}, pid={pid}, name=python3, Ch 00000008"
        )
    for _ in range(dice.choice((0, 0, 0, 2, 9))):
        lines.append(
            f"nvidia {dice.choice(addresses)}.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"
        )
    if dice.random() < 0.05:
        pci = dice.choice(addresses)
        lines.append(f"NVRM: Xid (PCI:{pci}): 48, pid='<unknown>', name=<unknown>, DBE")
        wish = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
        lines.append(f"NVRM: Xid (PCI:{pci}): 154, {wish}")
    it.log(*lines, at_s=dice.uniform(10, 20))


def _measured(dice: random.Random, it: Altered, count: int) -> None:
    """The active set, with the speeds of siblings as far apart as they are, judged as self-tests do."""
    from statistics import median

    from torchdoctor.selftest.thresholds import RELATIVE

    lines = []
    for name, (middle, spread) in _SPEED.items():
        speeds = [dice.gauss(middle, middle * spread) for _ in range(count)]
        for gpu, speed in enumerate(speeds):
            others = [one for number, one in enumerate(speeds) if number != gpu]
            share = speed / median(others) if others else 1.0
            fail, warn = RELATIVE[name]
            verdict = "fail" if share < fail else "warn" if share < warn else "pass"
            lines.append(result(f"{name}@cuda:{gpu}", verdict, "node" if verdict == "fail" else None))
    it.active(*lines)


def originals() -> dict[str, Altered]:
    return {name: Altered(name) for name in MACHINES}


def look(number: int, base: dict[str, Altered]) -> tuple[Drawn, GateOutcome]:
    """The verdict on one draw; the same number always gives the same one."""
    drawn, it = draw(random.Random(number), base)
    return drawn, it.judge()
