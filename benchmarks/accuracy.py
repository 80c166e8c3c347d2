"""Which family of causes torchdoctor, a plain search and peers name for labelled inputs.

A peer has other answers than there are rules. Its answers are mapped to families, in its favour: an answer
that may mean several families is right when one of them is that of the label.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from torchdoctor import catalog
from torchdoctor.workbench.case import NONE, Case
from torchdoctor.workbench.cases import read_all
from torchdoctor.workbench.evaluate import judge
from torchdoctor.workbench.literals import every_literal

Answer = frozenset[str]  # families; empty where nothing is said

# what gpualert says -> families that it may mean; a label that is not here names no family
GPUALERT = {
    "GPU out-of-memory (CUDA OOM)": "memory",
    "System out-of-memory (RAM)": "memory scheduler",
    "Process killed by OS (OOM)": "memory scheduler",
    "NCCL communication error": "distributed",
    "Tensor device mismatch": "tensor",
    "CUDA runtime error": "cuda-runtime hardware memory",
    "NaN detected in loss": "numerics autograd",
    "Missing Python module": "environment python extension",
    "File not found": "data checkpoint environment python",
    "Permission denied": "environment data python",
    "Segmentation fault": "extension environment python",
    "Division by zero": "python",
    "Assertion failed": "python",
}
# the modes of gpualert's public set -> families
MODES = {
    "ram_oom": "memory scheduler python", "oom_killer": "memory scheduler", "cuda_oom": "memory",
    "segfault": "python extension environment", "file_not_found": "data checkpoint environment python",
    "permission": "environment data checkpoint python", "missing_module": "environment python extension",
    "div_zero": "python", "assertion": "python", "traceback": "python",
    "nan_loss": "numerics autograd training",
    "device_mismatch": "tensor", "cuda_runtime": "cuda-runtime hardware", "nccl": "distributed",
    "runtime_error": "environment cuda-runtime python",
}  # fmt: skip
# words in the names of denpex's classes -> families; its names are made of such words, thousands of them
DENPEX = {
    "OOM MEMORY ALLOC FRAGMENTATION SHM KILLED RSS": "memory scheduler data",
    "NCCL RCCL DDP FSDP ELASTIC TORCHELASTIC RENDEZVOUS COLLECTIVE WATCHDOG DISTRIBUTED GLOO RANK PEER "
    "HANG DEADLOCK DEEPSPEED MPI IB RDMA STORE TCPSTORE": "distributed",
    "XID ECC NVLINK HARDWARE PCIE FABRIC": "hardware",
    "DRIVER VERSION MISMATCH IMPORT MODULE DEPENDENCY ENVIRONMENT LIBRARY GLIBC ABI INSTALL PIP "
    "CONDA NUMPY SYMBOL PERMISSION WHEEL": "environment extension python",
    "CUDA CUBLAS CUDNN KERNEL ASSERT DEVICE ILLEGAL LAUNCH HIP ROCM": "cuda-runtime hardware tensor "
    "environment",
    "SHAPE DTYPE TENSOR INDEX DIMENSION BROADCAST STRIDE EMBEDDING": "tensor python",
    "NAN INF LOSS NUMERICAL OVERFLOW UNDERFLOW DIVERGENCE SVD LINALG": "numerics autograd training",
    "AUTOGRAD GRAD GRADIENT BACKWARD INPLACE GRAPH": "autograd training",
    "AMP SCALER OPTIMIZER SCHEDULER LR TRAINER LIGHTNING PRECISION AUTOCAST": "training",
    "DATALOADER DATASET DATA WORKER AUGMENTATION COLLATE FILE TOKENIZER SAMPLER IMAGE PICKLE "
    "PICKLING DISK STORAGE": "data checkpoint python",
    "CHECKPOINT STATE WEIGHTS LOAD SAFETENSORS RESUME": "checkpoint",
    "COMPILE DYNAMO INDUCTOR TRITON PTXAS TORCHSCRIPT JIT": "compile export",
    "ONNX EXPORT TENSORRT TRACE": "export",
    "EXTENSION NVCC BUILD NINJA COMPILER SEGFAULT CPP": "extension environment",
    "SLURM PREEMPTED PREEMPTION WALLTIME TIMELIMIT CANCELLED": "scheduler distributed",
    "PYTHON VALUE TYPE TYPEERROR ATTRIBUTE ATTRIBUTEERROR KEYERROR VALUEERROR SYNTAX USER CODE "
    "ASSERTION": "python",
}  # fmt: skip
_SILENT = (
    "NEEDS",
    "UNKNOWN",
    "OFFLINE",
    "HEALTHY",
    "SUCCESS",
    "NO",
)  # first words of names that name nothing
_ASK_GPUALERT = """
import json, sys
from gpualert.parse_errors import parse_errors
for line in sys.stdin:
    print(json.dumps(parse_errors("", json.loads(line), 1).split(chr(10))[0]))
