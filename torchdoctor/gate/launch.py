"""Who of the processes that a launcher starts on a node is to look at it, and what the node is called."""

from __future__ import annotations

from collections.abc import Mapping

# srun, torchrun, Open MPI, MPICH and Intel MPI, PALS
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID")
_NODE = ("SLURMD_NODENAME", "NODE_NAME")


def local_rank(environ: Mapping[str, str]) -> int | None:
    """The number of this process among those of its node; None when no launcher gave one."""
    for name in _LOCAL:
        value = environ.get(name, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None


def refuses(environ: Mapping[str, str], uid: int, owner: int) -> str:
    """Why this interpreter is not to be run, "" where it may: a user's is never run as root in a Prolog.

    ``owner`` is whose file it is.
    """
    context = environ.get("SLURM_SCRIPT_CONTEXT", "")
    if uid == 0 and owner != 0 and context.startswith(("prolog", "epilog")):
        return (
            f"the interpreter is that of user {owner}, and Slurm's {context.partition('_')[0]} runs as root: "
            "take --tier passive here, and the other tiers in TaskProlog or the job's first step"
        )
    return ""


def node_name(environ: Mapping[str, str], host: str) -> str:
    """What the scheduler calls this node, else the host's own name; fit for the name of a file."""
    name = next((environ[key] for key in _NODE if environ.get(key)), host) or "node"
    return (
        "".join(char if char.isalnum() or char in "-._" else "_" for char in name)[:200].lstrip(".") or "node"
    )
