"""How many GPUs there should be and which are the job's: from the policy, else from the job's own request."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from torchdoctor.gate.facts import Facts
from torchdoctor.number import count

# variables that list GPUs, and those that count them; the first that says something is taken
_LISTS = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_SCHEDULED = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE")
_COUNTS = ("SLURM_GPUS_ON_NODE", "LOCAL_WORLD_SIZE")
MOST_GPUS = 1024  # of a list; no node has a tenth of them
_NO_LIST = ("", "all", "void", "none", "NoDevFiles")
# what only a task of a job has; Prolog and Epilog run beside it, as root, and see the whole node
_IN_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "LOCAL_WORLD_SIZE", "KUBERNETES_SERVICE_HOST")


@dataclass(frozen=True, slots=True)
class Expectation:
    """``gpus`` is None where nobody says it; ``source`` names who says it, ``model`` what they should be.

    ``by_scheduler``: Slurm says that it gave so many. Else only the job's own variables ask for them.
    """

    gpus: int | None = None
    source: str = ""
    model: str = ""
    by_policy: bool = False
    by_scheduler: bool = False


def expectation(facts: Facts, gpus: int | None, gpus_source: str, model: str = "") -> Expectation:
    """``gpus`` is what policy or command line say of the whole node. A task of a job sees the job's share."""
    variables = facts.variables()
    in_task = any(name in variables for name in _IN_TASK)
    asked = _asked(variables, in_task)
    if gpus == 0 and asked is not None and asked[1] == "LOCAL_WORLD_SIZE":
        asked = None  # ranks on the processor alone
    if asked is not None and (in_task or gpus is None):
        number, source = asked
        given = max((_scheduled(variables, name) for name in _SCHEDULED), default=0)
        return Expectation(number, source, model, by_scheduler=given >= number > 0)
    if gpus is not None:
        return Expectation(gpus, gpus_source, model, by_policy=True)
    return Expectation(None, "", model)


def _scheduled(variables: Mapping[str, str], name: str) -> int:
    value = variables.get(name, "")
    if name in _COUNTS:
        return count(value) or 0
    return len(listed(value)) if value not in _NO_LIST else 0


def _asked(variables: Mapping[str, str], in_task: bool) -> tuple[int, str] | None:
    """Of a task, first what is bound to it: it may see one of the job's GPUs alone."""
    lists = ("CUDA_VISIBLE_DEVICES", *_SCHEDULED[:2]) if in_task else (*_SCHEDULED[:2],)
    for name in (*lists, *_COUNTS, "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        value = variables.get(name, "")
        if name in _COUNTS:
            if (number := count(value)) is not None:
                return number, name
        elif value not in _NO_LIST:
            # slices of GPUs cannot be counted as GPUs
            return None if "MIG-" in value else (len(listed(value)), name)
    return None


def listed(text: str) -> tuple[str, ...]:
    """The entries of a list of GPUs; a range like 0-3 stands for all of it. -1 ends it, as for CUDA."""
    found: list[str] = []
    for part in (one.strip() for one in text.split(",", MOST_GPUS)):
        low, dash, high = part.partition("-")
        first, last = count(low), count(high)
        if part == "-1" or len(found) >= MOST_GPUS:
            break
        if dash and first is not None and last is not None and last - first < MOST_GPUS:
            found += [str(number) for number in range(first, last + 1)]
        elif part:
            found.append(part)
    return tuple(found[:MOST_GPUS])


def job_gpus(facts: Facts) -> tuple[frozenset[int] | None, tuple[str, ...]]:
    """NVML's numbers of the job's GPUs, and entries of the list that name no GPU here. None: no list, all."""
    variables = facts.variables()
    uuids = [str(one) for one in facts.items("gpu.uuids")]
    name = next((one for one in _LISTS if variables.get(one, "") not in _NO_LIST), "")
    if not name or not uuids:
        return None, ()
    if name.startswith("SLURM") and len(listed(variables[name])) >= len(uuids):
        return None, ()  # the devices are constrained: what NVML sees is the job's, numbered anew
    numbers: set[int] = set()
    strange: list[str] = []
    for entry in listed(variables[name]):
        index = count(entry)
        if index is not None:
            (numbers.add(index) if index < len(uuids) else strange.append(entry))
        elif entry.startswith(("GPU-", "MIG-")):
            fitting = [gpu for gpu, uuid in enumerate(uuids) if uuid.startswith(entry)]
            numbers.update(fitting)
            if not fitting and entry.startswith("GPU-"):
                strange.append(entry)
        else:
            strange.append(entry)
    if name.startswith("SLURM") and strange:
        return None, ()  # numbers of the whole node, seen from inside a constrained job
    return frozenset(numbers), tuple(strange)


def leave_others_alone(facts: Facts, environ: MutableMapping[str, str]) -> None:
    """Hide the GPUs that are not the job's from what runs after this, where only Slurm's list names them."""
    mine = job_gpus(facts)[0]
    uuids = [facts.text_of("gpu.uuids", gpu) for gpu in sorted(mine or ())]
    if "CUDA_VISIBLE_DEVICES" not in environ and uuids and all(uuids):
        environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)
