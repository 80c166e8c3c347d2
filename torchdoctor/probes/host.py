"""The operating system, the container around us if there is one, and the processors we may use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes.machine import Missing, Mount, Unreadable, as_float, as_int, as_list, as_text
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told


def _system(context: Context, part: int) -> FactValue:
    """Of system, kernel release, architecture and host name one."""
    return as_text(as_list(context.machine.value("system"))[part]) or None


def _is_wsl(context: Context) -> FactValue:
    release = str(_system(context, 1) or "").lower()
    return "microsoft" in release or "wsl" in release


def _distribution(context: Context) -> FactValue:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)"?', context.machine.read("/etc/os-release"), re.MULTILINE)
    return match[1] if match else None


def _container(context: Context) -> FactValue:
    """Which kind of container this is, by the marks each leaves; None when there is no mark.

    An unknown kind is "other": systemd-nspawn and others set the variable "container" for the first process.
    """
    machine = context.machine
    if context.variable("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    for path, kind in (
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/.singularity.d", "singularity"),
    ):
        if machine.exists(path):
            return kind
    named = context.variable("container")
    if named:
        return named if named in ("lxc", "podman", "docker") else "other"
    groups = machine.read_or("/proc/1/cgroup")
    for word, kind in (
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("/lxc/", "lxc"),
    ):
        if word in groups:
            return kind
    return None


def _glibc(context: Context) -> FactValue:
    text = str(context.machine.value("glibc"))
    match = re.search(r"\d+\.\d+", text)
    return match[0] if match else None


def _uptime(context: Context) -> FactValue:
    return float(context.machine.read("/proc/uptime").split()[0])


def _reboot_pending(context: Context) -> FactValue:
    """What Debian and its like note; others note nothing."""
    if not context.machine.exists("/run/reboot-required"):
        return None
    packages = context.machine.read_or("/run/reboot-required.pkgs").split()
    return tuple(dict.fromkeys(packages)) or ("not told which",)


def _seconds_left(context: Context) -> FactValue:
    end = context.variable("SLURM_JOB_END_TIME")
    return float(end) - as_float(context.machine.value("now")) if end else None


def _cpu_model(context: Context) -> FactValue:
    text = context.machine.head("/proc/cpuinfo")
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else None


def _avx2(context: Context) -> FactValue:
    if _system(context, 2) not in ("x86_64", "amd64", "i686"):
        return None
    match = re.search(r"^flags\s*:(.*)$", context.machine.head("/proc/cpuinfo"), re.MULTILINE)
    if match is None:
        raise ValueError("no flags in /proc/cpuinfo")
    return "avx2" in match[1].split()


def _look(context: Context) -> Iterator[Fact]:
    machine = context.machine
    for name, part in (("os.name", 0), ("os.kernel", 1), ("os.machine", 2), ("os.hostname", 3)):
        yield told(name, partial(_system, context, part), "uname")
    yield told("os.wsl", partial(_is_wsl, context), "uname")
    yield told("os.distribution", partial(_distribution, context), "/etc/os-release")
    yield told("os.container", partial(_container, context), "marks of containers")
    yield told("os.glibc", partial(_glibc, context), "confstr")
    yield told("os.uptime_seconds", partial(_uptime, context), "/proc/uptime")
    yield told("os.user_named", lambda: bool(machine.value("user named")), "getpass")
    yield told("os.reboot_pending", partial(_reboot_pending, context), "/run/reboot-required")
    yield told("job.seconds_left", partial(_seconds_left, context), "SLURM_JOB_END_TIME")
    yield told("cpu.count", lambda: as_int(machine.value("cpus")), "cpu count")
    yield told("cpu.affinity", lambda: as_int(machine.value("affinity")), "sched_getaffinity")
    yield told("cpu.model", partial(_cpu_model, context), "/proc/cpuinfo")
    yield told("cpu.avx2", partial(_avx2, context), "/proc/cpuinfo")


def mount_of(context: Context, path: str) -> Mount | None:
    """The mount that a path lies on; None when that cannot be told."""
    best: Mount | None = None
    for mount in context.machine.mounts():
        inside = path == mount.place or path.startswith(mount.place.rstrip("/") + "/")
        # of mounts over each other the last one is in force
        if inside and (best is None or len(mount.place) >= len(best.place)):
            best = mount
    return best


def nearest(context: Context, path: str) -> str:
    """The path, or the nearest folder above it that is there."""
    while path not in ("", "/"):
        try:
            context.machine.status(path)
            return path
        except Missing:
            path = path.rpartition("/")[0]
        except Unreadable:
            return path
    return "/"


PROBES = (Probe(tuple(CATALOGUE["host"]), Cost.CHEAP, _look),)
