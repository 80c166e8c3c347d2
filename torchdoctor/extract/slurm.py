"""What a Slurm job asked for, by the options of sbatch and srun, and the number that Slurm gave it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.model import Fact
from torchdoctor.patterns import pattern

_TASKS = r"(?:--n?tasks-per-node[= ]|SLURM_N?TASKS_PER_NODE=)(\d{1,4})\b"
OPTION = r"(?:-\S{1,80}(?: [^\s-]\S{0,60})? {1,4})"  # of srun, with its value
_OPTIONS = rf"{OPTION}{{0,6}}"
_ALL_TASKS = rf"(?:--ntasks[= ]|SLURM_NTASKS=|\bsrun {_OPTIONS}-n ?)(\d{{1,5}})\b"
_NODES = (
    rf"(?:--nn?odes[= ]|SLURM_(?:JOB_NUM_NODES|NNODES)=|(?:\bsrun|#SBATCH|\bsbatch) {_OPTIONS}-N ?)"
    r"(\d{1,4})\b"
)
ENDED = r"\bsrun: error: (?P<host>[\w.-]{1,64}): tasks? (?P<tasks>\d[\d,-]{0,60}): "
_LEFT = rf"{ENDED}Exited with exit code (?P<code>\d{{1,3}})"
_GPUS = r"--gpus-per-task[= ](?:[\w.-]+:)?(\d{1,3})\b"
# Slurm's own lines, its variables, and the file that sbatch writes
JOB = (
    r"(?:StepId=|SLURMJOB_?ID[= ]{1,3}|\bSTEP |\bJOB |[Jj]ob ?[Ii][Dd][ =:]{1,3}"
    r"|(?:srun|salloc|sbatch): .{0,40}?\bjob )(\d{2,12})"
    r"|Submitted batch job (\d{2,12})|\bslurm-(\d{2,12})\.(?:out|err)"
)


# one of these stands in whatever the forms above find but the job's own number
_ASKS = ("--n", "--gpus-per-task", "SLURM_", "srun", "#SBATCH", "sbatch")


def asked_for(text: str) -> Iterator[Fact]:
    """What a job asked for: tasks of a node, and GPUs of a task."""

    if not any(word in text for word in _ASKS):
        return

    tasks, every, count = _number(_TASKS, text), _number(_ALL_TASKS, text), nodes(text)
    if not tasks and count:
        tasks = every // count
    for name, value in (("tasks_per_node", tasks), ("gpus_per_task", _number(_GPUS, text))):
        if value:
            yield Fact.known(f"context.{name}", value, "text")


def nodes(text: str) -> int:
    """How many nodes a job asked for; 0 where that is not told."""
    return _number(_NODES, text)


def _number(form: str, text: str) -> int:
    found = pattern(form).search(text)
    return int(found[1]) if found is not None else 0


def left_alone(text: str) -> tuple[int, str] | None:
    """(task, host) of the only line of srun by which a single task left with an exit code of its own."""
    ends = pattern(_LEFT).finditer(text) if "srun: error: " in text else ()
    left = [end for end in ends if 0 < int(end["code"]) < 128]
    if len(left) != 1 or not left[0]["tasks"].isdigit():
        return None
    return int(left[0]["tasks"]), left[0]["host"]


def ended(text: str) -> tuple[int, int]:
    """How many hosts srun names whose tasks failed, and how many tasks there are at least."""
    found = list(pattern(ENDED).finditer(text)) if "srun: error: " in text else []
    numbers = [int(part) for one in found for part in re.findall(r"\d+", one["tasks"])]
    return len({one["host"] for one in found}), max(numbers, default=-1) + 1
