"""A policy made of a healthy node: what it has is what is expected."""

from __future__ import annotations

from torchdoctor.gate import facts, passive
from torchdoctor.gate.finding import Verdict, decide
from torchdoctor.gate.outcome import GateOutcome, reason
from torchdoctor.gate.policy import Policy
from torchdoctor.probes.machine import LiveMachine, Machine

_LIMIT_S = 8.0


def learn(machine: Machine | None = None) -> tuple[str, str]:
    """The policy as TOML, and why there is none: one of both is empty. Blocks for seconds."""
    known = facts.collect(machine or LiveMachine(), _LIMIT_S)
    count = int(known.number("gpu.nvml_count") or 0)
    look = passive.look_at(known, Policy(), count)
    findings, untold = passive.judge(look)
    if decide(findings, untold) is not Verdict.FIT or not count:
        return "", "no GPU is seen" if not count else reason(GateOutcome("passive", findings, untold))
    lines = ["# What this node had when it was found fit.", "[expect]", f"gpus = {count}"]
    names = {str(name) for _, name in known.each("gpu.names")}
    if len(names) == 1:
        lines.append(f'model = "{names.pop()}"')
    version = known.text("driver.nvml_version")
    if version:
        lines.append(f'driver = "{version}"')
    for key, name in (("nvlinks", "gpu.nvlinks_active"), ("pcie_width", "gpu.pcie_width")):
        values = {int(value) for _, value in known.each(name) if isinstance(value, (int, float))}
        if len(values) == 1:
            lines.append(f"{key} = {values.pop()}")
    modes = {value for _, value in known.each("gpu.mig_modes")}
    if len(modes) == 1:
        lines.append(f"mig = {str(modes.pop()).lower()}")
    active = [row for row in known.rows("node.ib_ports", 6) if row[2] == "ACTIVE"]
    if active:
        lines.append(f"ib_ports = {len(active)}")
        rates = {int(float(row[4])) for row in active if isinstance(row[4], (int, float))}
        if len(rates) == 1:
            lines.append(f"ib_rate_gbps = {rates.pop()}")
    network = ("nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "weka")
    mounts = [f'"{row[0]}"' for row in known.rows("mounts.answers", 2) if row[1] in network]
    if mounts:
        lines.append(f"mounts = [{', '.join(mounts)}]")
    return "\n".join(lines) + "\n", ""
