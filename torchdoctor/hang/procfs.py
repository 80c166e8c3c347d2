"""Processes as Linux tells of them under /proc: state, what each thread waits for in the kernel, open files.

Nothing here touches a process: every answer is a file read, and one that is gone or not permitted is so told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from torchdoctor.model import Record
from torchdoctor.records import record

PROC: Final = "/proc"
MAX_TASKS: Final = 512
MAX_MAPS: Final = 8 << 20
_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# x86-64 and aarch64 numbers of the calls that a hang is told by (asm/unistd_64.h, asm-generic/unistd.h)
_NUMBERS: Final = {
    "x86_64": (
        "read=0 write=1 open=2 poll=7 pread64=17 readv=19 select=23 connect=42 accept=43 recvfrom=45 "
        "recvmsg=47 clone=56 fork=57 vfork=58 wait4=61 fcntl=72 flock=73 fsync=74 fdatasync=75 futex=202 "
        "clock_nanosleep=230 epoll_wait=232 waitid=247 openat=257 newfstatat=262 pselect6=270 ppoll=271 "
        "epoll_pwait=281 accept4=288 clone3=435"
    ),
    "aarch64": (
        "epoll_pwait=22 fcntl=25 flock=32 openat=56 read=63 write=64 readv=65 pread64=67 pselect6=72 "
        "ppoll=73 newfstatat=79 fsync=82 waitid=95 futex=98 clock_nanosleep=115 accept=202 connect=203 "
        "recvfrom=207 recvmsg=212 clone=220 wait4=260 clone3=435"
    ),
}
CALLS: Final = {
    machine: {int(number): name for name, _, number in (pair.partition("=") for pair in listed.split())}
    for machine, listed in _NUMBERS.items()
}
ENVIRONMENT: Final = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS", "HOME",
    "TORCH_EXTENSIONS_DIR", "XDG_CACHE_HOME", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "TORCH_FR_DUMP_TEMP_FILE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "PATH",
)  # fmt: skip


class Gone(Exception):
    """There is no process of this number (any more)."""


@record(frozen=True, slots=True)
class Task(Record):
    """One thread: its state letter, the kernel's function that it waits in, its call, its processor time.

    ``call`` is "" where that may not be read, ``argument`` the first number that the call was given.
    ``pauses`` counts how often it gave the processor up by itself.
    """

    tid: int
    name: str
    state: str
    waits_in: str = ""
    call: str = ""
    argument: int = -1
    cpu_s: float = 0.0
    pauses: int = 0


@record(frozen=True, slots=True)
class Process(Record):
    """One process. ``tasks[0]`` is its main thread. ``environment`` holds only what ranks and caches need."""

    pid: int
    parent: int
    user: int
    name: str
    state: str
    begun: int
    command: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    readable: bool = True  # may its threads' calls and files be looked at?

    def variable(self, name: str) -> str:
        return dict(self.environment).get(name, "")

    @property
    def main(self) -> Task | None:
        return self.tasks[0] if self.tasks else None

    @property
    def rank(self) -> int | None:
        for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            value = self.variable(name)
            if value.isdecimal() and len(value) < 8:
                return int(value)
        return None

    @property
    def cpu_s(self) -> float:
        return sum(task.cpu_s for task in self.tasks)


def read(pid: int) -> Process:
    """The process as it is now. Raises Gone."""
    fields = _stat(f"{PROC}/{pid}/stat")
    if fields is None:
        raise Gone(str(pid))
    name, rest = fields
    command = tuple(part for part in _text(f"{PROC}/{pid}/cmdline", 1 << 16).split("\0") if part)
    try:
        user = os.stat(f"{PROC}/{pid}").st_uid
    except OSError:
        raise Gone(str(pid)) from None
    tasks = tuple(_tasks(pid))
    blob = _text(f"{PROC}/{pid}/environ", 1 << 18)
    environment = tuple(
        (head, value)
        for head, _, value in (item.partition("=") for item in blob.split("\0"))
        if head in ENVIRONMENT
    )
    readable = os.access(f"{PROC}/{pid}/fd", os.R_OK | os.X_OK) and (
        rest[0] == "Z" or any(task.call for task in tasks)
    )
    return Process(
        pid, int(rest[1]), user, name, rest[0], int(rest[19]), command, tasks, environment, readable
    )


def _stat(path: str) -> tuple[str, list[str]] | None:
    """The name, which may hold anything, and the fields behind it."""
    text = _text(path, 4096)
    begin, end = text.find("("), text.rfind(")")
    rest = text[end + 1 :].split()
    return (text[begin + 1 : end], rest) if 0 <= begin < end and len(rest) > 20 else None


def _tasks(pid: int) -> Iterator[Task]:
    try:
        numbers = sorted(int(name) for name in os.listdir(f"{PROC}/{pid}/task") if name.isdecimal())
    except OSError:
        return
    for tid in sorted(numbers[:MAX_TASKS], key=lambda one: one != pid):
        folder = f"{PROC}/{pid}/task/{tid}"
        fields = _stat(f"{folder}/stat")
        if fields is None:
            continue
        name, rest = fields
        call, argument = _call(_text(f"{folder}/syscall", 256))
        cpu = (int(rest[11]) + int(rest[12])) / _TICKS
        waits_in = _text(f"{folder}/wchan", 128).strip("\0 \n")
        _, _, pauses = _text(f"{folder}/status", 4096).partition("\nvoluntary_ctxt_switches:")
        count = int(pauses.split("\n", 1)[0] or 0)
        yield Task(tid, name, rest[0], waits_in, call, argument, cpu, count)


def _call(text: str) -> tuple[str, int]:
    """``230 0x1 0x1 …``; "running" while it runs, "" when it may not be read."""
    parts = text.split()
    if not parts:
        return "", -1
    if parts[0] == "running" or parts[0] == "-1":
        return "running", -1
    number = int(parts[0]) if parts[0].isdecimal() else -1
    name = CALLS.get(os.uname().machine, {}).get(number, f"call {number}")
    try:
        argument = int(parts[1], 16)
    except (IndexError, ValueError):
        argument = -1
    return name, argument if 0 <= argument < 1 << 31 else -1


def _text(path: str, limit: int) -> str:
    try:
        with open(path, "rb") as stream:  # buffered: the kernel gives a page at a time
            return stream.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def pids() -> list[int]:
    """Every process of this machine that we can see."""
    try:
        return sorted(int(name) for name in os.listdir(PROC) if name.isdecimal())
    except OSError:
        return []


def parents() -> dict[int, int]:
    """Process -> its parent, of all that we can see."""
    found = {}
    for pid in pids():
        fields = _stat(f"{PROC}/{pid}/stat")
        if fields is not None:
            found[pid] = int(fields[1][1])
    return found


def descendants(roots: list[int], most: int) -> list[int]:
    """The roots and all that descends from them, parents first."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    pending = list(roots)
    while pending and len(found) < most:
        pid = pending.pop(0)
        if pid not in found:
            found.append(pid)
            pending.extend(children.get(pid, ()))
    return found


