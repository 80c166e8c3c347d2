"""Judging the PCIe link of every GPU: its width, its generation under load, and the errors on it."""

from __future__ import annotations

import re

from torchdoctor.extract.xid import place
from torchdoctor.gate.finding import Action, Finding
from torchdoctor.gate.look import FAIL, NODE, WARN, Check, Look, Said
from torchdoctor.model import counted

_BUSY = 10  # per cent of utilization: the link has left its idle generation
# "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
# "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0"
_ADDRESS = r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_OWN_LINE = re.compile(
    rf"^\S+ {_ADDRESS}:(?: AER:)? PCIe Bus Error: severity=(Corrected|Uncorrect\S+ \(\S+\))"
)
_OF_PORT = re.compile(
    rf"AER: (?:Multiple )?(Corrected|Uncorrect\S+ \(\S+\)) error (?:message )?received: {_ADDRESS}"
)
_SHOWN = 3
_TITLES = {
    "uncorrected": "Uncorrectable PCIe errors",
    "corrected": "Many corrected errors on the PCIe link",
}


def _width(look: Look) -> Said:
    pinned = look.policy.expected("pcie_width")
    for gpu in range(look.count):
        now, most = (
            look.facts.number_of("gpu.pcie_width", gpu),
            look.facts.number_of("gpu.pcie_width_max", gpu),
        )
        wanted, source = (
            (pinned, f"{look.policy.path}: expect.pcie_width")
            if pinned
            else (most, "the widest that both ends support")
        )
        if now and wanted and now < wanted:
            same = [look.facts.number_of("gpu.pcie_width", one) for one in range(look.count) if one != gpu]
            alone = pinned or not same or any(width and width > now for width in same)
            # a slot with fewer lanes, in every GPU alike, is how the machine is built
            yield look.found(
                "pcie-width", "The PCIe link is narrower than it could be", FAIL if alone else WARN, NODE,
                Action.INSPECT,
                gpu, observed=f"x{now:g}", expected=f"x{wanted:g}", source=source,
                advice="reseat the card or its riser; look for AER lines in the kernel log",
            )  # fmt: skip
        generation = look.facts.number_of("gpu.pcie_generation", gpu)
        best = look.facts.number_of("gpu.pcie_generation_max", gpu)
        busy = (look.facts.number_of("gpu.utilization", gpu) or 0) >= _BUSY
        if generation and best and generation < best and busy:
            yield look.found(
                "pcie-generation", "The PCIe link is slower under load than it could be", WARN, NODE,
                Action.INSPECT,
                gpu, observed=f"generation {generation:g}", expected=f"generation {best:g}",
                source="NVML, while busy",
            )  # fmt: skip


def _errors(look: Look) -> Said:
    """What the kernel counted on the link since boot, at the GPU and at the port above it.

    An error that was repaired costs time; one that was not may cost the job. Neither proves a bad card by
    itself, as a link also ends with errors when a GPU is reset on purpose: both warn, and the policy may
    raise them.
    """
    yield from look.untold("pcie-errors", "node.pcie_errors")
    lines = _lines(look)
    limit = look.limit("pcie_corrected_warn")
    told: set[tuple[str, str]] = set()
    for row in look.facts.rows("node.pcie_errors", 5):
        address, device = place(str(row[0])), str(row[1])
        corrected, nonfatal, fatal = (int(one) if isinstance(one, int) else 0 for one in row[2:5])
        where = "" if place(device) == address else f" at the port above it, {device}"
        if nonfatal > 0 or fatal > 0:
            told.add((address, "uncorrected"))
            yield _found(
                look, address, "pcie-uncorrected", _TITLES["uncorrected"],
                f"{nonfatal} not fatal, {fatal} fatal since boot{where}", "none", "/sys: AER counters",
                lines.get((address, "uncorrected"), ()),
            )  # fmt: skip
        if corrected >= limit > 0:
            told.add((address, "corrected"))
            yield _found(
                look, address, "pcie-corrected", _TITLES["corrected"],
                f"{corrected} since boot{where}", f"below {limit:g}",
                look.limit_source("pcie_corrected_warn"), lines.get((address, "corrected"), ()),
            )  # fmt: skip
    for (address, kind), found in lines.items():
        if (address, kind) in told or (kind == "corrected" and len(found) < limit):
            continue
        if look.gpu_at(address) is None and not _on_bus(look, address):
            continue  # of a disk or a network card
        yield _found(
            look, address, f"pcie-{kind}",
            _TITLES[kind],
            f"{counted(len(found), 'line')} in the kernel log",
            "none" if kind == "uncorrected" else f"below {limit:g}",
            "kernel log: AER", found,
        )  # fmt: skip


def _lines(look: Look) -> dict[tuple[str, str], tuple[str, ...]]:
    """Lines of the kernel log about errors on a link, by device and by whether they were repaired."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in look.facts.rows("kernel.lines", 2):
        text = str(row[1])
        if "AER:" not in text and "PCIe Bus Error" not in text:
            continue
        own, port = _OWN_LINE.match(text), _OF_PORT.search(text)
        if own is not None:
            address, severity = own[1], own[2]
        elif port is not None:
            address, severity = port[2], port[1]
        else:
            continue
        kind = "corrected" if severity == "Corrected" else "uncorrected"
        found.setdefault((place(address), kind), []).append(text.strip())
    return {key: tuple(lines) for key, lines in found.items()}


def _on_bus(look: Look, address: str) -> bool:
    return any(place(str(row[0])) == address for row in look.facts.rows("node.pci_gpus", 1))


def _found(
    look: Look, address: str, tag: str, title: str, observed: str, expected: str, source: str,
    lines: tuple[str, ...],
) -> Finding:  # fmt: skip
    from dataclasses import replace

    found = look.found(
        "pcie-errors", title, WARN, NODE, Action.INSPECT, look.gpu_at(address), tag=tag, observed=observed,
        expected=expected, source=source, evidence=(observed, *lines[-_SHOWN:]),
        advice="reseat the card or its riser; torchdoctor gate --tier standard measures its copies",
    )  # fmt: skip
    return found if found.gpu is not None else replace(found, pci=address)


CHECKS = (
    Check("pcie-width", "PCIe links have their full width", _width, ("gpu.pcie_width",)),
    Check("pcie-errors", "PCIe links show no errors", _errors),
)
