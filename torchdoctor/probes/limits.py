"""Resource limits of this process, which a job started from the same shell inherits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes.machine import as_int, as_list
from torchdoctor.probes.probe import Context, Cost, Probe, told

SOFT, HARD = 0, 1

# fact -> name in setrlimit(2), and which of the two limits
_LIMITS: dict[str, tuple[str, int]] = {
    "limits.nofile": ("RLIMIT_NOFILE", SOFT),
    "limits.nofile_hard": ("RLIMIT_NOFILE", HARD),
    "limits.memlock_bytes": ("RLIMIT_MEMLOCK", SOFT),
    "limits.nproc": ("RLIMIT_NPROC", SOFT),
    "limits.stack_bytes": ("RLIMIT_STACK", SOFT),
    "limits.address_space_bytes": ("RLIMIT_AS", SOFT),
    "limits.core_bytes": ("RLIMIT_CORE", SOFT),
}


def _bound(context: Context, name: str, which: int) -> FactValue:
    return as_int(as_list(context.machine.value(f"limit:{name}"))[which])


def _look(context: Context) -> Iterator[Fact]:
    for fact, (name, which) in _LIMITS.items():
        yield told(fact, partial(_bound, context, name, which), name)


PROBES = (Probe(tuple(_LIMITS), Cost.FREE, _look),)
