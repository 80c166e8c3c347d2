"""For whom a fix is: the reader's surroundings, out of the text first, else out of the machine's facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.context_tags import BESIDE_OTHERS, DIMENSION, GENERATORS, SERVERS, TAGS, USUAL
from torchdoctor.engine.textfacts import frames_of, who_raised
from torchdoctor.extract import once_a_text
from torchdoctor.model import Event, EventKind, Fact, FactValue, Frame, State, Transcript
from torchdoctor.patterns import search

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from torchdoctor.catalog.rule import ConditionalFix

Surroundings = dict[str, frozenset[str]]  # dimension -> the tags that hold; none for what is unknown

# functions of frames, by what they do: a word between underscores; torch's own folders say more than names
_PHASES = {
    "train": frozenset({"train", "training", "backward", "fit"}),
    "validate": frozenset(
        {"valid", "validate", "validation", "eval", "evaluate", "evaluation", "test", "val"}
    ),
    "infer": frozenset(
        {"predict", "infer", "inference", "generate", "denoise", "sample", "transcribe", "txt2img", "img2img"}
    ),
    "export": frozenset({"export", "trace"}),
}
# a whole name
_LOADS = frozenset(
    {
        "load",
        "load_state_dict",
        "from_pretrained",
        "torch_load",
        "load_checkpoint",
        "load_model",
        "create_weights",
    }
)
_DISTRIBUTIONS = {  # by the first words of /etc/os-release
    "debian": ("Debian", "Ubuntu", "Linux Mint", "Pop!_OS"),
    "redhat": ("Red Hat", "CentOS", "Rocky", "AlmaLinux", "Fedora", "Amazon Linux", "Oracle Linux"),
    "arch": ("Arch Linux", "Manjaro", "EndeavourOS"),
    "suse": ("SUSE", "openSUSE", "SLES"),
}
_SERVERS = frozenset({"vllm", "sglang", "uvicorn", "fastapi", "starlette", "tritonserver", "lmdeploy"})
# what servers print when they are up, by which a log without a stack shows one
_SERVES = (
    r"^INFO: +Started server process \[\d|\bUvicorn running on http|\bStarting gunicorn \d"
    r"|^ ?\* Serving Flask app "
)
_DDP = "torch/nn/parallel/distributed.py"
_BUILDS = ("cpp_extension", "setup.py", "setuptools", "/pip/")


def of_event(event: Event, transcript: Transcript, ask: Callable[[str], Fact]) -> Surroundings:
    """The surroundings of one failure. ``ask`` answers for the facts of text and machine."""
    found: Surroundings = {}
    for name in TAGS:
        fact = ask(f"context.{name}") if name not in ("owner", "phase") else None
        if fact is not None and fact.state is State.KNOWN and isinstance(fact.value, tuple):
            found[name] = frozenset(map(str, fact.value))
        elif fact is not None and (tags := _of_machine(name, ask)):
            found[name] = tags
    frames = frames_of(event, transcript)
    if (raiser := who_raised(event.frames or frames)) is not None:
        found["owner"] = frozenset({owner(raiser)})
    phases = _phases(event, frames)
    if not frames and _serves(transcript):
        phases.add("serve")
    if found.get("program", frozenset()) & SERVERS and "train" not in phases:
        phases |= {"serve"}
    if found.get("program", frozenset()) & GENERATORS and "train" not in phases:
        phases |= {"infer"}
    if phases:
        found["phase"] = frozenset(phases)
    return found


@once_a_text
def _serves(transcript: Transcript) -> bool:
    """Does a web server say that it is up?"""
    return any(
        event.kind is EventKind.LOG
        and not event.quoted
        and search(_SERVES, event.text[:200], "server process", "Uvicorn", "gunicorn", "Flask")
        for event in transcript.events
    )


def of_machine(ask: Callable[[str], Fact]) -> Surroundings:
    """The surroundings of a machine on which nothing has failed yet."""
    return {name: tags for name in TAGS if (tags := _of_machine(name, ask))}


def owner(frame: Frame) -> str:
    """Whose code a frame is: ``user``, ``torch``, or ``package`` for all else."""
    return {"": "user", "torch": "torch"}.get(frame.package, "package")


def _phases(event: Event, frames: list[Frame]) -> set[str]:
    names = {frame.function for frame in frames}
    paths = " ".join(frame.file for frame in frames)
    words = {word for name in names for word in name.split("_")}
    words |= {word.rstrip("0123456789") for word in words}  # val2
    phases = {phase for phase in _PHASES if words & _PHASES[phase]}
    if names & _LOADS:
        phases.add("load")
    if event.kind is EventKind.BUILD or any(part in paths for part in _BUILDS):
        phases.add("build")
    if any(frame.code.startswith(("import ", "from ")) for frame in frames[:-1]):
        phases.add("import")
    if any(frame.package in _SERVERS for frame in frames):
        phases.add("serve")
    if "torch/onnx/" in paths or "torch/export/" in paths:
        phases.add("export")
    if _DDP in paths and not phases & {"validate", "infer"}:
        phases.add("train")  # it wraps no model that has nothing to train
    if "train" in phases:
        phases -= {"infer", "validate", "serve"}
    return phases


def _of_machine(dimension: str, ask: Callable[[str], Fact]) -> frozenset[str]:
    """What probes of the machine, or a recording of one, say of a dimension."""

    def value(name: str) -> FactValue:
        fact = ask(name)
        return fact.value if fact.state is State.KNOWN else None

    if dimension == "system":
        name = value("os.name")
        if value("os.wsl") is True:
            return frozenset({"wsl", "linux"})
        return frozenset({str(name)} & set(TAGS["system"]))
    if dimension == "distribution":
        name = str(value("os.distribution") or "")
        return frozenset(tag for tag, names in _DISTRIBUTIONS.items() if name.startswith(names))
    if dimension == "device":
        if value("os.name") == "macos":
            return frozenset({"apple"})
        vendors = value("gpu.vendors")
        return frozenset(map(str, vendors if isinstance(vendors, tuple) else ())) & frozenset(TAGS["device"])
    if dimension == "board":
        kernel = str(value("os.kernel") or "")
        if "tegra" in kernel:
            return frozenset({"jetson", "aarch64"})
        return frozenset({"aarch64"}) if value("os.machine") == "aarch64" else frozenset()
    if dimension == "runtime":
        return frozenset({str(value("os.container"))} & set(TAGS["runtime"]))
    if dimension == "python":
        name = value("python.environment")
        return frozenset({"system-python" if name == "system" else str(name)} & set(TAGS["python"]))
    return frozenset()


def place(fix: ConditionalFix, seen: Mapping[str, frozenset[str]]) -> int | None:
    """Where a fix stands by its tags: None when it is another reader's, else 0 to 2.

    0: for what is seen, first. 1: for all, or for what most have; as written. 2: for what few have and
    nothing shows; only where there is no other.
    """
    if any(tag in seen.get(DIMENSION[tag], ()) for tag in fix.not_for):
        return None
    return _rank(fix.wanted, seen)


def suits(tags: Collection[str], seen: Mapping[str, frozenset[str]]) -> bool:
    """Does none of the tags name other surroundings than those seen?"""
    return _rank(tags, seen) is not None


def _rank(wanted: Collection[str], seen: Mapping[str, frozenset[str]]) -> int | None:
    rank = 1
    for dimension in {DIMENSION[tag] for tag in wanted}:
        tags = {tag for tag in wanted if DIMENSION[tag] == dimension}
        here = seen.get(dimension, frozenset())
        if tags & here:
            if rank == 1 and tags & here - USUAL:
                rank = 0
        elif here - BESIDE_OTHERS:
            return None
        elif not tags & USUAL:
            rank = 2
    return rank
