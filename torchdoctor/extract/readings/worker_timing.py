"""Times of the same loading with other numbers of DataLoader workers, and pauses at each epoch's start."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import rates, seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "worker_timing"

FACTS: dict[str, str] = {
    "worker_timing.slower": "float: how many times longer loading takes with more workers",
    "worker_timing.restart_s": "float: seconds that the first batch of every epoch takes, with workers",
}

LEAST = 1.5
EVEN = 1.15  # below that two times are the same
PAUSE_S = 3.0

_PATTERNS = {
    "workers": (
        r"(?:num_workers|n_workers|workers?|\bnw)\s?(?:[=:]|is|->)?\s?(?P<after>\d{1,3})\b"
        r"|\b(?P<before>\d{1,3}) workers?\b"
    ),
    "row": r"^\s*\|\s*(?P<number>\d{1,3})\s*\|(?P<rest>[^\n]*)$",
    "parts": (
        r"[,;]\s|\s(?:and|but|vs\.?|while|whereas|compared (?:to|with)|instead of|against)\s|(?<=[a-z)])\. "
    ),
    "some": r"(?:num_workers|workers)\s?[=:]?\s?(?:[1-9]\d?)\b|\b[1-9]\d? workers",
    "first": r"first (?:batch|iter(?:ation)?|step)\b[^\d\n]{0,20}",
    # the ImageNet example of torch: "Epoch: [1][0/196]  Time 17.003 (17.003)  Data 12.637 (12.637)"
    "meter": (
        r"Epoch:? ?\[(?P<epoch>\d{1,4})\]\s?\[\s*(?P<step>\d{1,7})/\s*\d{1,7}\]\s+(?:Time\s+(?P<time>\d{1,6}"
        r"\.\d{1,6})[^\n]{0,24}?)?\bData\s+(?P<data>\d{1,6}\.\d{1,6})"
    ),
    "epoch": r"\bepoch\s?[=:#]?\s?(?P<epoch>\d{1,4})\b",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a comparison of numbers of workers, or of first batches; nothing without figures."""
    if not passage.personal:
        return
    slower = _slower(passage)
    if slower is not None:
        factor, line = slower
        yield line.fact("worker_timing.slower", round(factor, 1))
    pause = _restart(passage)
    if pause is not None:
        length, line = pause
        yield line.fact("worker_timing.restart_s", round(length, 1))


def _slower(passage: Passage) -> tuple[float, Line] | None:
    for measure, inverse in ((seconds, False), (rates, True)):
        taken: dict[int, tuple[float, Line]] = {}
        for number, text, line in _by_number(passage):
            figures = list(measure(text))
            if len(figures) == 1 and figures[0].value:
                value = 1 / figures[0].value if inverse else figures[0].value
                taken.setdefault(number, (value, line))
        if len(taken) < 2:
            continue
        fewest = min(taken)
        base = taken[fewest][0]
        others = [taken[number] for number in taken if number != fewest]
        most, line = max(others, key=lambda item: item[0])
        if most >= LEAST * base and all(value >= EVEN * base for value, _ in others):
            return most / base, line
    return None


def _by_number(passage: Passage) -> Iterator[tuple[int, str, Line]]:
    """Each number of workers, with the text that belongs to it: a line, a part of one, a row of a table."""
    table = False
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        if line.text.lstrip()[:1] == "|":
            table = table or "worker" in line.text.split("|")[1].lower()
            if table and (row := _pattern("row").match(line.text)) is not None:
                yield int(row.group("number")), row.group("rest"), line
            continue
        table = False
        for part in _pattern("parts").split(line.text):
            found = list(_pattern("workers").finditer(part))
            if len(found) == 1:
                yield int(found[0].group("after") or found[0].group("before")), part, line


def _restart(passage: Passage) -> tuple[float, Line] | None:
    """The first batch of several epochs, where each is far slower than what the text says of none."""
    if not _pattern("some").search(passage.text):
        return None
    pauses: dict[int, tuple[float, Line]] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        epoch, first = _pattern("epoch").search(line.text), _pattern("first").search(line.text)
        if epoch is None or first is None:
            continue
        figure = next((item for item in seconds(line.text) if item.start >= first.end() - 1), None)
        if figure is not None:
            pauses[int(epoch.group("epoch"))] = (figure.value, line)
    for line in passage.of(Voice.PRINTED):
        meter = _pattern("meter").search(line.text)
        if meter is not None and int(meter.group("step")) == 0:
            pauses[int(meter.group("epoch"))] = (float(meter.group("data")), line)
    later = [item for number, item in sorted(pauses.items()) if number > min(pauses)]
    if len(pauses) < 2 or not later or any(value < PAUSE_S for value, _ in pauses.values()):
        return None
    return later[0]
