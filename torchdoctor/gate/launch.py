"""Who of the processes that a launcher starts on a node is to look at it, and what the node is called."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from torchdoctor.number import count

# srun, torchrun, Open MPI, MPICH and Intel MPI, PALS
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID")
_NODE = ("SLURMD_NODENAME", "NODE_NAME")
# values of SLURM_SCRIPT_CONTEXT in the scripts that slurmd runs once a node, before and after any task
_NODES_OWN = ("prolog_slurmd", "epilog_slurmd")
_MOST_DIGITS = 6
_MOST_ENVIRONMENT = 4 << 20


def looks_elsewhere(environ: Mapping[str, str]) -> str:
    """Which process of this node looks instead of this one, in words; "" when it is to look itself.

    Only where a launcher really runs here: one with a local rank 0 beside this process, or a Slurm task that
    this process descends from. A variable that was left in a shell, and a Prolog's, say nothing. Reads /proc.
    """
    name = _named(environ)
    if not name or int(environ[name]) == 0 or environ.get("SLURM_SCRIPT_CONTEXT", "").startswith(_NODES_OWN):
        return ""
    way = list(_ancestors(os.getpid()))
    in_task = name == "SLURM_LOCALID" and environ.get("SLURM_TASK_PID") in [str(pid) for pid in way]
    if in_task or _has_first(name, environ[name], way):
        return f"{name}={environ[name]}: local rank 0 of the same launcher examines this node"
    return ""


def _named(environ: Mapping[str, str]) -> str:
    """The variable that has a local rank, or ""."""
    for name in _LOCAL:
        if count(environ.get(name), _MOST_DIGITS) is not None:
            return name
    return ""


def _ancestors(pid: int) -> Iterator[int]:
    """The process and those that it descends from, without init, as this PID namespace shows them."""
    while pid > 1:
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """0 where it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return int(stream.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _has_first(name: str, value: str, way: list[int]) -> bool:
    """Did the process that gave us this variable start another one with a 0 in it, which still runs?"""
    given = [pid for pid in way if _variable(pid, name) == value]
    launcher = _parent(given[-1]) if given else 0
    if launcher <= 1:
        return False  # init adopts whatever is left over
    everybody = (int(entry) for entry in os.listdir("/proc") if entry.isascii() and entry.isdigit())
    return any(_parent(pid) == launcher and _variable(pid, name) == "0" for pid in everybody)


def _variable(pid: int, name: str) -> str | None:
    """A variable that a process was started with; None where it has none, or is not ours to ask."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            held = stream.read(_MOST_ENVIRONMENT).split(b"\0")
    except OSError:
        return None
    head = f"{name}=".encode()
    return next((one[len(head) :].decode("ascii", "replace") for one in held if one.startswith(head)), None)


def refuses(environ: Mapping[str, str], uid: int, owner: int) -> str:
    """Why this interpreter is not to be run, "" where it may: a user's is never run as root in a Prolog.

    ``owner`` is whose file it is.
    """
    context = environ.get("SLURM_SCRIPT_CONTEXT", "")
    if uid == 0 and owner != 0 and context.startswith(("prolog", "epilog")):
        return (
            f"the interpreter is that of user {owner}, and Slurm's {context.partition('_')[0]} runs as root: "
            "use --tier passive here, and the other tiers in TaskProlog or the job's first step"
        )
    return ""


def node_name(environ: Mapping[str, str], host: str) -> str:
    """What the scheduler calls this node, else the host's own name; fit for the name of a file."""
    name = next((environ[key] for key in _NODE if environ.get(key)), host) or "node"
    return (
        "".join(char if char.isalnum() or char in "-._" else "_" for char in name)[:200].lstrip(".") or "node"
    )
