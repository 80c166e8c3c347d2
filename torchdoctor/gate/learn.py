"""A policy made of a healthy node: what it has is what is expected."""

from __future__ import annotations

import json

from torchdoctor.gate import facts, passive
from torchdoctor.gate.finding import Verdict, decide
from torchdoctor.gate.outcome import GateOutcome, reason
from torchdoctor.gate.policy import Policy
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Machine

_LIMIT_S = 8.0


def learn(machine: Machine | None = None) -> tuple[str, str]:
    """The policy as TOML, and why there is none: one of both is empty. Blocks for seconds."""
    known = facts.collect(machine or LiveMachine(), _LIMIT_S)
    count = int(known.number("gpu.nvml_count") or 0)
    look = passive.look_at(known, Policy(), count)
    findings, untold = passive.judge(look)
    seen = len(look.amd) if look.only_amd else count
    if not seen:
        why = known.text("driver.nvml_error")
        return "", (
            "no GPU is visible"
            + (f" ({why})" if why else "")
            + "; on a node with processors alone write the "
            "policy by hand: [expect] gpus = 0"
        )
    if decide(findings, untold) is not Verdict.FIT:
        return "", f"the node is not fit: {reason(GateOutcome('passive', findings, untold))}"
    lines = ["# What this node had when it was judged fit.", "[expect]", f"gpus = {seen}"]
    names = {str(name) for _, name in known.each("gpu.names")}
    if len(names) == 1:
        lines.append(f"model = {_quoted(names.pop())}")
    version = known.text("driver.nvml_version")
    if version:
        lines.append(f"driver = {_quoted(version)}")
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
    mounts = [_quoted(str(row[0])) for row in known.rows("mounts.answers", 2) if row[1] in network]
    if mounts:
        lines.append(f"mounts = [{', '.join(mounts)}]")
    return "\n".join(lines) + "\n", ""


def _quoted(text: str) -> str:
    """As a basic string of TOML: one of JSON, with DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
