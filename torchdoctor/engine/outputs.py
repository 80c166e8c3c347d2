"""How this reader gets the words of the processes whose output is not in the text.

Rules name a command as ``{outputs.each_rank}``. Sources: the manuals of sacct, kubectl, docker and Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchdoctor.engine import launch
from torchdoctor.engine.conditions import as_text
from torchdoctor.extract import slurm
from torchdoctor.model import Fact

FACTS = {
    "outputs.each_rank": "text: command that starts the program again with a log for each process",
    "outputs.how_ended": "text: command that tells how the processes of this job or container ended",
    "outputs.earlier": "text: command that shows what a container or job that has ended printed",
    "outputs.left_alone": "text: the only task of srun that left with an exit code, and its machine",
}
_SACCT = "JobID,State%30,ExitCode,Elapsed,Timelimit,MaxRSS,ReqMem,NodeList"
_RAY_LOGS = "/tmp/ray/session_latest/logs"


def command(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The command of an ``outputs.`` fact; absent where these surroundings have none."""
    make = {"each_rank": _each_rank, "how_ended": _how_ended, "earlier": _earlier, "left_alone": _left_alone}[
        name.partition(".")[2]
    ]
    line = make(seen, ask)
    return Fact.known(name, line, "text") if line else Fact.absent(name, "text")


def _each_rank(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    frames = as_text(ask("log.frames"))
    if "torch/distributed/launch.py:" in frames and "torch/distributed/run.py:" not in frames:
        return ""  # torch before 1.9, which has no torchrun and whose launcher keeps no logs
    found = launch.of(seen, ask)
    return "" if found.server else found.each_rank


def _how_ended(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    runtime = seen.get("runtime", frozenset())
    if "slurm" in runtime:
        job = as_text(ask("context.job"))  # without it sacct lists the user's jobs of the day
        return f"sacct{f' -j {job}' if job else ''} --format={_SACCT}"
    if "kubernetes" in runtime:
        pod = as_text(ask("context.pod"))
        return f"kubectl describe pod{f' {pod}' if pod else 's'} | grep -A6 -E '^Name:|Last State'"
    if "docker" in runtime:
        return "docker inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' $(docker ps -lq)"
    return ""


def _earlier(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    runtime = seen.get("runtime", frozenset())
    if "kubernetes" in runtime:
        return f"kubectl logs --previous {_pod(ask)}"
    if "ray" in runtime:
        return f"grep -i -m3 -E 'error|killed' {_RAY_LOGS}/worker-*.err {_RAY_LOGS}/raylet.out"
    if "docker" in runtime:
        return "docker logs $(docker ps -lq) 2>&1 | grep -n -m1 -A40 Traceback"
    return ""


def _left_alone(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """A process that left by itself ended before those that died of a signal, or were ended, for its sake."""
    left = slurm.left_alone(as_text(ask("log.text")))
    if left is None or str(left[0]) == as_text(ask("event.rank")):
        return ""
    return f"task {left[0]} on {left[1]}"


def _pod(ask: Callable[[str], Fact]) -> str:
    return as_text(ask("context.pod")) or "POD"
