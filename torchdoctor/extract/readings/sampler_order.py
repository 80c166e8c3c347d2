"""A DistributedSampler whose epoch is never set, and epochs that come in the same order."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "sampler_order"

FACTS: dict[str, str] = {
    "sampler_order.unset": "bool: the code shuffles with a DistributedSampler, loops over epochs, sets none",
    "sampler_order.repeats": "bool: epochs show the same samples in the same order, by output or words",
}

_PATTERNS = {
    "sampler": r"DistributedSampler\(",
    "spoken": r"\bDistributedSampler\b",
    "loop": r"\bfor\s+\w*(?:epoch|ep)\w*\s+in\b|\bfor\s+e\s+in\s+range",
    "epoch": r"\bep(?:och)?\s?[=:#\[]?\s?\d{1,5}\b\]?|^\s*\d{1,4}(?=:?\s+(?:tensor|\[))",
    "samples": r"\d+(?:,? +\d+|,\d+){2,}|\[[^\]]{5,200}\]",
    "same": (
        r"\b(?:same|identical)\s+(?:\w+ ){0,2}?(?:order|batch(?:es)?|ind(?:ices|exes)|samples?|sequence"
        r"|shape|pattern|spikes?|permutation)"
        r"|(?:order|batches|indices|samples|shuffl\w+)\b[^.\n]{0,50}\b(?:is|are|the|be) (?:always |exactly "
        r"|the )*(?:same|identical)"
        r"|(?:order|batches|indices|samples)\b[^.\n]{0,30}\b(?:same|identical)\b"
        r"|\u987a\u5e8f[^\n]{0,6}(?:\u4e00\u6837|\u76f8\u540c)|\u9806\u5e8f[^\n]{0,8}\u540c\u3058"
        r"|gleiche[nr]? Reihenfolge"
        r"|not (?:re)?shuffl|same (?:spikes|shape)|never (?:re)?shuffl"
    ),
    "wanted": r"which is what I want|as (?:wanted|expected|intended)|on purpose",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE if name in ("epoch", "same", "loop") else 0)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of code with a sampler for ranks; nothing where its epoch is set or it does not shuffle."""
    if "set_epoch" in passage.text or not passage.personal:
        return
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    sampler = next((line for line in code if _pattern("sampler").search(line.text)), None)
    looped = any(_pattern("loop").search(line.text) for line in code)
    repeats = _told(passage) or (_printed(passage) if looped else None)
    if not (sampler and looped):
        # told in words: the sampler, and what it gives in each epoch
        words = passage.of(Voice.SAID)
        spoken = next((line for line in words if _pattern("spoken").search(line.text)), None)
        sampler = sampler or (spoken if repeats is not None else None)
    if sampler is None or "shuffle=False" in passage.text.replace(" ", "") or not (looped or repeats):
        return
    yield sampler.fact("sampler_order.unset", True)
    if repeats is not None:
        yield repeats.fact("sampler_order.repeats", True)


def _printed(passage: Passage) -> Line | None:
    """The second of two lines that differ in the number of their epoch only, and list samples."""
    seen: dict[str, str] = {}
    for line in passage.of(Voice.PRINTED):
        epoch = _pattern("epoch").search(line.text)
        if epoch is None or not _pattern("samples").search(line.text[epoch.end() :]):
            continue
        rest = line.text[: epoch.start()] + line.text[epoch.end() :]
        if rest in seen and seen[rest] != epoch.group():
            return line
        seen[rest] = epoch.group()
    return None


def _told(passage: Passage) -> Line | None:
    if _pattern("wanted").search(passage.text):
        return None
    for line in passage.sentences:
        same = _pattern("same").search(line.text) or says("same order").search(line.text)
        if same and says("epochs").search(line.text):
            return line
    return None
