"""A vGPU or a MIG instance where somebody expects the memory or the speed of the whole card."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "gpu_slice"

FACTS: dict[str, str] = {
    "gpu_slice.name": "str: name of a vGPU or MIG instance that torch or nvidia-smi shows as the card",
    "gpu_slice.missed": "bool: somebody misses memory or speed that the whole card would have",
}

_PATTERNS = {
    "slice": (
        r"(?:NVIDIA |GRID )[A-Z]{1,3}\d{1,3}[A-Z]{0,4}-\d{1,2}[QCBA]\b|[^\s'\"|][^'\""
        r"|\n]{2,40} MIG \d{1,2}[cg]\.(?:\d{1,2}g\.)?\d{1,3}gb"
    ),
    "missed": (
        r"\bwhy\b[^\n?]{0,80}(?:only|less|slow|half)|\bonly (?:get|see|have|\d)|slow(?:er|s|ed)?\b"
        r"|rest of (?:the|my)|\bmissing\b"
        r"|doe?s(?:n't| not) fit|not fit|promised|half as fast|as fast as|should (?:have|be)|instead of"
        r"|less memory|smaller than"
    ),
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE if name == "missed" else 0)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a card that is only a part of one; nothing where nobody misses anything."""
    for line in passage.lines:
        found = _pattern("slice").search(line.text)
        if found is None or line.voice is Voice.SAID:
            continue
        said = (one for one in passage.of(Voice.SAID) if _pattern("missed").search(one.text))
        missed = next(said, None)
        if missed is not None:
            yield line.fact("gpu_slice.name", found.group().strip())
            yield missed.fact("gpu_slice.missed", True)
        return
