"""Whether a text tells of something that is over: release notes, and threads that end well."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from torchdoctor.extract.readings.passage import Passage


@cache
def _heads() -> re.Pattern[str]:
    return re.compile(
        r"(?i)^\W{0,6}(?:bug ?fixes|fixed|fixes|added|changed|removed|deprecated|upgrade notes|upgrading"
        r"|migration notes|new features|improvements|release notes|changelog|breaking changes"
        r"|known issues)\W{0,3}$"
    )


@cache
def _supposed() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:would|could|might|may|can|are there|is there|known to|known for|I(?:'ve)? read"
        r"|heard of|if|whether"
        r"|avoid\w*|prevent\w*|w\u00fcrde|k\u00f6nnte|falls|pourrait|podr\u00eda|poderia)\b|'d\b"
    )


def supposed(text: str) -> bool:
    """Does a sentence speak of what may be, not of what is?"""
    return _supposed().search(text) is not None


def cured(passage: Passage) -> bool:
    """Do people say that it is over, or is this a document: what a release changed, what was decided?"""
    first = passage.lines[0].text if passage.lines else ""
    if first.startswith("# ") and "?" not in passage.text and "\uff1f" not in passage.text:
        return True
    if any(says("cured").search(line.text) for line in passage.sentences):
        return True
    return sum(_heads().match(line.text) is not None for line in passage.lines) > 1
