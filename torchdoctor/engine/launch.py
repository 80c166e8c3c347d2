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
from torchdoctor.engine import releases
from torchdoctor.engine.conditions import as_text
from torchdoctor.model import Fact, State
from torchdoctor.patterns import pattern
from torchdoctor.records import Record, record

# launcher -> what starts the ranks
_LAUNCHERS = {
    "accelerate": "accelerate launch", "deepspeed": "deepspeed", "mpirun": "mpirun python", "spawn": "python",
}  # fmt: skip
_SRUN = "srun python"
_OF_RANKS = ("accelerate launch", "deepspeed")  # a script for these does not start by itself
_BEFORE_TORCHRUN = "python -m torch.distributed.launch"
# launcher, in a command -> the options by which it keeps the output of each rank apart
_APART = {
    "torchrun ": "--log_dir logs --redirects 3 --tee 3 ",
    "-m torch.distributed.run ": "--log_dir logs --redirects 3 --tee 3 ",
    "-m torch.distributed.launch ": "--log_dir logs --redirects 3 --tee 3 ",
    "accelerate launch ": "--log_dir logs --tee 3 ",
    "deepspeed ": "--enable_each_rank_log logs ",
    "mpirun ": "--output-filename logs ",
    "srun ": "--label --output=rank-%t.log ",
}
_NPROC = r"--nproc[_-]per[_-]node[= ](\d{1,3}|gpu|cpu|auto)\b"

_VALUE = r"(?:'[^']*'|\"[^\"]*\"|[^\s;&|']*)"
_SETTINGS = rf"(?:[A-Za-z_]\w*={_VALUE} )*"
_SET = rf"(?P<set>(?:export |env -u (?P<unset>\w+) )?{_SETTINGS})"
_RANKS = rf"{_SET}torchrun(?P<alone> --standalone)? --nproc_per_node=gpu train\.py(?P<rest>.*)"
_PROGRAM = rf"{_SET}python train\.py(?P<rest>)"
_SHELL_SCRIPT = r"(?:\w+=\S* )*(?:(?:ba)?sh |\./)"
_PARTS = r"((?:'[^']*'|\"[^\"]*\"|(?!; )[^'\"])+)(?:; |$)"
_LOCAL_RANK = "os.environ['LOCAL_RANK']"
_OWN_SCRIPT = r"(?:\w+=\S* )*(?:\S*/)?python[\d.]* (?:-[a-zA-Z] )*(?P<rest>[\w./\\~-]+\.py\b.*)"
_CONTAINERS = frozenset({"docker", "podman", "kubernetes"})
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
    own: str = ""  # the reader's command, where the text shows it
    other: bool = False  # another program starts the ranks: an installed one, a module, a shell script
    nameless: bool = False  # nothing shows the script, nor the command
    option: str = ""  # that keeps the ranks' output apart, for a command that only the reader has


def of(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact], script: str | None = None) -> Launch:
    """The launcher that the text shows, else torchrun on one machine."""
    name = as_text(ask("launcher.name"))
    several = ask("launcher.several_nodes").state is State.KNOWN
    server = script is None and bool(SERVERS & seen.get("program", frozenset()))
    nproc = pattern(_NPROC).search(as_text(ask("log.text")))
    here = "1" if "macos" in seen.get("system", ()) else "gpu"  # torchrun counts CUDA's devices alone
    count = f"--nproc_per_node={nproc[1] if nproc is not None else here}"
    own = as_text(ask("launcher.command"))
    other = ask("launcher.program").state is State.KNOWN or pattern(_SHELL_SCRIPT).match(own) is not None
    begin = f"torchrun {count}"
    if releases.older(releases.TORCHRUN, ask):
        count = count.replace("=gpu", "=$(nvidia-smi -L | wc -l)")  # which takes numbers alone
        begin = f"{_BEFORE_TORCHRUN} {count}"
    if name in _LAUNCHERS:
        begin = _LAUNCHERS[name]
    elif "slurm" in seen.get("runtime", ()) and not name:
        begin = _SRUN
    option = ""
    if several and not own and begin.startswith("mpirun"):  # whose hosts and options are half of the command
        line, option = "", _APART["mpirun "].strip()
    elif several and begin.startswith("torchrun"):  # which takes its options from PET_… too
        line = "export PET_LOG_DIR=logs PET_REDIRECTS=3 PET_TEE=3"
    else:
        started = own or f"{begin} train.py"
        old = _BEFORE_TORCHRUN in started and begin.startswith(_BEFORE_TORCHRUN)  # it keeps no logs
        line = "" if old or (other and not own) else _apart(started)
    nameless = not (script or own)
    return Launch(
        begin, line, bool(name) or begin == _SRUN, several, server, count, own, other, nameless, option
    )


