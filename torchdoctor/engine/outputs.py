"""How this reader starts his processes, and gets the words of those whose output is not in the text.

Rules name a command as ``{outputs.each_rank}``. Sources: the options of torchrun, accelerate launch,
deepspeed, mpirun and srun; the manuals of sacct, kubectl, docker and Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchdoctor.engine.conditions import as_text
from torchdoctor.model import Fact
from torchdoctor.patterns import pattern

FACTS = {
    "outputs.each_rank": "text: command that starts the program again with a log for each process",
    "outputs.how_ended": "text: command that tells how the processes of this job or container ended",
    "outputs.earlier": "text: command that shows what a container or job that has ended printed",
}
# in what a launcher shows of itself -> what starts the ranks, and how the output of each is kept apart
_LAUNCHERS = (
    (("accelerate launch", "accelerate/commands/launch.py"), "accelerate launch",
     "accelerate launch --log_dir logs --tee 3 train.py"),
    (("deepspeed/launcher", "sigkill_handler", "[launch.py:", "deepspeed --"), "deepspeed",
     "deepspeed --enable_each_rank_log logs train.py"),
    (("mpirun", "mpiexec"), "mpirun python", "mpirun --output-filename logs python train.py"),
    (("multiprocessing/spawn.py", "ProcessExitedException", "ProcessRaisedException"), "python",
     "PYTHONFAULTHANDLER=1 python train.py 2>&1 | tee train.log"),
)  # fmt: skip
_NPROC = r"--nproc[_-]per[_-]node[= ](\d{1,3}|gpu|cpu|auto)\b"
_RAY_LOGS = "/tmp/ray/session_latest/logs"


def command(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The command of an ``outputs.`` fact; absent where these surroundings have none."""
    make = {"each_rank": _each_rank, "how_ended": _how_ended, "earlier": _earlier}[name.partition(".")[2]]
    line = make(seen.get("runtime", frozenset()), ask)
    return Fact.known(name, line, "text") if line else Fact.absent(name, "text")


def start(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """What starts the ranks, up to the script: the launcher that the text shows, else torchrun."""
    return _launcher(seen.get("runtime", frozenset()), ask)[0]


def _each_rank(runtime: frozenset[str], ask: Callable[[str], Fact]) -> str:
    return _launcher(runtime, ask)[1]


def _launcher(runtime: frozenset[str], ask: Callable[[str], Fact]) -> tuple[str, str]:
    shown = f"{as_text(ask('log.text'))}\n{as_text(ask('log.frames'))}"
    for marks, begin, line in _LAUNCHERS:
        if any(mark in shown for mark in marks):
            return begin, line
    nproc = pattern(_NPROC).search(shown)
    of_torch = nproc is not None or "torchrun" in shown or "torch/distributed/run" in shown
    if "slurm" in runtime and not of_torch:
        return "srun python", "srun --label --output=rank-%t.log python train.py"
    count = f"--nproc_per_node={nproc[1] if nproc is not None else 'gpu'}"
    return f"torchrun {count}", f"torchrun --log_dir logs --redirects 3 --tee 3 {count} train.py"


def _how_ended(runtime: frozenset[str], ask: Callable[[str], Fact]) -> str:
    if "slurm" in runtime:
        job = as_text(ask("context.job")) or "$SLURM_JOB_ID"
        return f"sacct -j {job} --format=JobID,State%30,ExitCode,MaxRSS,ReqMem,NodeList"
    if "kubernetes" in runtime:
        return f"kubectl describe pod {_pod(ask)} | grep -A6 'Last State'"
    if "docker" in runtime:
        return "docker inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' CONTAINER"
    return ""


def _earlier(runtime: frozenset[str], ask: Callable[[str], Fact]) -> str:
    if "kubernetes" in runtime:
        return f"kubectl logs --previous {_pod(ask)}"
    if "ray" in runtime:
        return f"grep -i -m3 -E 'error|killed' {_RAY_LOGS}/worker-*.err {_RAY_LOGS}/raylet.out"
    if "docker" in runtime:
        return "docker logs CONTAINER 2>&1 | grep -n -m1 -A40 Traceback"
    return ""


def _pod(ask: Callable[[str], Fact]) -> str:
    return as_text(ask("context.pod")) or "POD"
