"""Locks that builds of C++ and CUDA extensions left behind.

Up to torch 2.13 the mere existence of a file named ``lock`` in the build folder makes every later build wait
(torch/utils/file_baton.py); the builder keeps it open, and it holds no process number. From 2.14 on the file
carries a lock of the operating system, and a leftover is harmless (torch/utils/cpp_extension.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchdoctor.model import Fact
from torchdoctor.probes.host import mount_of, nearest
from torchdoctor.probes.machine import Missing, as_float, as_text
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "fuse.ceph", "glusterfs",
    "fuse.glusterfs", "afs", "9p", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.mount-s3",
    "fuse.juicefs", "wekafs", "panfs", "orangefs", "virtiofs", "fuse.lustre",
})  # fmt: skip
_DEPTH = 2  # <root>/<name>/lock, or <root>/py311_cu126/<name>/lock


@dataclass(frozen=True, slots=True)
class Lock:
    path: str
    age_s: float


def root(context: Context) -> str:
    """The folder torch builds extensions under: get_default_build_root in torch/utils/cpp_extension.py."""
    chosen = context.variable("TORCH_EXTENSIONS_DIR")
    return chosen or f"{cache_home(context)}/torch_extensions"


def cache_home(context: Context) -> str:
    return context.variable("XDG_CACHE_HOME") or f"{home(context)}/.cache"


def home(context: Context) -> str:
    return as_text(context.machine.value("home"))


def _locks(context: Context, folder: str, depth: int = _DEPTH) -> Iterator[Lock]:
    for name in context.machine.names(folder):
        path = f"{folder}/{name}"
        try:
            status = context.machine.status(path)
        except Missing:
            continue
        if name == "lock" and not status.is_folder and depth < _DEPTH:
            yield Lock(path, max(0.0, as_float(context.machine.value("now")) - status.modified))
        elif status.is_folder and depth > 0:
            yield from _locks(context, path, depth - 1)


def _owner(context: Context, locks: list[Lock], system: str) -> tuple[str, tuple[int, ...], str]:
    """Who holds a lock open: alive, none, or unknown with the reason; and the numbers of the holders."""
    holders: list[int] = []
    complete = True
    for lock in locks:
        pids, seen_all = context.machine.holders(lock.path)
        holders.extend(pids)
        complete = complete and seen_all
    if holders:
        return "alive", tuple(dict.fromkeys(holders)), ""
    if system in NETWORK:
        return "unknown", (), f"the folder is on {system}: the builder may run on another host"
    if not complete:
        return "unknown", (), "not all processes may be looked at"
    if context.text("os.container") and system != "overlay":
        return "unknown", (), "the folder is mounted into this container: the builder may run outside"
    return "none", (), ""


def _look(context: Context) -> Iterator[Fact]:
    folder = root(context)
    yield Fact.known("extension.folder", folder)
    try:
        mount = mount_of(context, context.machine.real_path(nearest(context, folder)))
    except Missing:  # no /proc on this system
        mount = None
    system = mount.kind if mount else ""
    yield told("extension.filesystem", lambda: system or None, "/proc/self/mountinfo")
    try:
        locks = list(_locks(context, folder))
    except Missing:
        locks = []
    yield Fact.known("extension.locks", tuple(lock.path for lock in locks), folder)
    if not locks:
        for name in ("extension.lock_age_seconds", "extension.lock_owner", "extension.lock_pids"):
            yield Fact.absent(name, folder, "no lock")
        return
    yield Fact.known("extension.lock_age_seconds", round(max(lock.age_s for lock in locks), 1), folder)
    owner, pids, why = _owner(context, locks, system)
    yield Fact.known("extension.lock_owner", owner, "/proc/*/fd", why)
    yield Fact.known("extension.lock_pids", pids, "/proc/*/fd")


PROBES = (Probe(tuple(CATALOGUE["extension"]), Cost.CHEAP, _look, needs=("os.container",)),)
