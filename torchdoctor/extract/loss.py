"""Facts out of the lines in which a training program prints its losses.

Every program has its own format, so a loss is known by its name (``loss``, ``train_loss``, ``loss_bbox``,
``ppl``) with a value right behind it. Names of records (``best_loss: inf``) hold infinity before the first
epoch in sound runs, as does ``Validation loss decreased (inf --> 0.31)``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.model import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Event, Transcript

NAMESPACE = "loss"

FACTS: dict[str, str] = {
    "loss.name": "str: name of the first loss in the line that is not a number or infinite",
    "loss.not_a_number": "bool: a loss in the line is NaN or infinite",
    "loss.value": "str: nan or inf",
}

LINE_CHARS = 4000

_NAMES = (
    r"(?P<name>[A-Za-z_/.\-]{0,24}(?:[Ll]oss|LOSS|[Pp]pl|[Pp]erplexity)"
    r"(?:es|[_/.][A-Za-z_0-9]{1,24}|[A-Z0-9])?)"
)
_BETWEEN = r"(?:->|[\s:='\"(\[{|,*`]|tensor\(|is\b|value\b|\x1b\[[\d;]{0,8}m){1,24}?"
_VALUE = r"(?P<value>[-+]?(?:nan|NaN|NAN|inf|Inf|INF|Infinity))(?![\w.\-])"
# a row of YOLO's table, whose heads stand above: epoch, memory, then the losses
_ROW = r"(?:^|[\s|])\d{1,5}/\d{1,5}\s+\d{1,4}(?:\.\d{1,3})?[GM]\s+(?:\S+\s+){0,4}?(?P<value>nan|inf)\b"
_RECORDS = ("best", "min", "lowest", "last", "prev", "record", "top")


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_ROW if name == "row" else _NAMES + _BETWEEN + _VALUE)


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    """Facts of one line that prints a loss; nothing when no loss in it is NaN or infinite."""
    text = event.text[:LINE_CHARS]
    lower = text.lower()
    if "nan" not in lower and "inf" not in lower:
        return
    source = f"text:{event.source}:{event.line}"
    for found in _pattern("named").finditer(text):
        value = "nan" if "nan" in found.group("value").lower() else "inf"
        before = text[max(0, found.start() - 12) : found.start()].lower() + found.group("name").lower()
        if value == "inf" and (
            any(word in before for word in _RECORDS) or "->" in text[found.end() : found.end() + 8]
        ):
            continue
        yield Fact.known("loss.name", found.group("name").strip("_/.-"), source)
        yield Fact.known("loss.not_a_number", True, source)
        yield Fact.known("loss.value", value, source)
        return
    if (row := _pattern("row").search(text)) is not None:
        yield Fact.absent("loss.name", source, "a column of a table")
        yield Fact.known("loss.not_a_number", True, source)
        yield Fact.known("loss.value", row.group("value"), source)
