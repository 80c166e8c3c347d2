"""Which processes are meant: numbers, a job, or everything of this user that runs torch."""

from __future__ import annotations

import os
from collections.abc import Sequence

from torchdoctor.hang import procfs
from torchdoctor.hang.procfs import Gone
from torchdoctor.model import TorchdoctorError

MOST = 64


class TargetError(TorchdoctorError):
    """No process is meant, or none that is there."""


def of_pids(pids: Sequence[int]) -> list[int]:
    """The processes and all that descends from them. Raises TargetError when none of them is there."""
    there = [pid for pid in pids if os.path.exists(f"{procfs.PROC}/{pid}/stat")]
    if not there:
        raise TargetError(f"no process {', '.join(map(str, pids))}; ps -ef lists those that are there")
    return list(dict.fromkeys([*pids, *procfs.descendants(list(there), MOST)]))


def of_job(job: str | None, own: int) -> list[int]:
    """The processes of a Slurm job, or of the tree of a launcher's number. Raises TargetError."""
    wanted = job or os.environ.get("SLURM_JOB_ID", "")
    if not wanted:
        raise TargetError(
            "--job: SLURM_JOB_ID is not set; name the job, or the launcher's process: --job 1234"
        )
    found = [pid for pid in _others(own) if _variable(pid, "SLURM_JOB_ID") == wanted and _is_python(pid)]
    if found:
        return found[:MOST]
    if wanted.isdecimal() and os.path.exists(f"{procfs.PROC}/{wanted}/stat"):
        return of_pids([int(wanted)])
    raise TargetError(
        f"--job {wanted}: no process on this node has SLURM_JOB_ID={wanted}, and none has that number"
    )


def all_of_torch(own: int) -> list[int]:
    """The processes of this user that have torch's library mapped. Raises TargetError when there are none."""
    user = os.getuid()
    found = [pid for pid in _others(own) if _user(pid) == user and procfs.maps(pid, "libtorch")]
    if not found:
        raise TargetError("--all: no process of yours has libtorch mapped")
    return found[:MOST]


def _others(own: int) -> list[int]:
    return [pid for pid in procfs.pids() if pid != own]


def _user(pid: int) -> int:
    try:
        return os.stat(f"{procfs.PROC}/{pid}").st_uid
    except OSError:
        return -1


def _variable(pid: int, name: str) -> str:
    try:
        return procfs.read(pid).variable(name)
    except Gone:
        return ""


def _is_python(pid: int) -> bool:
    try:
        command = procfs.read(pid).command
    except Gone:
        return False
    return bool(command) and "python" in os.path.basename(command[0])