"""
_ASK_DENPEX = """
import json, sys
import denpex_local
texts = [json.loads(line) for line in sys.stdin]
for at in range(0, len(texts), 64):
    told = denpex_local.local_diagnose_batch([text if text.strip() else "-" for text in texts[at:at + 64]])
    print(*(json.dumps(one["failureType"]) for one in told), sep=chr(10), flush=True)
"""


class Labelled(NamedTuple):
    """A text, the families that are right (none: nothing failed), and the case that it is of, if any."""

    text: str
    families: Answer
    case: Case | None = None


def own_inputs(folder: str) -> list[Labelled]:
    """The captured and reported cases of a folder that have a rule, or in which nothing failed."""
    rules = catalog.load()
    found = []
    for case in read_all(folder)[0]:
        if case.data and case.origin != "reconstructed" and (case.rule in rules or case.rule == NONE):
            families = {rules.rule(one).family for one in (case.rule, *case.also) if one in rules}
            found.append(Labelled(case.data.decode("utf-8", "replace"), frozenset(families), case))
    return found


def gpualert_inputs(folder: str) -> list[Labelled]:
    """GPUAlert's public set: a checkout of gpualert-eval, with corpus/labels.jsonl."""
    root = Path(folder)
    rows = map(json.loads, (root / "corpus" / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Labelled(
            (root / row["log_path"]).read_text(encoding="utf-8", errors="replace"),
            frozenset(MODES[row["mode"]].split()),
        )
        for row in rows
    ]


def torchdoctor(inputs: Sequence[Labelled]) -> list[Answer]:
    """The family of the first diagnosis."""
    rules = catalog.load()
    found = []
    for one in inputs:
        case = one.case or Case("input", NONE, data=one.text.encode())
        found.append(frozenset(told.family for told in judge(case, rules).report.diagnoses[:1]))
    return found


def signatures(inputs: Sequence[Labelled]) -> list[Answer]:
    """Families of the rules whose longest literal stands first in the text, as `grep -m1 -F` finds it."""
    rules = catalog.load()
    literals = {
        literal: frozenset(rules.rule(one).family for one in ids)
        for literal, ids in every_literal(rules).items()
        if len(literal) >= 8
    }
    found = []
    for one in inputs:
        at = {place: literal for literal in literals if (place := one.text.find(literal)) >= 0}
        found.append(literals[at[min(at)]] if at else frozenset())
    return found


def gpualert(inputs: Sequence[Labelled], python: str) -> list[Answer]:
    """What gpualert says of the text as standard error."""
    return [frozenset(GPUALERT.get(told, "").split()) for told in _asked(inputs, python, _ASK_GPUALERT)]


def denpex(inputs: Sequence[Labelled], python: str) -> list[Answer]:
    """What denpex's engine says without a network; it needs Node.js."""
    return [of_denpex(told) for told in _asked(inputs, python, _ASK_DENPEX)]


def of_denpex(name: str) -> Answer:
    """The families that a class of denpex may mean by the words of its name."""
    words = set(name.split("_"))
    if name.split("_")[0] in _SILENT:
        return frozenset()
    found = (families.split() for keys, families in DENPEX.items() if words & set(keys.split()))
    return frozenset(family for some in found for family in some) or frozenset({"another"})


def _asked(inputs: Sequence[Labelled], python: str, program: str) -> list[str]:
    lines = "".join(json.dumps(one.text) + "\n" for one in inputs)
    environment = os.environ | {"DENPEX_USE_CANONICAL_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-I", "-c", program],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def score(inputs: Sequence[Labelled], answers: Sequence[Answer]) -> dict[str, int]:
    """Failures of which the right family is named, or another one, and inputs without one of which one is."""
    pairs = list(zip(inputs, answers, strict=True))
    failures = [(one.families, said) for one, said in pairs if one.families]
    return {
        "failures": len(failures),
        "right": sum(bool(families & said) for families, said in failures),
        "wrong": sum(bool(said) and not families & said for families, said in failures),
        "healthy": len(pairs) - len(failures),
        "alarms": sum(bool(said) for one, said in pairs if not one.families),
    }


Row = dict[str, int] | str


def compared(inputs: Sequence[Labelled], peers: dict[str, str]) -> dict[str, Row]:
    """The scores of all ways; ``peers`` are interpreters by the name of the peer that they have."""
    found: dict[str, Row] = {
        "torchdoctor": score(inputs, torchdoctor(inputs)),
        "signature search": score(inputs, signatures(inputs)),
    }
    ways: dict[str, Callable[[Sequence[Labelled], str], list[Answer]]] = {
        "gpualert": gpualert,
        "denpex": denpex,
    }
    for name, way in ways.items():
        found[name] = score(inputs, way(inputs, peers[name])) if peers.get(name) else "not run"
    return found
