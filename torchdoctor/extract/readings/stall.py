"""Does somebody tell that his program hangs: now, and not that it did or never does?"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

REMARK = 120  # characters: a longer printed line is output


@cache
def _denied() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:not|never|no|nothing|without|doesn't|isn't|didn't|hasn't|don't) (?:\w+ ){0,2}?"
        r"(?:hang|hung|stuck|freez|deadlock|stall)\w*",
        re.IGNORECASE,
    )


def told(passage: Passage) -> Line | None:
    """The sentence, or the remark beside output, that tells of a hang; None where it is over."""
    if over(passage):
        return None
    for line in _remarks(passage):
        if says("hangs").search(line.text) and not (
            _denied().search(line.text) or says("no hang").search(line.text)
        ):
            return line
    return None


def over(passage: Passage) -> bool:
    """Does somebody tell how it was solved?"""
    return passage.told(says("solved")) is not None


def speaks(passage: Passage) -> bool:
    """Does somebody speak of what befell him, in whatever language, and not teach?"""
    return passage.asked or (not passage.lesson and passage.told(says("first person")) is not None)


def _remarks(passage: Passage) -> Iterator[Line]:
    yield from passage.sentences
    # "(e aqui fica parado)", a title, a question of two words
    yield from (line for line in passage.of(Voice.PRINTED) if len(line.text) <= REMARK)
