"""Weights that differ between ranks which should hold the same, in a table or in words.

Lines of a log with checksums are read by ``extract.checksum``; here stand the tables people make of them, and
what they say who compared the weights themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.rank_figures import series
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage
    from torchdoctor.model import Fact

NAMESPACE = "replica_weights"

FACTS: dict[str, str] = {
    "replica_weights.differ": "str: how figures or words tell that ranks have other weights",
    "replica_weights.replicated": "bool: the text names DDP, and nothing that parts the weights among ranks",
}

_PATTERNS = {
    "weights": (
        r"(?i)\bparam(?:eter)?s?\b|_param|param_|\bweights?\b|weight_|\bgewichte?n?\b|\bpoids\b|\bpesos\b"
        r"|\bpesi\b|\bwagi\b|\bw_?sum\b|\|w\||state_dict"
        r"|\u53c2\u6570|\u6743\u91cd|\u91cd\u307f|\u30d1\u30e9\u30e1\u30fc\u30bf|\uac00\uc911\uce58"
        r"|\ud30c\ub77c\ubbf8\ud130|\u0432\u0435\u0441(?:\u0430|\u043e\u0432|\u044b)"
        r"|\u043f\u0430\u0440\u0430\u043c\u0435\u0442\u0440"
    ),
    "sum": (
        r"(?i)check_?sum|hash|md5|sha\d|\bcrc|\bsums?\b|_sum\b|\bnorms?\b|_norm\b|\bmeans?\b|_mean\b|\babs\b"
        r"|summe|somm[ae]|suma\b|soma\b|\|w\||\bl2\b"
        r"|\u548c|\u8303\u6570|\u5408\u8a08|\u30ce\u30eb\u30e0|\ud569|\u0441\u0443\u043c\u043c"
        r"|\u043d\u043e\u0440\u043c"
    ),
    "other": (
        r"(?i)grad|\bloss|count|numel|number of|shard|\bacc|\binput|\bbatch|activation|output|logits|\blr\b"
    ),
    "ranks": (
        r"(?i)\branks?\b|\bprocess(?:es)?\b|\bgpus?\b|\breplicas?\b|\bR\u00e4nge|\bRang|\brangs?\b|Prozess"
        r"|Karten|\bprocesos|\bprocessos|\bworkers?\b"
        r"|\u5361|\u8fdb\u7a0b|\u30e9\u30f3\u30af|\u30d7\u30ed\u30bb\u30b9|\ub7ad\ud06c"
        r"|\u0440\u0430\u043d\u0433|\u043f\u0440\u043e\u0446\u0435\u0441\u0441"
    ),
    "apart": (
        r"(?i)\b(?:differ|differs|different|diverge[sd]?|drift\w*|out of sync|not in sync|apart"
        r"|not (?:the same|equal|identical)|no longer (?:the same|equal|identical)|aren't (?:the same|equal"
        r"|identical))\b"
        r"|laufen\b[^.\n]{0,40}auseinander|auseinander(?:laufen|driften)|unterschiedlich|verschieden"
        r"|divergent|diff\u00e9rent|ne sont (?:pas|plus) (?:les m\u00eames|identiques|\u00e9gaux)|divergen"
        r"|distint|diferent|non sono (?:pi\u00f9 )?(?:uguali|gli stessi)"
        r"|\u4e0d\u4e00\u81f4|\u4e0d\u4e00\u6837|\u4e0d\u540c|\u7570\u306a|\u9055|\u305a\u308c|\ub2e4\ub985"
        r"|\ub2e4\ub974|\ub2ec\ub77c|\u0440\u0430\u0441\u0445\u043e\u0434|\u043e\u0442\u043b\u0438\u0447"
        r"|\u0440\u0430\u0437\u043d"
    ),
    "equal": (
        r"torch\.(?:equal|allclose)[^.\n]{0,60}False|\bnot equal\b"
        r"|max(?:imum)? (?:abs(?:olute)? )?diff\w*[^.\n]{0,24}\d"
    ),
    # what changes weights of one rank alone, or beside the wrapper
    "cause": (
        r"\bmodel\.module\((?!\))|\.module\.forward\(|\.module\.load_state_dict|\bno_sync\("
        r"|if [^\n]{0,30}rank[^\n]{0,12}==\s*0|only on rank 0|nur auf [Rr]an[gk] 0"
        r"|clip\w*[^.\n]{0,30}rank|\bEMA\b|\bSWA\b|re-?init\w*|after wrapping|nach dem (?:Umh\u00fcllen"
        r"|Einpacken)|broadcast_buffers|requires_grad[^\n]{0,30}after"
    ),
    "replicas": r"DistributedDataParallel|\bDDP\b",
    "parts": r"FSDP|Full(?:y|_)?S(?:hard|HARD)|fully_shard|ZeRO|\bzero_stage|(?:sor|line).parallel|DTensor",
    "own": (
        r"(?i)before (?:the )?(?:wrap|ddp|broadcast|sync|init)|BatchNorm|running_(?:mean|var)|(?:all"
        r"|completely) (?:equal|identical)|bit-?identical|as expected"
    ),
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of ranks whose weights differ; nothing where each holds a part of them."""
    passage = passage.spaced
    if not stall.speaks(passage) or stall.over(passage) or _pattern("own").search(passage.text):
        return
    replicas = passage.first(_pattern("replicas"))
    if replicas is None or _pattern("parts").search(passage.text):
        return
    shown = _by_figures(passage) or _by_words(passage)
    if shown is not None:
        yield shown[0].fact("replica_weights.differ", shown[1])
        yield replicas.fact("replica_weights.replicated", True)


def _by_figures(passage: Passage) -> tuple[Line, str] | None:
    for one in series(passage):
        named = _pattern("weights").search(one.label) and _pattern("sum").search(one.label)
        if one.differ and named and not _pattern("other").search(one.label):
            return one.line, ", ".join(
                f"rank {rank}: {value}" for rank, value in sorted(one.values.items())[:6]
            )
    return None


def _by_words(passage: Passage) -> tuple[Line, str] | None:
    """Somebody compared the weights of ranks: they differ, and how is shown or why."""
    shown = _pattern("equal").search(passage.text) or _pattern("cause").search(passage.text)
    if not shown:
        return None
    for line in passage.sentences:
        text = line.text
        if _pattern("weights").search(text) and _pattern("ranks").search(text):
            if _pattern("apart").search(text) or (
                says("differs").search(text) and _pattern("equal").search(text)
            ):
                return line, text.strip()[:120]
            if "the same" in text and re.search(r"\b(?:they are|they're|are) not\b|\baren't\b", text):
                return line, text.strip()[:120]
    return None
