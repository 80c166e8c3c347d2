"""Times, rates and sizes that stand in a line, with their units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.amounts import placed
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIME = {
    "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0,
    "seconds": 1.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0,
    "\u043c\u0441": 1e-3, "\u0441\u0435\u043a": 1.0,
}  # fmt: skip

_PATTERNS = {
    "time": (
        r"(?<![\w.:])(?P<number>\d{1,9}(?:\.\d{1,9})?)\s?(?P<unit>us|\u00b5s|msec|ms|seconds?|secs?|s"
        r"|minutes?|mins?|hours|h|\u043c\u0441|\u0441\u0435\u043a)"
        r"(?:/(?:it|iter|step|batch|epoch|image|sample)s?)?(?![\w/])"
    ),
    "minutes": r"(?<![\w.:])(?P<m>\d{1,3})\s?m(?:in)?\s?(?P<s>\d{1,2}(?:\.\d{1,3})?)\s?s(?![\w/])",
    "rate": (
        r"(?<![\w.:])(?P<number>\d{1,9}(?:\.\d{1,9})?)\s?(?:it|its|iter|iters|samples?|images?|imgs?|img"
        r"|tokens?|tok|batch(?:es)?"
        r"|steps?|examples?|fps)(?:/(?:s|sec|second)\b| per second)"
    ),
    "thousands": r"^\d{1,3}(?: \d{3})+\s?[KMGTkmgt\u043a\u043c\u0433\u041a\u041c\u0413]i?[Bbo\u0431\u0411]$",
    # "3,2 ms": a comma before one or two digits; before three it parts thousands
    "comma": r"(?<![\d.,])(\d{1,6}),(\d{1,2})(?![\d,.]\d|\d)",
    "scientific": r"(?<![\w.])-?(?P<number>\d{1,3}(?:\.\d{1,20})?e[+-]?\d{1,3}|0?\.\d{2,20})(?![\w%]|\.\w)",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a line in seconds, per second or bytes, and the columns it stands in."""

    value: float
    start: int
    end: int


def _dotted(text: str) -> str:
    """The text with points for decimal commas, every column where it was."""
    return _pattern("comma").sub(r"\1.\2", text) if "," in text else text


_pattern = patterns(_PATTERNS)


def seconds(text: str) -> Iterator[Figure]:
    """The lengths of time in a line, in seconds."""
    taken = -1
    text = _dotted(text)
    for found in _pattern("minutes").finditer(text):
        taken = found.end()
        yield Figure(60 * int(found.group("m")) + float(found.group("s")), found.start(), found.end())
    for found in _pattern("time").finditer(text, max(taken, 0)):
        yield Figure(float(found.group("number")) * _TIME[found.group("unit")], found.start(), found.end())


def rates(text: str) -> Iterator[Figure]:
    """Iterations, samples or the like per second in a line."""
    for found in _pattern("rate").finditer(_dotted(text)):
        yield Figure(float(found.group("number")), found.start(), found.end())


def sizes(text: str) -> Iterator[Figure]:
    """Sizes in a line, in bytes."""
    for start, end, value in placed(text):
        yield Figure(value, start, end)


def cell_size(cell: str) -> float | None:
    """The first size of a table's cell, in bytes; a cell of its own may part thousands by blanks."""
    if _pattern("thousands").match(cell):
        cell = cell.replace(" ", "")
    found = next(sizes(cell), None)
    return found.value if found is not None else None


def small_numbers(text: str) -> Iterator[Figure]:
    """Numbers that are written as 1.2e-3 or 0.0012."""
    for found in _pattern("scientific").finditer(text):
        yield Figure(float(found.group("number")), found.start(), found.end())
