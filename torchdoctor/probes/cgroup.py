"""Memory, processor and process limits of the control group this process is in, of either version.

Sources: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the Linux kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.machine import Missing, Mount, Unreadable
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

# A v1 group without a limit says the highest page-aligned number; no machine has so much.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Groups:
    """Where the files of our groups lie: folders from our own group up to the mount, for each controller."""

    version: str
    memory: tuple[str, ...]
    cpu: tuple[str, ...]
    pids: tuple[str, ...]

    @property
    def unified(self) -> bool:
        return self.version == "v2"


def _groups(context: Context) -> Groups:
    """Raises Missing when there are no control groups."""
    own = _own(context.machine.read("/proc/self/cgroup"))
    mounts = _mounts(context.machine.mounts())
    unified = "" in mounts and "" in own
    legacy = [name for name in ("memory", "cpu", "pids") if name in mounts and name in own]
    if not unified and not legacy:
        raise Missing("/sys/fs/cgroup")

    def way(controller: str) -> tuple[str, ...]:
        key = controller if controller in legacy else ""
        if key not in mounts or key not in own:
            return ()
        return _way(*mounts[key], own[key])

    version = "v2" if not legacy else ("hybrid" if unified else "v1")
    return Groups(version, way("memory"), way("cpu"), way("pids"))


def _own(text: str) -> dict[str, str]:
    """Controller -> path of our group; the unified hierarchy has the name ""."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _mounts(mounts: tuple[Mount, ...]) -> dict[str, tuple[str, str]]:
    """Controller -> (mount point, root of the mount within the hierarchy)."""
    found: dict[str, tuple[str, str]] = {}
    for mount in mounts:
        if mount.kind == "cgroup2":
            found[""] = (mount.place, mount.root)
        elif mount.kind == "cgroup":
            for controller in mount.controllers:
                found[controller] = (mount.place, mount.root)
    return found


def _way(mount: str, root: str, path: str) -> tuple[str, ...]:
    """Folders from our group up to the mount point.

    In a container the mount shows a part of the hierarchy (``root``), or the path is one of the host that is
    not to be seen (``/../..``): then the mount point itself is our group.
    """
    if path.startswith(root.rstrip("/") + "/") and root != "/":
        path = path[len(root.rstrip("/")) :]
    elif path == root or "/.." in path:
        path = "/"
    folders = []
    parts = [part for part in path.split("/") if part]
    while parts:
        folders.append("/".join([mount, *parts]))
        parts.pop()
    return (*folders, mount)


def _limit(context: Context, folders: tuple[str, ...], names: tuple[str, ...]) -> tuple[int, str] | None:
    """The lowest limit on the way up, and the folder that sets it; None when there is none."""
    lowest: tuple[int, str] | None = None
    seen = False
    for folder in folders:
        text = _first(context, folder, names)
        if text is None:
            continue
        seen = True
        bound = None if text.strip() == "max" else int(text)
        if bound is not None and bound < _NO_LIMIT and (lowest is None or bound < lowest[0]):
            lowest = (bound, folder)
    if not seen and not _is_root_only(folders):
        raise Unreadable(
            folders[0] if folders else "/sys/fs/cgroup", Reason.NOT_PERMITTED, "no limit file to be seen"
        )
    return lowest


def _is_root_only(folders: tuple[str, ...]) -> bool:
    """The root group of v2 has no limit files, and no limits."""
    return len(folders) <= 1


def _first(context: Context, folder: str, names: tuple[str, ...]) -> str | None:
    for name in names:
        try:
            return context.machine.read(f"{folder}/{name}")
        except Missing:
            continue
    return None


_MEMORY_LIMIT = ("memory.max", "memory.limit_in_bytes")


def _memory_limit(context: Context) -> FactValue:
    found = _limit(context, _groups(context).memory, _MEMORY_LIMIT)
    return found[0] if found else None


def _of_memory(context: Context, *names: str) -> FactValue:
    """A number of the group that sets the memory limit, or of our own group when none does."""
    groups = _groups(context)
    found = _limit(context, groups.memory, _MEMORY_LIMIT)
    for folder in (found[1],) if found else groups.memory:
        text = _first(context, folder, names)
        if text is not None:
            return int(text)
    return None


def _oom_kills(context: Context) -> FactValue:
    for folder in _groups(context).memory:
        text = _first(context, folder, ("memory.events", "memory.oom_control"))
        match = re.search(r"^oom_kill (\d+)", text or "", re.MULTILINE)
        if match:
            return int(match[1])
    return None


def _cpu_quota(context: Context) -> FactValue:
    """The smallest share of time on the way up, in processors."""
    lowest: float | None = None
    for folder in _groups(context).cpu:
        text = _first(context, folder, ("cpu.max",))
        if text is None:
            quota = _first(context, folder, ("cpu.cfs_quota_us",))
            period = _first(context, folder, ("cpu.cfs_period_us",))
            text = f"{quota} {period}" if quota and period else ""
        parts = text.split()
        if len(parts) == 2 and parts[0] not in ("max", "-1") and int(parts[1]) > 0:
            share = int(parts[0]) / int(parts[1])
            lowest = share if lowest is None else min(lowest, share)
    return None if lowest is None else round(lowest, 3)


def _pids_limit(context: Context) -> FactValue:
    groups = _groups(context)
    found = _limit(context, groups.pids, ("pids.max",)) if groups.pids else None
    return found[0] if found else None


def _pids_used(context: Context) -> FactValue:
    for folder in _groups(context).pids:
        text = _first(context, folder, ("pids.current",))
        if text is not None:
            return int(text)
    return None


def _look(context: Context) -> Iterator[Fact]:
    source = "/sys/fs/cgroup"
    yield told("cgroup.version", lambda: _groups(context).version, "/proc/self/cgroup")
    yield told("cgroup.memory_limit_bytes", partial(_memory_limit, context), source)
    yield told(
        "cgroup.memory_used_bytes",
        partial(_of_memory, context, "memory.current", "memory.usage_in_bytes"),
        source,
    )
    yield told(
        "cgroup.memory_peak_bytes",
        partial(_of_memory, context, "memory.peak", "memory.max_usage_in_bytes"),
        source,
    )
    yield told("cgroup.oom_kills", partial(_oom_kills, context), source)
    yield told("cgroup.cpu_quota", partial(_cpu_quota, context), source)
    yield told("cgroup.pids_limit", partial(_pids_limit, context), source)
    yield told("cgroup.pids_used", partial(_pids_used, context), source)


PROBES = (Probe(tuple(CATALOGUE["cgroup"]), Cost.CHEAP, _look),)
