"""Structured messages into facts. One module a namespace, imported only when a rule asks for its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from torchdoctor.model import Event, Fact, FactValue, Reason, Transcript

if TYPE_CHECKING:
    import ast

T = TypeVar("T")
# what an extractor finds in an event: a name within its namespace with the value, None for what is not there,
# and perhaps the words behind it; as a fact where it stands elsewhere or cannot be told
Found = tuple[str, FactValue] | tuple[str, FactValue, str] | Fact

# namespace of the facts -> module
NAMESPACES = {
    "oom": "oom",
    "assert": "device_assert",
    "dlopen": "dlopen",
    "xid": "xid",
    "nccl": "nccl",
    "exit": "exit",
    "state_dict": "state_dict",
    "build": "build",
    "compile": "torch_compile",
    "loss": "loss",
    "trainable": "trainable",
    "process_table": "tools.gpu_processes",
    "ps": "tools.ps",
    "free": "tools.free",
    "host_memory": "host_memory",
    "loader": "loader",
    "flight": "flight_facts",
    "hang": "hang",
    "launcher": "launcher",
    "store": "store",
    "python": "python_error",
    "operator": "operator",
    "script": "torchscript",
    "index": "index",
    "pair": "pair",
    "given": "given",
    "context": "context",
    "download": "download",
    "kernel": "kernel",
    "batch": "batch",
    "shapes": "shapes",
    "numeric": "numeric",
    "numpy_api": "numpy_api",
    "asked": "asked",
    "asserted": "asserted",
    "disagree": "disagree",
    "line": "line_parts",
    "listed": "listed",
    "call": "call",
    "miopen": "miopen",
    "kv_cache": "kv_cache",
    "multimodal": "multimodal",
    "newer": "newer",
    "wheel": "wheel_file",
    "port": "port",
    "apptainer": "apptainer",
    "folder": "model_folder",
    "renamed": "renamed",
    "sizes": "sizes",
    "native": "native",
    "gpu_count": "gpu_count",
}


def of_event(namespace: str, event: Event, transcript: Transcript) -> Iterator[Fact]:
    """The facts of one namespace that an event's message holds."""
    module = import_module(f"torchdoctor.extract.{NAMESPACES[namespace]}")
    for found in module.extract(event, transcript):
        if isinstance(found, Fact):
            yield found
        elif found[1] is None:
            yield Fact.absent(f"{namespace}.{found[0]}", event.place())
        else:
            yield Fact.known(f"{namespace}.{found[0]}", found[1], event.place(), *found[2:])


def once_a_text(read: Callable[[Transcript], T]) -> Callable[[Transcript], T]:
    """``read``, which keeps its answer for the transcript that it was asked of last."""
    kept: list[tuple[Transcript, T]] = []

    def asked(transcript: Transcript) -> T:
        if not kept or kept[0][0] is not transcript:
            kept[:] = [(transcript, read(transcript))]
        return kept[0][1]

    return asked


def parsed(code: str) -> ast.Module | None:
    """A line of source as a tree, never run; None for a part of a statement, and for one nested too deep."""
    import ast

    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def source(node: ast.AST) -> str:
    """The text of a part of such a tree; "" for one that is nested too deep to be written."""
    import ast

    try:
        return ast.unparse(node)
    except RecursionError:
        return ""


def untold(name: str, event: Event, missing: str) -> Fact:
    """A fact that the text does not settle; ``missing`` says what would."""
    return Fact.unknown(name, Reason.NOT_ASKED, event.place(), missing)


def of_text(transcript: Transcript) -> Iterator[Fact]:
    """What the text as a whole says of the machine it was printed on."""
    from torchdoctor.extract.environment import extract_text

    yield from extract_text(transcript)


def catalogue() -> dict[str, str]:
    """Every fact that can be read out of a text: name -> type and meaning."""
    from torchdoctor.extract import environment
    from torchdoctor.extract.tools import nvidia_smi

    found: dict[str, str] = {}
    for module in NAMESPACES.values():
        found.update(import_module(f"torchdoctor.extract.{module}").FACTS)
    found.update(environment.FACTS)
    found.update(nvidia_smi.FACTS)
    return found


def meaning(name: str) -> str:
    """What a fact that is read out of a text says, without its type; empty for a fact of another source."""
    module = NAMESPACES.get(name.partition(".")[0])
    told = import_module(f"torchdoctor.extract.{module}").FACTS.get(name, "") if module else ""
    return str(told).partition(": ")[2].partition(";")[0]
