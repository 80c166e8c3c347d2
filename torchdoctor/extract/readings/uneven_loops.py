"""Somebody tells that the ranks have different numbers of batches, and that the program hangs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "uneven_loops"

FACTS: dict[str, str] = {
    "uneven_loops.told": "str: how somebody says that the ranks have different numbers of batches",
    "uneven_loops.hangs": "bool: the same text says that the program hangs or waits till a timeout",
}

_PATTERNS = {
    "uneven": (
        r"\b(?:uneven|unequal)(?:ly)? (?:\w+ ){0,3}?"
        r"(?:data|inputs?|batch(?:es)?|lengths?|sizes?|shards?|splits?"
        r"|number|amounts?|distribut\w+|divid\w+)\b"
        r"|\bnumbers? of (?:\w+ )?(?:batches|samples|steps|iterations)\b[^.\n]{0,60}"
        r"\b(?:differ(?:s|ent)?|unequal|uneven|not (?:be )?(?:the )?(?:same|equal))\b"
        r"|\bdifferent (?:numbers?|lengths?|amounts?) of (?:\w+ )?(?:batches|samples|steps|iterations|data)\b"
        r"|\bnot (?:distributed|divided|split|sharded)[^.\n]{0,20}\b(?:equal(?:ly)?|evenly)\b"
        r"|\b(?:rank|gpu|process)\b[^.\n]{0,20}\b(?:does not|doesn't) have any (?:more )?batches"
        r"|\b(?:one|some|a) (?:rank|gpu|process)\w*\b[^.\n]{0,40}\b(?:has|have|gets?|sees?) (?:one |a few )?"
        r"(?:more|fewer|less) (?:batch(?:es)?|samples|steps|iterations)\b"
    ),
    "timeout": r"\btime(?:s|d)? ?outs?\b",
    "ranks": r"\b(?:ranks?|DDP|DistributedDataParallel|torchrun|NCCL|multi-?GPU|accelerate|gpus)\b",
    # what a library offers or plans, no failure of the writer's own
    "offered": r"\b(?:join\(|Join API|context manager|feature request|proposal|RFC|pitch)\b",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Both facts, where a person tells of ranks that hang; nothing where a library is described."""
    if not passage.personal:
        return
    told = next((line for line in passage.sentences if _uneven(line.text)), None)
    if told is None or not _pattern("ranks").search(passage.text) or _pattern("offered").search(passage.text):
        return
    found = _uneven(told.text)
    hangs = passage.told(says("hangs")) or passage.told(_pattern("timeout"))
    if found is None or hangs is None:
        return
    yield told.fact("uneven_loops.told", found.group()[:80])
    yield hangs.fact("uneven_loops.hangs", True)


def _uneven(text: str) -> re.Match[str] | None:
    """Words for it; those that are not only said of batches must stand beside a rank or a batch."""
    found = _pattern("uneven").search(text)
    beside = _pattern("ranks").search(text) or says("batches").search(text)
    return found or (says("uneven").search(text) if beside else None)
