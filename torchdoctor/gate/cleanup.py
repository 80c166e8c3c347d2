"""Processes that hold GPUs: whose they are, whether their job still runs, and the end of those left over.

Only what is certainly left over is ever ended: a process whose Slurm job has ended, or one that lost the
launcher or the parent that started it. A program that was detached on purpose (nohup) is neither.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from torchdoctor.gate import facts
from torchdoctor.gate.facts import Facts
from torchdoctor.model import Record, State, TorchdoctorError, counted
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Command
from torchdoctor.probes.search_paths import program_on_path
from torchdoctor.probes.spawn import Running
from torchdoctor.records import record, replace
from torchdoctor.render.clean import clean

try:
    import psutil
except ImportError as missing:  # a zipapp made for another platform
    raise TorchdoctorError(f"psutil cannot be loaded, and processes are read through it: {missing}") from None

_LOOK_S = 8.0
_SQUEUE_S = 5.0
_GENTLY_S = 5.0
# what a launcher gives the processes that it starts
_LAUNCHED = ("TORCHELASTIC_RUN_ID", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK")
# programs that become the parent of what has lost its own
REAPERS = frozenset(
    ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "containerd-shim")
)


class CleanupError(TorchdoctorError):
    """The processes on the GPUs cannot be told."""


class Standing(str, Enum):
    IN_USE = "in use"
    LEFT_OVER = "left over"
    UNKNOWN = "not determined"
    ENDED = "ended"


_SIGNS = {Standing.IN_USE: "·", Standing.LEFT_OVER: "✗", Standing.UNKNOWN: "?", Standing.ENDED: "✓"}


@record(frozen=True, slots=True)
class Holder(Record):
    """A process that holds memory of GPUs, by NVML's numbers. ``job`` is Slurm's, "" for none."""

    pid: int
    gpus: tuple[int, ...]
    memory_bytes: int
    standing: Standing
    why: str
    name: str = ""
    user: str = ""
    begun_s: float | None = None  # since the epoch
    job: str = ""


def holders(
    known: Facts, job_runs: Callable[[str], bool | None], reapers: frozenset[str] = REAPERS
) -> tuple[Holder, ...]:
    """Every process on the GPUs; ``job_runs`` says of a Slurm job whether it runs. Raises CleanupError."""
    found = known.get("gpu.processes")
    if found.state is State.UNKNOWN:
        why = known.text("driver.nvml_error") or found.why or "no answer"
        raise CleanupError(f"NVML does not say which processes use the GPUs: {why}")
    gpus: dict[int, list[int]] = {}
    memory: dict[int, int] = {}
    for gpu, pid, used in (row[:3] for row in known.rows("gpu.processes", 3)):
        if isinstance(gpu, int) and isinstance(pid, int):
            gpus.setdefault(pid, []).append(gpu)
            memory[pid] = memory.get(pid, 0) + (used if isinstance(used, int) else 0)
    return tuple(
        _holder(pid, tuple(sorted(set(on))), memory[pid], job_runs, reapers)
        for pid, on in sorted(gpus.items())
    )


def _holder(
    pid: int,
    gpus: tuple[int, ...],
    memory_bytes: int,
    job_runs: Callable[[str], bool | None],
    reapers: frozenset[str],
) -> Holder:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            begun_s = process.create_time()
            one = Holder(
                pid, gpus, memory_bytes, Standing.UNKNOWN, "", process.name(), process.username(), begun_s
            )
            job = job_of(process)
            standing, why = _of_job(job, job_runs(job)) if job else _of_parent(process, reapers)
    except psutil.Error:
        why = "it is not seen from here: a process of another container, or it has just ended"
        return Holder(pid, gpus, memory_bytes, Standing.UNKNOWN, why)
    return replace(one, standing=standing, why=why, job=job)


def job_of(process: psutil.Process) -> str:
    """The Slurm job of a process, by its control group, which it cannot leave, or by its environment."""
    try:
        with open(f"/proc/{process.pid}/cgroup", encoding="utf-8", errors="replace") as stream:
            found = re.search(r"/job_(\d+)(?:/|$)", stream.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else _variables(process).get("SLURM_JOB_ID", "")


def _variables(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):  # of another user
        return {}


def _of_job(job: str, runs: bool | None) -> tuple[Standing, str]:
    if runs is None:
        return Standing.UNKNOWN, f"whether job {job} still runs: squeue gives no answer"
    if runs:
        return Standing.IN_USE, f"job {job} runs"
    return Standing.LEFT_OVER, f"job {job} has ended"


def _of_parent(process: psutil.Process, reapers: frozenset[str]) -> tuple[Standing, str]:
    parent = process.parent()
    if parent is not None and parent.name() not in reapers:
        return Standing.IN_USE, f"process {parent.pid} ({parent.name()}) started it"
    leader = os.getpgid(process.pid)
    if leader != process.pid and not psutil.pid_exists(leader):
        return Standing.LEFT_OVER, f"process {leader}, which started its group, has ended"
    if any(name in _variables(process) for name in _LAUNCHED):
        return Standing.LEFT_OVER, "the launcher that started it has ended"
    return Standing.UNKNOWN, "it has no job and no parent: a service, or detached on purpose"


def slurm_runs(job: str) -> bool | None:
    """Does Slurm know the job as one that has not ended? None where squeue does not say. Blocks five s."""
    squeue = program_on_path("squeue")
    if not squeue or not job.isdecimal():
        return None
    done = Running(Command("squeue", (squeue, "-h", "-j", job, "-o", "%T"), _SQUEUE_S)).finish()
    if done.exit_code == 0:
        return bool(done.stdout.strip())
    return False if "Invalid job id" in done.stderr else None


def look() -> Facts:
    """What NVML says, from a process of its own. Blocks up to eight seconds."""
    machine = LiveMachine()
    try:
        return facts.collect(machine, _LOOK_S, only=(facts.NVML,))
    finally:
        machine.close()


def ended(found: Sequence[Holder]) -> tuple[Holder, ...]:
    """The same after the left-over ones were ended, gently first. Blocks ten seconds at most."""
    refused: dict[int, str] = {}
    told: list[psutil.Process] = []
    for one in found:
        if one.standing is Standing.LEFT_OVER:
            try:
                process = psutil.Process(one.pid)
                if process.create_time() == one.begun_s:  # else another one has its number now
                    process.terminate()
                    told.append(process)
            except psutil.AccessDenied:
                refused[one.pid] = "not permitted to end it: run this as root"
            except psutil.NoSuchProcess:
                continue
    _, alive = psutil.wait_procs(told, _GENTLY_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _, alive = psutil.wait_procs(alive, _GENTLY_S)
    refused |= {process.pid: "it does not die (uninterruptible sleep)" for process in alive}

    def after(one: Holder) -> Holder:
        if one.standing is not Standing.LEFT_OVER:
            return one
        if one.pid in refused:
            return replace(one, why=f"{one.why}; {refused[one.pid]}")
        return replace(one, standing=Standing.ENDED)

    return tuple(map(after, found))


def exit_code(found: Sequence[Holder]) -> int:
    """1 while something is left over, or may be."""
    return int(any(one.standing in (Standing.LEFT_OVER, Standing.UNKNOWN) for one in found))


def lines(found: Sequence[Holder]) -> Iterator[tuple[str, str]]:
    """A line for each process, with its mark."""
    if not found:
        yield "✓", "No process is on the GPUs (exit code 0)"
        return
    for one in found:
        gpus = f"GPU {', '.join(map(str, one.gpus))}, {one.memory_bytes / 1e9:.1f} GB"
        age = "" if one.begun_s is None else f", {(time.time() - one.begun_s) / 3600:.1f} h old"
        who = f"{one.name} of {one.user}{age}; " if one.name else ""
        yield _SIGNS[one.standing], clean(f"{one.standing.value}  process {one.pid} ({who}{gpus}): {one.why}")
    left = sum(one.standing is Standing.LEFT_OVER for one in found)
    more = "; --kill ends them" if left else ""
    yield "", f"{counted(left, 'process', 'processes')} left over (exit code {exit_code(found)}){more}"


def to_json(found: Sequence[Holder]) -> str:
    """One line of ASCII JSON."""
    processes = [
        {
            "pid": one.pid, "gpus": list(one.gpus), "memory_bytes": one.memory_bytes,
            "name": one.name or None, "user": one.user or None, "begun_s": one.begun_s,
            "job": one.job or None, "standing": one.standing.value, "why": one.why,
        }
        for one in found
    ]  # fmt: skip
    data = {"schema": "torchdoctor.cleanup/1", "exit_code": exit_code(found), "processes": processes}
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
