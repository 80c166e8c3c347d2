"""What the reader told the program, in the options and settings that the text repeats."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "given.device": "text: the device in options and settings, as mps or cpu; absent among several",
}

_DEVICE = r"\bdevice(?:[-_]type)?['\"]?(?: ?[=:] ?| )['\"]?(mps|cpu|cuda|xpu)\b"
_CHARS = 2_000  # of an event


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of the whole text, whatever the event."""
    yield "device", _device(transcript)


@once_a_text
def _device(transcript: Transcript) -> str | None:
    named = {
        found[1]
        for event in transcript.events
        if "device" in event.text
        for found in pattern(_DEVICE).finditer(event.text[:_CHARS])
    }
    return named.pop() if len(named) == 1 else None
