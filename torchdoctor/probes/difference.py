"""What changed between two recorded machines: "it worked yesterday", "it works on that node"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchdoctor.model import Fact, Reason, State
from torchdoctor.probes.fact_table import show
from torchdoctor.probes.names import CATALOGUE

_ITEMS = 6

# Readings that differ between any two looks at one machine.
_NOISE = frozenset({
    "os.uptime_seconds", "os.hostname", "memory.available_bytes", "memory.swap_used_bytes",
    "memory.locked_bytes", "shm.used_bytes", "shm.free_bytes", "shm.leftovers", "cgroup.memory_used_bytes",
    "cgroup.memory_peak_bytes", "cgroup.pids_used", "gpu.temperature_c", "gpu.power_w", "gpu.sm_clock_mhz",
    "gpu.memory_used_bytes", "gpu.memory_free_bytes", "gpu.processes", "gpu.others_memory_bytes",
    "gpu.others_memory_share", "gpu.pcie_generation", "gpu.uuids", "torch.import_seconds",
    "extension.lock_age_seconds", "extension.lock_pids", "disk.tmp_free_bytes", "disk.home_free_bytes",
    "disk.work_free_bytes", "disk.cache_free_bytes", "disk.cache_fullest", "env.SLURM_JOB_ID",
    "env.MASTER_ADDR", "env.MASTER_PORT",
})  # fmt: skip
# What most often is the reason, in this order; then the environment, the libraries, and the rest.
_FIRST = (
    "torch.import_ok", "torch.import_error", "torch.cuda_available", "torch.cuda_error", "driver.nvml_error",
    "driver.version", "driver.cuda", "driver.library_version", "torch.version", "torch.cuda", "torch.hip",
    "torch.cudnn", "torch.nccl", "torch.arch_list", "gpu.count", "gpu.names", "gpu.visible_count",
    "driver.covers_torch_cuda", "torch.covers_gpu", "python.version",
)  # fmt: skip
_GROUPS = (
    "env",
    "library",
    "openmp",
    "torch",
    "driver",
    "gpu",
    "fabric",
    "shm",
    "limits",
    "cgroup",
    "memory",
    "cpu",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs. ``good`` and ``bad`` are for people; a list shows what was added and removed."""

    name: str
    good: Fact
    bad: Fact
    noise: bool

    @property
    def text(self) -> str:
        one, other = self.good.value, self.bad.value
        if isinstance(one, tuple) and isinstance(other, tuple) and len({*one, *other}) > 1:
            gone = [f"- {show(self.name, item)}" for item in one if item not in other]
            come = [f"+ {show(self.name, item)}" for item in other if item not in one]
            if gone or come:
                return "  ".join((*_some(gone), *_some(come)))
        return f"{said(self.good)} → {said(self.bad)}"


def _some(items: list[str]) -> list[str]:
    """The first of many."""
    return (
        items
        if len(items) <= _ITEMS
        else [*items[: _ITEMS - 1], f"{items[0][0]} {len(items) - _ITEMS + 1} more"]
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes, the most telling first; noise; and names that one side was never asked for."""

    changes: tuple[Change, ...]
    noise: tuple[Change, ...]
    untold: tuple[str, ...]


def said(fact: Fact) -> str:
    """A fact in one phrase."""
    if fact.state is State.ABSENT:
        return "not there"
    if fact.state is State.UNKNOWN:
        return f"could not tell ({fact.reason.value if fact.reason else 'not-asked'})"
    return show(fact.name, fact.value)


def compare(good: Sequence[Fact], bad: Sequence[Fact]) -> Difference:
    """What differs. A fact that was not asked on one side is no difference; one that could not be told is."""
    theirs: Mapping[str, Fact] = {fact.name: fact for fact in bad}
    changes: list[Change] = []
    untold: list[str] = []
    for fact in good:
        other = theirs.get(fact.name)
        if other is None or (fact.state is other.state and fact.value == other.value):
            continue
        if Reason.NOT_ASKED in (fact.reason, other.reason):
            untold.append(fact.name)
            continue
        if fact.state is other.state is State.UNKNOWN:
            continue
        changes.append(Change(fact.name, fact, other, fact.name in _NOISE or _follows(fact, other)))
    changes.sort(key=lambda change: _rank(change.name))
    return Difference(
        tuple(change for change in changes if not change.noise),
        tuple(change for change in changes if change.noise),
        tuple(untold),
    )


def _follows(fact: Fact, other: Fact) -> bool:
    """A claim that arises only because the thing it is about came or went; that thing is told itself."""
    return (
        fact.name in CATALOGUE["claims"]
        and fact.name not in _FIRST
        and State.ABSENT in (fact.state, other.state)
    )


def _rank(name: str) -> tuple[int, int, str]:
    if name in _FIRST:
        return (0, _FIRST.index(name), name)
    group = name.partition(".")[0]
    if name.endswith(".version") and group not in ("cgroup", "toolkit"):
        return (1, 0, name)
    return (2, _GROUPS.index(group) if group in _GROUPS else len(_GROUPS), name)
