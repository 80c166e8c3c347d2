"""How this reader starts his program: by which launcher, on how many machines, with its variables set where.

Rules write ``A=1 torchrun --nproc_per_node=gpu train.py`` for "start the ranks again, with this variable",
and ``A=1 python train.py`` for a program of any kind. Where one machine's launch is the advice itself, they
write ``torchrun --standalone``. Sources: the options of torchrun, accelerate launch, deepspeed, mpirun and
srun; DeepSpeed's multinode_runner.py (which variables it takes along); the manuals of Ray and Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from torchdoctor.context_tags import SERVERS
from torchdoctor.engine.conditions import as_text
from torchdoctor.model import Fact, State
from torchdoctor.patterns import pattern
from torchdoctor.records import Record, record

# launcher -> what starts the ranks, and how the output of each is kept apart
_LAUNCHERS = {
    "accelerate": ("accelerate launch", "accelerate launch --log_dir logs --tee 3 train.py"),
    "deepspeed": ("deepspeed", "deepspeed --enable_each_rank_log logs train.py"),
    "mpirun": ("mpirun python", "mpirun --output-filename logs python train.py"),
    "spawn": ("python", "PYTHONFAULTHANDLER=1 python train.py 2>&1 | tee train.log"),
}
_SRUN = "srun python"
_NPROC = r"--nproc[_-]per[_-]node[= ](\d{1,3}|gpu|cpu|auto)\b"

_SET = r"(?P<set>(?:export )?(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s;&|']*) )*)"
_RANKS = rf"{_SET}torchrun(?P<alone> --standalone)? --nproc_per_node=gpu train\.py(?P<rest>.*)"
_PROGRAM = rf"{_SET}python train\.py(?P<rest>)"
# which cards a process sees, and which rank it is, are another matter for each of the ranks
_OF_ONE = ("CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "RANK=", "LOCAL_RANK=")
# what the multi-node launcher of DeepSpeed takes along by itself; the rest it reads out of ~/.deepspeed_env
_TAKEN_ALONG = ("NCCL", "PYTHON", "MV2", "UCX")


@record(frozen=True, slots=True)
class Launch(Record):
    """What stands before the script; and whether the text shows it, several machines, or a server."""

    begin: str
    each_rank: str
    shown: bool
    several: bool
    server: bool
    count: str = "--nproc_per_node=gpu"  # of torchrun


def of(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact], script: str | None = None) -> Launch:
    """The launcher that the text shows, else torchrun on one machine."""
    name = as_text(ask("launcher.name"))
    several = ask("launcher.several_nodes").state is State.KNOWN
    server = script is None and bool(SERVERS & seen.get("program", frozenset()))
    nproc = pattern(_NPROC).search(as_text(ask("log.text")))
    here = "1" if "macos" in seen.get("system", ()) else "gpu"  # torchrun counts CUDA's devices alone
    count = f"--nproc_per_node={nproc[1] if nproc is not None else here}"
    if name in _LAUNCHERS:
        begin, line = _LAUNCHERS[name]
        return Launch(begin, line, True, several, server, count)
    if "slurm" in seen.get("runtime", ()) and not name:
        line = "srun --label --output=rank-%t.log python train.py"
        return Launch(_SRUN, line, True, several, server, count)
    line = f"torchrun --log_dir logs --redirects 3 --tee 3 {count} train.py"
    if several:  # torchrun takes its options from PET_… too
        line = "export PET_LOG_DIR=logs PET_REDIRECTS=3 PET_TEE=3"
    return Launch(f"torchrun {count}", line, bool(name), several, server, count)


def started(command: str, launch: Launch, ranked: bool) -> str | None:
    """A rule's command as this reader starts his program; None where that command cannot be told.

    ``ranked``: the failure is one of several ranks.
    """
    ranks = pattern(_RANKS).fullmatch(command)
    found = ranks or pattern(_PROGRAM).fullmatch(command)
    if found is None:
        return command
    told = found["set"].strip()
    elsewhere = launch.server or (launch.several and launch.begin != _SRUN)
    if ranks is not None and found["alone"]:
        return None if elsewhere else command.replace("--nproc_per_node=gpu", launch.count)
    if ranks is None and not (launch.server or (ranked and launch.shown and told)):
        return command
    if told.startswith(_OF_ONE):
        return command
    if not elsewhere:
        return f"{found['set']}{launch.begin} train.py{found['rest']}"
    if not told or found["rest"]:
        return None
    settings = told.removeprefix("export ")
    if launch.begin == "deepspeed" and not settings.startswith(_TAKEN_ALONG):
        return f"printf '%s\\n' {settings} >> ~/.deepspeed_env"
    return f"export {settings}"


def where(run: str, do: str, seen: Mapping[str, frozenset[str]], launched: Callable[[], Launch]) -> str:
    """Where the variables of a command have to be set, so that they reach all processes; "" for here.

    The launch is asked for last: most commands set none, and the text is searched for it.
    """
    runtime = seen.get("runtime", frozenset())
    if "build" in seen.get("phase", ()) or re.search(r"every node|all nodes|job script", do):
        return ""
    if run.startswith("printf ") and run.endswith(".deepspeed_env"):
        return " DeepSpeed's launcher hands that file to every node."
    if not run.startswith("export "):
        return ""
    if "kubernetes" in runtime:
        return " In a pod it belongs under env of the container."
    if "ray" in runtime:
        return " Set it on every node before ray start: the workers take their environment from there."
    if "slurm" in runtime:
        return " Put it into the job script, before srun."
    launch = launched()
    if launch.begin.startswith("mpirun") and launch.several:
        return " Name it with mpirun -x, which takes it to the other nodes."
    return " Set it on every node before the program starts." if launch.several else ""
