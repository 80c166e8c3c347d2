"""A regression whose loss broadcasts: torch's warning beside predictions that are all the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage
    from torchdoctor.model import Fact

NAMESPACE = "broadcast_loss"

FACTS: dict[str, str] = {
    "broadcast_loss.warned": "bool: torch warned that target and input of a loss differ in size",
    "broadcast_loss.poor": "bool: figures or words show a model that predicts no better than the mean",
}

FEWEST = 2
NOTHING = 0.02  # of R2: a model that predicts the mean has 0

_PATTERNS = {
    "warned": r"Using a target size \(torch\.Size\(.{1,60}different (?:to|from) the input size",
    "r2": r"(?<![A-Za-z])r(?:_?2|\u00b2)(?:_?score)?\b\W{0,6}(?P<value>-?\d{1,3}\.\d{1,9}(?:e-?\d{1,3})?)",
    "mean": (
        r"predict\w*[^.\n]{0,60}\b(?:same|constant|identical|the mean|average)\b"
        r"|\b(?:same|constant|identical)\b[^.\n]{0,30}predict\w*"
        r"|\b(?:variance of|better than (?:the )?(?:mean|average|median))\b"
        r"|Mittelwert|Varianz der|moyenne|m\u00eame valeur|la media\b|a m\u00e9dia\b|mismo valor|mesmo valor"
        r"|\u5e73\u5747\u503c|\u540c\u4e00\u4e2a\u503c|\u90fd\u4e00\u6837"
        r"|\u5e73\u5747\u5024|\u540c\u3058\u5024"
        r"|\u0441\u0440\u0435\u0434\u043d\u0435\u0435"
        r"|\u043e\u0434\u043d\u043e \u0438 \u0442\u043e \u0436\u0435"
    ),
    "measure": r"\br2\b|R\u00b2|\bmse\b|\brmse\b|\bmae\b|\bval(?:idation)?\b",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("warned",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a run that ended without a failure; nothing where somebody says that it is over."""
    warned = passage.first(_pattern("warned"))
    if warned is None or cured(passage):
        return
    yield warned.fact("broadcast_loss.warned", True)
    poor = _printed(passage) or _told(passage)
    if poor is not None:
        yield poor.fact("broadcast_loss.poor", True)


def _printed(passage: Passage) -> Line | None:
    """The last line with an R2, where none of them is above nothing."""
    shown = [
        (float(found.group("value")), line)
        for line in passage.lines
        for found in _pattern("r2").finditer(line.text)
    ]
    # a model to compare with stands at the end, with what it reaches
    while len(shown) > FEWEST and shown[-1][0] > NOTHING:
        shown.pop()
    poor = len(shown) >= FEWEST and all(value <= NOTHING for value, _ in shown)
    return shown[-1][1] if poor else None


def _told(passage: Passage) -> Line | None:
    for line in passage.sentences:
        if _pattern("warned").search(line.text):
            continue
        measured = _pattern("measure").search(line.text) or says("learning").search(line.text)
        if _pattern("mean").search(line.text) or (measured and says("stays").search(line.text)):
            return line
    return None