def _apart(own: str) -> str:
    """The command with a log for each rank; "" where a program between takes no such option."""
    for words, options in _APART.items():
        if words in own:
            return own.replace(words, words + options, 1)
    if pattern(_OWN_SCRIPT).fullmatch(own) is None:
        return ""
    return f"PYTHONFAULTHANDLER=1 {own} 2>&1 | tee train.log"


def apart(command: str) -> list[str]:
    """The commands of a line, where one of them is no more than the start of the program."""
    parts = pattern(_PARTS).findall(command)
    ours = any(pattern(_PROGRAM).fullmatch(part) or pattern(_RANKS).fullmatch(part) for part in parts)
    return parts if ours else [command]


def started(command: str, launch: Launch, ranked: bool) -> str | None:
    """A rule's command as this reader starts his program; None where that command cannot be told.

    ``ranked``: the failure is one of several ranks.
    """
    ranks = pattern(_RANKS).fullmatch(command)
    found = ranks or pattern(_PROGRAM).fullmatch(command)
    own = pattern(_OWN_SCRIPT).fullmatch(launch.own)
    if found is None:  # a tool may start it: compute-sanitizer python train.py
        if own is not None and command.endswith(" python train.py"):
            return command.replace("train.py", own["rest"])
        return command
    told = found["set"].strip()
    elsewhere = launch.server or (launch.several and launch.begin != _SRUN)
    if ranks is not None and found["alone"]:
        if elsewhere or (launch.other and own is None):
            return None
        if launch.begin.startswith(_BEFORE_TORCHRUN):
            command = command.replace("torchrun --standalone", _BEFORE_TORCHRUN)
        command = command.replace("--nproc_per_node=gpu", launch.count)
        return command.replace("train.py", own["rest"]) if own is not None else command
    starts = (ranked or launch.begin in _OF_RANKS) and launch.shown and told
    nameless = launch.nameless and told and not found["rest"]
    if ranks is None and not (launch.server or starts or nameless or (told and (launch.own or launch.other))):
        return command
    if told.startswith(_OF_ONE):
        return command if own is None else command.replace("train.py", own["rest"])
    if launch.own and not elsewhere:
        settings = found["set"].removeprefix("export ")
        return f"{settings}{_without(launch.own, settings)}{found['rest']}"
    if not elsewhere and not launch.other and not nameless:
        return f"{found['set']}{launch.begin} train.py{found['rest']}"
    if not told or found["rest"]:
        return None
    if found["unset"]:
        return f"unset {found['unset']}"
    settings = told.removeprefix("export ")
    if launch.begin == "deepspeed" and not settings.startswith(_TAKEN_ALONG):
        return f"printf '%s\\n' {settings} >> ~/.deepspeed_env"
    return f"export {settings}"


def _without(own: str, settings: str) -> str:
    """The reader's command without those variables before it that the settings name: the last one counts."""
    names = "|".join(re.findall(r"(\w+)=", settings))
    begin = re.match(_SETTINGS, own)
    if not names or begin is None:
        return own
    return re.sub(rf"\b(?:{names})={_VALUE} ", "", begin[0]) + own[begin.end() :]


def local_rank(do: str, launch: Callable[[], Launch]) -> str:
    """Advice that reads LOCAL_RANK, for tasks of srun: there the rank on a node has Slurm's name."""
    if _LOCAL_RANK not in do or launch().begin != _SRUN:
        return do
    return do.replace(_LOCAL_RANK, "os.environ['SLURM_LOCALID']")


def of_image(run: str, seen: Mapping[str, frozenset[str]]) -> bool:
    """Does it unset a variable that the image of a container sets, out of reach of the host's shell?"""
    return run.startswith("unset ") and bool(_CONTAINERS & seen.get("runtime", frozenset()))


def where(run: str, do: str, seen: Mapping[str, frozenset[str]], launched: Callable[[], Launch]) -> str:
    """Where the variables of a command have to be set, so that they reach all processes; "" for here.

    The launch is asked for last: most commands set none, and the text is searched for it.
    """
    runtime = seen.get("runtime", frozenset())
    if "build" in seen.get("phase", ()) or re.search(r"every node|all nodes|job script", do):
        return ""
    if run.startswith("printf ") and run.endswith(".deepspeed_env"):
        return " DeepSpeed's launcher hands that file to every node."
    if of_image(run, seen):
        name = run.split()[1]
        return (
            f' Set it empty where the container starts: docker run -e {name}=, or {name}: "" in environment:.'
        )
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
    if launch.several:
        return " Set it on every node before the program starts."
    return " Then start the program as before." if launch.other or launch.nameless else ""
