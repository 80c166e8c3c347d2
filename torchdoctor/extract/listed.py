"""Whether the list of what is supported, with which a refusal ends, has the very name that it refuses.

A program that could not import what it has says that it lacks it, and lists it among the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "listed.named": "bool: the list of what is supported, which ends a message, has the name that it refuses"
}

_NAME = r"'([^'\n]{1,100})'"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The fact of a message that says what is supported."""
    del transcript
    refused, _, rest = event.text.partition("upported")
    if not rest:
        return
    name = pattern(_NAME).search(refused)
    yield "named", name is not None and name[0] in rest
