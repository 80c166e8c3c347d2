"""Memory of the machine, and /dev/shm, through which DataLoader workers hand over batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.machine import Missing, Unreadable, as_int
from torchdoctor.probes.probe import Context, Cost, Probe, told

_MEMINFO = "/proc/meminfo"
_SHM = "/dev/shm"


def _kib(context: Context, *keys: str) -> FactValue:
    """Bytes of the fields of /proc/meminfo, the first one less the others."""
    text = context.machine.read(_MEMINFO)
    found = []
    for key in keys:
        match = re.search(rf"^{re.escape(key)}:\s+(\d+) kB", text, re.MULTILINE)
        if match is None:
            raise Unreadable(_MEMINFO, Reason.UNPARSABLE, f"no line {key}")
        found.append(int(match[1]) * 1024)
    return found[0] - sum(found[1:])


def _leftovers(context: Context) -> FactValue:
    return as_int(context.machine.answer("count", f"{_SHM}?torch_*"))


def _total(context: Context) -> FactValue:
    try:
        return _kib(context, "MemTotal")
    except Missing:  # no /proc: macOS and Windows; psutil knows them
        import psutil

        return int(psutil.virtual_memory().total)


def _look(context: Context) -> Iterator[Fact]:
    space = context.machine.space
    yield told("shm.size_bytes", lambda: space(_SHM).total, _SHM)
    yield told("shm.used_bytes", lambda: space(_SHM).used, _SHM)
    yield told("shm.free_bytes", lambda: space(_SHM).free, _SHM)
    yield told("shm.leftovers", partial(_leftovers, context), _SHM)
    yield told("memory.total_bytes", partial(_total, context), _MEMINFO)
    yield told("memory.available_bytes", partial(_kib, context, "MemAvailable"), _MEMINFO)
    yield told("memory.swap_total_bytes", partial(_kib, context, "SwapTotal"), _MEMINFO)
    yield told("memory.swap_used_bytes", partial(_kib, context, "SwapTotal", "SwapFree"), _MEMINFO)
    yield told("memory.locked_bytes", partial(_kib, context, "Unevictable"), _MEMINFO)
    for name, path in (("overcommit", "overcommit_memory"), ("max_maps", "max_map_count")):
        yield told(f"memory.{name}", partial(context.machine.number, f"/proc/sys/vm/{path}"))


_NAMES = (
    "shm.size_bytes", "shm.used_bytes", "shm.free_bytes", "shm.leftovers", "memory.total_bytes",
    "memory.available_bytes", "memory.swap_total_bytes", "memory.swap_used_bytes", "memory.locked_bytes",
    "memory.overcommit", "memory.max_maps",
)  # fmt: skip
PROBES = (Probe(_NAMES, Cost.CHEAP, _look),)
