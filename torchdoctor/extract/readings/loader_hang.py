"""A loader that hangs with workers and works without them, as people tell of it; no program says so."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "loader_hang"

FACTS: dict[str, str] = {
    "loader_hang.hangs": "bool: somebody says that the loop, or the loader, hangs with workers",
    "loader_hang.works_without": "bool: the same works with num_workers=0",
}

_PATTERNS = {
    "hangs": (
        r"\bhangs?\b|\bhanging\b|\bstuck\b|freez|\bfrozen\b|deadlock|never (?:returns?|comes?|ends?|starts?"
        r"|gets?)"
        r"|blocks? forever|waits? forever|nothing happens|h\u00e4ngt|bleibt (?:\w+ )?(?:h\u00e4ngen|stehen)"
        r"|\u5361\u4f4f|\u5361\u6b7b|\u56fa\u307e|\u6b62\u307e\u3063\u305f\u307e\u307e|\uba48\ucda5"
    ),
    "workers": (r"num_workers|\bworkers?\b|\bDataLoader\b|\bloader\b|\bworker\u6570"),
    "without": (
        r"(?:num_workers\s?(?:=|to|auf|\u6539\u6210|\u8bbe\u4e3a|\u8bbe\u7f6e\u4e3a|\u3092)?\s?0|\b(?:0|no"
        r"|zero|without) workers|ohne Worker)"
    ),
    "works": (
        r"\bworks?\b|\bfine\b|\bruns?\b|\bok(?:ay)?\b|no problem|does(?:n't| not) hang|l\u00e4uft|geht es"
        r"|funktioniert"
        r"|\u6b63\u5e38|\u6ca1\u95ee\u9898|\u53ef\u4ee5\u8dd1|\u52d5\u304d\u307e\u3059|\u52d5\u304f"
        r"|\u554f\u984c\u306a"
    ),
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a hang that depends on the workers; nothing where nobody speaks of himself, or asks."""
    if not passage.personal:
        return
    told = [line for line in passage.of(Voice.SAID, Voice.PRINTED) if line.text.lstrip()[:1] != "|"]
    hangs = next((line for line in told if _pattern("hangs").search(line.text)), None)
    if hangs is None or not any(_pattern("workers").search(line.text) for line in told):
        return
    yield hangs.fact("loader_hang.hangs", True)
    for line in told:
        # the sentence, or the part of it, that speaks of no workers must say that it works
        for part in re.split(r"[.;!?\uff0c\u3002]\s*|,\s|\bbut\b|\baber\b", line.text):
            without = _pattern("without").search(part)
            if without and _pattern("works").search(part) and not _pattern("hangs").search(part):
                yield line.fact("loader_hang.works_without", True)
                return
