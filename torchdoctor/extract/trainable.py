"""How many parameters a program said it trains: PEFT's line, Lightning's and torchinfo's tables.

The last such line before an error counts: a model is often printed once before and once after it is frozen.
A message without a traceback may be the title of a report: where no count stands before it, the first behind
it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript

FACTS: dict[str, str] = {
    "trainable.params": "int: number of trainable parameters that the program printed before the message, or "
    "below a title",
    "trainable.rate_missing": "bool: the program left parameters out for want of a learning rate",
}

_LOOK_BACK = 2000  # events; the table stands at the start of a run, the error mostly in its first step
_NEAR = 60
_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "B": 1_000_000_000}


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    number = r"(?P<number>\d[\d,_]{0,20}(?:\.\d{1,6})?)"
    return (
        # PEFT "trainable params: 0 || all params: …", torchinfo and torchsummary "Trainable params: 1,024"
        re.compile(rf"(?<!-)\b[Tt]rainable param(?:eter)?s\s*[:=]\s*{number} ?(?P<unit>[KMB]?)(?!\w)"),
        # Lightning: "11.2 M    Trainable params"
        re.compile(rf"(?:^|[\s|]){number} ?(?P<unit>[KMB]?)\s+Trainable params\b"),
    )


def _no_rate(text: str) -> bool:
    """Kohya's scripts and what came of them: "NO LR skipping!"."""
    return re.search(r"(?i)\bno (?:lr|learning rate)\b", text) is not None


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The last count printed before the event, and whether parameters went without a learning rate."""
    near = transcript.events[max(0, event.id - _NEAR) : event.id]
    if "parameter" in event.text:
        yield "rate_missing", any(_no_rate(earlier.text[:4000]) for earlier in near)
    before = reversed(transcript.events[max(0, event.id - _LOOK_BACK) : event.id])
    found = _first(before)
    if found is None and not event.frames:
        found = _first(transcript.events[event.id + 1 : event.id + 1 + _LOOK_BACK])
    if found is not None:
        yield found


def _first(events: Iterable[Event]) -> Fact | None:
    for event in events:
        if "rainable param" not in event.text:
            continue
        for pattern in _patterns():
            counts = tuple(pattern.finditer(event.text[:4000]))
            if counts:
                found = counts[-1]
                count = float(re.sub("[,_]", "", found["number"])) * _UNITS[found["unit"]]
                return Fact.known("trainable.params", round(count), event.place())
    return None
