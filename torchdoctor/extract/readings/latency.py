"""Times of single calls: percentiles that somebody prints, or a call a line, the first ones left out."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "latency"

FACTS: dict[str, str] = {
    "latency.tail": "float: the slowest calls as a multiple of the median one, calls of the same work",
}

TAIL = 5.0  # a 99th percentile or repeated outliers
MAXIMUM = 20.0  # a single maximum
FEWEST = 8
WARM_UP = 3

_PATTERNS = {
    "median": r"\b(?:p50|median|50(?:th)? ?%|50th percentile)(?!\w)",
    "tail": r"\b(?:p99(?:\.\d+)?|p95|99(?:\.\d)?(?:th)? ?(?:%|percentile))",
    "bare": r"[ :=]{1,3}(?P<value>\d{1,6}(?:\.\d{1,4})?)(?![\w%])",
    "max": r"\b(?:max(?:imum)?|worst)\b",
    # the work differs from call to call
    "unequal": (
        r"\btokens?\b|prompts?\b|\blengths?\b|\bLLM\b|variable|different (?:sizes?|shapes?|resolutions?)"
        r"|dynamic shape|bucket"
        r"|DataLoader|\bloader\b|data time|data_time|checkpoint|recompil|torch\.compile|warm-?up included"
    ),
    "call": r"^\s*(?P<name>[A-Za-z][\w ]{0,24}?)[ #:=\[]{0,3}(?P<number>\d{1,7})\b[\]):,]?\s",
    "ours": r"torch|cuda|\bGPU\b|inference|latency|forward|model",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """The tail of the times of equal calls; nothing where the calls are not equal work."""
    if not passage.personal or not _pattern("ours").search(passage.text):
        return
    if _pattern("unequal").search(passage.text):
        return
    found = _percentiles(passage) or _listed(passage)
    if found is not None:
        ratio, line = found
        yield line.fact("latency.tail", round(ratio, 1))


def _percentiles(passage: Passage) -> tuple[float, Line] | None:
    named: dict[str, tuple[float, Line]] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        figures = list(seconds(line.text))
        for name in ("median", "tail", "max"):
            for word in _pattern(name).finditer(line.text):
                figure = next((item for item in figures if 0 <= item.start - word.end() <= 12), None)
                bare = _pattern("bare").match(line.text, word.end())
                if figure is not None:
                    named.setdefault(name, (figure.value, line))
                elif bare is not None and not figures:  # p50 4.1, p99 63: the unit stands elsewhere
                    named.setdefault(name, (float(bare.group("value")), line))
    if "median" not in named or named["median"][0] <= 0:
        return None
    middle = named["median"][0]
    for name, least in (("tail", TAIL), ("max", MAXIMUM)):
        if name in named and named[name][0] >= least * middle:
            return named[name][0] / middle, named[name][1]
    return None


def _listed(passage: Passage) -> tuple[float, Line] | None:
    """A call a line, numbered: several that take far longer than the rest, none of them among the first."""
    series: dict[str, list[tuple[float, Line]]] = {}
    numbers: dict[str, list[int]] = {}
    for line in passage.of(Voice.PRINTED):
        call = _pattern("call").match(line.text)
        figures = list(seconds(line.text))
        if call is not None and len(figures) == 1 and "epoch" not in call.group("name").lower():
            name = call.group("name").strip().lower()
            series.setdefault(name, []).append((figures[0].value, line))
            numbers.setdefault(name, []).append(int(call.group("number")))
    for name, calls in series.items():
        gaps = [after - before for before, after in pairwise(numbers[name])]
        if not gaps or min(gaps) <= 0 or max(gaps) > 1.5 * min(gaps):
            continue  # sizes that were tried, not calls one after another
        settled = calls[WARM_UP:]
        if len(settled) < FEWEST:
            continue
        middle = median(value for value, _ in settled)
        slow = [item for item in settled if item[0] >= TAIL * middle > 0]
        if len(slow) >= 2 and len(slow) * 4 <= len(settled):
            worst, line = max(slow, key=lambda item: item[0])
            return worst / middle, line
    return None
