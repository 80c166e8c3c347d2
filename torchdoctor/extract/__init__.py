"""Structured messages into facts. One module a namespace, imported only when a rule asks for its facts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from torchdoctor.model import Event, Fact, Transcript

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
    "checksum": "checksum",
    "listing": "torch_in_folder",
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
    "context": "context",
}


def of_event(namespace: str, event: Event, transcript: Transcript) -> Iterator[Fact]:
    """The facts of one namespace that an event's message holds."""
    module = import_module(f"torchdoctor.extract.{NAMESPACES[namespace]}")
    yield from module.extract(event, transcript)


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
