"""What was printed before the memory ran out: epochs that ended, and figures that grew."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.number import amount
from torchdoctor.patterns import Patterns

NEIGHBOURS = 400
LINE_CHARS = 2000  # of an earlier line; progress is printed in short ones
GROWTH = 1.15
LATE_SHARE = 0.1
RISES = 3
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SOURCES = {
    "epoch": r"(?<!in_)(?<!per_)[Ee]poch(?:\s{0,4}[:=#\[(])?\s{0,4}\[?(\d{1,9})",
    "load": (
        r"\b(?:batch[ _-]?size|bs|seq(?:uence)?[ _-]?len(?:gth)?|(?:image|img)[ _-]?(?:size|sz)|resolution)"
        r"[\"']?\s{0,2}[=: ]\s{0,2}(\d{1,7})\b"
    ),
    # "gpu=5127MiB", "memory: 9877", "max mem: 14220", "gpu_mem 9.6G", "mem_usage:cuda 9.6GB"
    "memory": (
        r"(?P<name>[A-Za-z_ ]{0,24}(?:gpu|mem|vram|alloc|GPU|Mem|VRAM|cuda)[A-Za-z_ ]{0,16}?)"
        r"\s{0,2}[:=]?\s{0,2}"
        r"(?:cuda\s{0,2})?(?P<number>\d{1,20}(?:\.\d{1,9}(?:e[+-]?\d{1,3})?)?)\s?(?P<unit>[KMGT]i?B?|bytes)?\b"
    ),
}
_PATTERNS = Patterns(_SOURCES)


def facts(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What the lines before the report tell of memory and of finished epochs, on the same rank."""
    epochs: set[str] = set()
    figures: dict[str, list[float]] = {}
    load = 0
    for earlier in transcript.events[max(0, event.id - NEIGHBOURS) : event.id]:
        if earlier.kind is not EventKind.LOG or earlier.quoted or _other_rank(earlier, event):
            continue
        text = earlier.text[:LINE_CHARS]
        larger = max(map(int, _PATTERNS["load"].findall(text)), default=0)
        if larger > load > 0:
            epochs.clear()  # what grew is the work, not what is left of it
            figures.clear()
        load = max(load, larger)
        for found in _PATTERNS["epoch"].finditer(text):
            epochs.add(found.group(1))
        for found in _PATTERNS["memory"].finditer(text):
            number = amount(found.group("number")) or 0.0
            unit = (found.group("unit") or "m")[0].lower()
            if number > 0 and unit in _POWERS:
                name = found.group("name").strip(" _:=").lower()
                figures.setdefault(name, []).append(number * 1024.0 ** _POWERS[unit])
    yield "epochs_before", len(epochs)
    verdicts = [grew for series in figures.values() if (grew := _rises(series)) is not None]
    if verdicts:
        yield "grew", any(verdicts)


def _other_rank(earlier: Event, event: Event) -> bool:
    return earlier.rank is not None and event.rank is not None and earlier.rank != event.rank


def _rises(series: list[float]) -> bool | None:
    """Do the figures rise nearly all the way? None for fewer than three figures.

    A leak adds at every step; memory that depends on the batch goes up and down.
    """
    if len(series) < 3:
        return None
    falls = sum(1 for before, after in itertools.pairwise(series) if after < before * 0.995)
    late = series[-1] - series[len(series) // 2]  # the first steps fill caches and the optimizer's state
    rises = series[-1] >= GROWTH * series[0] and falls * 10 <= len(series)
    steps = sum(1 for before, after in itertools.pairwise(series[1:]) if after > before)
    rises = rises and steps >= min(RISES, len(series) - 2)  # one jump is another phase of the program
    return rises and late >= LATE_SHARE * (series[-1] - series[0])
