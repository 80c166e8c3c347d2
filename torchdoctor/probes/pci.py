"""GPUs on the PCI bus, which are there whether or not a driver is."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes.machine import Json, as_int, as_list
from torchdoctor.probes.probe import Context, Cost, Probe, told

_FOLDER = "/sys/bus/pci/devices"
# Vendors of the PCI ID repository. AMD and Intel processors have display controllers that torch cannot use,
# so these two count only for what they are: makers of GPUs on the bus.
_VENDORS = {0x10DE: "nvidia", 0x1002: "amd", 0x8086: "intel"}


def _displays(context: Context) -> list[Json]:
    return as_list(context.machine.answer("displays", _FOLDER))


def _vendor(item: Json) -> str:
    return _VENDORS.get(as_int(as_list(item)[1]), "")


def _vendors(context: Context) -> FactValue:
    return tuple(sorted({vendor for vendor in map(_vendor, _displays(context)) if vendor}))


def _count(context: Context) -> FactValue:
    return sum(_vendor(item) == "nvidia" for item in _displays(context))


def _look(context: Context) -> Iterator[Fact]:
    yield told("gpu.pci_count", lambda: _count(context), _FOLDER)
    yield told("gpu.vendors", lambda: _vendors(context), _FOLDER)


PROBES = (Probe(("gpu.pci_count", "gpu.vendors"), Cost.CHEAP, _look),)
