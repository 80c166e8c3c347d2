"""All code of a text: lines of code, what was typed, and what stands between back quotes in a sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Voice

if TYPE_CHECKING:
    from torchdoctor.extract.readings.passage import Line, Passage


@cache
def _quoted() -> re.Pattern[str]:
    return re.compile(r"(?<!`)`(?P<code>[^`\n]{3,300})`(?!`)")


def snippets(passage: Passage) -> tuple[Line, ...]:
    """Lines of code in the order of the text; a sentence gives one for each of its quotes."""
    found: list[Line] = []
    for line in passage.lines:
        if line.voice in (Voice.CODE, Voice.TYPED):
            found.append(line)
        else:
            for quoted in _quoted().finditer(line.text):
                found += (replace(line, text=part) for part in quoted["code"].split("; "))
    return tuple(found)
