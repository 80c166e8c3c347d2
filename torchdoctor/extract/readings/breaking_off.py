"""Figures that are numbers up to some step and NaN from there to the end, whatever they are called."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

BEFORE, AFTER = 2, 2  # lines with numbers, and with NaN
FEWEST = 2  # figures of a line that are NaN: of a metric without samples it is one
LISTED = 4

_PATTERNS = {
    "figure": r"(?<![\w.])-?(?:nan|inf|\d[\d.]*(?:,\d+)?(?:e[+-]?\d{1,3})?)(?![\w.])",
    "list": r"^\s*[\w .]{0,24}[:=]?\s*\[(?P<values>[^\[\]\n]{8,600})\]\s*$",
    "words": r"[^\W\d_]{2,}",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def last_finite(passage: Passage) -> Line | None:
    """The first line of NaN, where at least two of its figures are NaN on all lines of its form below it."""
    for run in _runs(passage):
        first = next((at for at, (_, values) in enumerate(run) if _broken(values)), None)
        if first is None or first < BEFORE or len(run) - first < AFTER:
            continue
        if all(_broken(values) for _, values in run[first:]) and all(
            not any(map(math.isnan, values)) for _, values in run[:first]
        ):
            return run[first][0]
    return _listed(passage)


def _broken(values: list[float]) -> bool:
    return sum(map(math.isnan, values)) >= FEWEST


def _runs(passage: Passage) -> Iterator[list[tuple[Line, list[float]]]]:
    """Lines of one form that stand together, with their figures."""
    run: list[tuple[Line, list[float]]] = []
    form = ""
    for line in passage.of(Voice.PRINTED):
        values = [_value(found.group()) for found in _pattern("figure").finditer(line.text)]
        own = " ".join(_pattern("figure").sub("#", line.text).split())
        if own != form and run:
            yield run
            run = []
        form = own
        if len(values) > FEWEST:
            run.append((line, values))
    if run:
        yield run


def _value(text: str) -> float:
    return float(re.sub(r"[.,](?=.*\.)", "", text.lower().replace(",", ".")))


def _listed(passage: Passage) -> Line | None:
    """A list of losses that climbs to infinity or NaN at its end."""
    if says("loss").search(passage.text) is None:
        return None
    for line in passage.of(Voice.PRINTED):
        found = _pattern("list").match(line.text)
        if found is None:
            continue
        values = [_value(one.group()) for one in _pattern("figure").finditer(found["values"])]
        sound = [value for value in values if math.isfinite(value)]
        if len(values) - len(sound) < 1 or len(sound) < LISTED or math.isfinite(values[-1]):
            continue
        climbs = all(two > one for one, two in pairwise(sound[-3:]))
        if climbs and values[: len(sound)] == sound:
            return line
    return None