def file_of(pid: int, number: int) -> str:
    """What a descriptor of a process leads to; "" when it may not be read."""
    try:
        return os.readlink(f"{PROC}/{pid}/fd/{number}")
    except OSError:
        return ""


def open_files(pid: int) -> dict[int, str]:
    """Descriptor -> what it leads to."""
    try:
        numbers = [int(name) for name in os.listdir(f"{PROC}/{pid}/fd") if name.isdecimal()]
    except OSError:
        return {}
    return {number: path for number in numbers[:4096] if (path := file_of(pid, number))}


def maps(pid: int, *names: str) -> bool:
    """Has the process a library mapped whose name begins so?"""
    text = _text(f"{PROC}/{pid}/maps", MAX_MAPS)
    return any(f"/{name}" in text for name in names)


def mount_of(path: str) -> tuple[str, str]:
    """Place and type of the file system that a path lies on, without asking it."""
    best = ("", "")
    for line in _text(f"{PROC}/self/mountinfo", 1 << 20).splitlines():
        fields, _, rest = line.partition(" - ")
        parts, kinds = fields.split(), rest.split()
        if len(parts) < 5 or not kinds:
            continue
        place = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), parts[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best[0]):
            best = (place, kinds[0])
    return best


def holders_of(path: str) -> list[int]:
    """Processes that have a file open, of those that we may look at."""
    return [pid for pid in pids() if path in open_files(pid).values()]


def began(process: Process) -> float | None:
    """When the process began, in seconds since the epoch; None where the kernel does not say when it did."""
    for line in _text(f"{PROC}/stat", 1 << 20).splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) + process.begun / _TICKS
    return None


def ptrace_scope() -> str:
    """The setting of Yama: "" where the kernel has none."""
    return _text(f"{PROC}/sys/kernel/yama/ptrace_scope", 8).strip()
