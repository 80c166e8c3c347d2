"""Structured messages into facts. One module a namespace, imported only when a rule asks for its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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
    "listing": "listing",
    "process_table": "process_table",
    "host_memory": "host_memory",
    "loader": "loader",
    "flight": "flight_facts",
    "hang": "hang",
    "launcher": "launcher",
    "store": "store",
}


def of_event(namespace: str, event: Event, transcript: Transcript) -> Iterator[Fact]:
    """The facts of one namespace that an event's message holds."""
    module = import_module(f"torchdoctor.extract.{NAMESPACES[namespace]}")
    yield from module.extract(event, transcript)


def is_reading(namespace: str) -> bool:
    """Are the facts of this namespace read out of the whole text?"""
    from torchdoctor.extract.readings.triggers import READINGS

    return namespace in READINGS


def of_whole(transcript: Transcript) -> Iterator[tuple[str, Callable[[], Iterator[Fact]]]]:
    """What settings, figures and pasted code in a text without a failure show, taken together.

    Each reading that may find something, by name: the caller runs them, one at a time.
    """
    from torchdoctor.extract.readings.triggers import READINGS

    text = "\n".join(event.text for event in transcript.events).lower()
    wanted = [
        name for name, groups in READINGS.items() if all(any(w in text for w in group) for group in groups)
    ]
    if not wanted:
        return
    from torchdoctor.extract.readings.passage import Passage

    passage = Passage(transcript)
    for name in wanted:
        read = import_module(f"torchdoctor.extract.readings.{name}").read
        yield name, partial(read, passage)


def of_text(transcript: Transcript) -> Iterator[Fact]:
    """What the text as a whole says of the machine it was printed on."""
    from torchdoctor.extract.environment import extract_text

    yield from extract_text(transcript)


def catalogue() -> dict[str, str]:
    """Every fact that can be read out of a text: name -> type and meaning."""
    from torchdoctor.extract import environment, nvidia_smi
    from torchdoctor.extract.readings.triggers import READINGS

    found: dict[str, str] = {}
    for module in (*NAMESPACES.values(), *(f"readings.{name}" for name in READINGS)):
        found.update(import_module(f"torchdoctor.extract.{module}").FACTS)
    found.update(environment.FACTS)
    found.update(nvidia_smi.FACTS)
    return found
