"""Checksums of weights that ranks print: whether replicas that should be equal are.

Known forms are those people write to find out: one line a rank (``rank 0 param sum 1893.22``), or the values
of all ranks in one line (``sum(abs(p)): rank 0 1893.2 rank 1 812.0``). Gradients before they are averaged,
losses and counts differ between sound ranks; so do weights where each rank holds a part of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "checksum.differ": "bool: ranks print other checksums of the same weights; unknown with fewer than 2",
    "checksum.odd_ranks": "str: ranks whose value is not that of most (0, or 1, 3); absent when none is",
    "checksum.replicated": "bool: the text names DDP, and nothing that gives each rank a part of the weights",
}

LINE_CHARS = 2000
LOOK_AHEAD = 64
ABOVE = 24  # lines of other ranks between the words and a line
SHORT = 40
HEAD = 24  # where a line that is one rank's says so by "gpu 3:" or "[3]"

_SOURCES = {
    "one-word": (
        r"\b(?!\w*grad)\w*(?:param|weight|model)\w*_(?:check_?sum|hash|md5|crc|norm|sum)\b[\s:=]{0,3}"
        r"(?:-?\d{1,15}\.\d{1,17}(?:e[+-]?\d{1,3})?|[0-9a-f]{8,64})(?![\w.])"
    ),
    # what is summed up, and how: both must be named
    "weights": (
        r"(?i)param|weight|gewicht|\bpoids\b|\bpesos\b|\u53c2\u6570|\u6743\u91cd|\u91cd\u307f"
        r"|\u043f\u0430\u0440\u0430\u043c\u0435\u0442\u0440|\u0432\u0435\u0441\u043e\u0432|\bmodel\b|state_dict|\|(?:w|p|theta)\||\b(?:w|theta)_?sum"
        r"|(?:sum|norm|mean|abs)\(?(?:w|theta)\)|\bsum\((?:abs\(|\|)?p\b"
    ),
    "sum": r"(?i)check_?sum|hash|\bmd5|\bsha\d|\bcrc|\bsum\b|_sum\b|\bnorm\b|_norm\b|\bmean\b|\bfingerprint",
    # the norm itself: |w| = 1843.2, ||theta||
    "norm": r"(?<![|\w])\|{1,2} ?(?:w|p|W|theta|\u03b8|params?|weights?) ?\|{1,2}(?![|\w])",
    "summed": (
        r"(?i)check_?sum|hash|\bmd5|\bsha\d|\bcrc|\bsum(?:s|med)?\b|_sum\b|\bnorms?\b|_norm\b|\bmeans?\b|fingerprint"
        r"|summe|somm[ea]|suma\b|\u6c42\u548c|\u4e4b\u548c|\u6821\u9a8c\u548c|\u5408\u8a08|\u0441\u0443\u043c\u043c"
    ),
    # without a broadcast ranks may begin with other weights
    "before": r"(?i)\b(?:before|vor|avant) (?:the )?(?:wrap|ddp|broadcast|sync|init)",
    "data": r"(?i)\binputs?\b|\bbatch(?:es)?\b|\bimages?\b|activation|\boutputs?\b|\blogits\b|\bdataset\b",
    "other": r"(?i)grad|\bloss|count|numel|number of|shard|optim|\bacc",
    "rank": (
        r"(?i)\brank[\s_:=#]{0,4}(?P<rank>\d{1,5})\b\]?[\s:=>-]{0,8}"
        r"(?P<between>[^\d\n]{0,60}?)(?P<value>-?\d{1,15}\.\d{1,17}(?:e[+-]?\d{1,3})?|[0-9a-f]{8,64})\b"
    ),
    "value": r"(?<![\w.])(?P<value>-?\d{1,15}\.\d{1,17}(?:e[+-]?\d{1,3})?|[0-9a-f]{8,64})\s*$",
    "replicas": r"DistributedDataParallel|\bDDP\b",
    "parts": r"FSDP|Full(?:y|_)?S(?:hard|HARD)|fully_shard|ZeRO|\bzero_stage|(?:sor|line).parallel|DTensor",
}
_PATTERNS = Patterns(_SOURCES)


# in the pattern "sum"; the pattern "norm" begins with a bar
_SUMS = ("sum", "hash", "md5", "sha", "crc", "norm", "mean", "fingerprint", "|")


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of a line with a checksum of weights, compared with what other ranks print beside or below it."""
    text = event.text[:LINE_CHARS]
    if not _worth_a_look(event, text):
        return
    if not _of_weights(_first_figure(_alone(text))) and not _announced(event, transcript):
        return
    values = _in_one_line(text) or _line_by_line(event, transcript)
    if len(values) < 2:
        return
    differ = len(set(values.values())) > 1
    yield "differ", differ
    if differ:
        yield "odd_ranks", ", ".join(map(str, _odd(values))) or None
    whole = "\n".join(item.text for item in transcript.events)
    if _PATTERNS["parts"].search(whole):
        yield "replicated", False
    elif _PATTERNS["replicas"].search(whole):
        yield "replicated", True


def _worth_a_look(event: Event, text: str) -> bool:
    """False for most lines of a log, without any pattern: no sum and no rank is named."""
    low = text.lower()
    return (
        event.rank is not None
        or "rank" in low
        or any(mark in low[:HEAD] for mark in "]:)")
        or any(word in low for word in _SUMS)
    )


def _alone(text: str) -> str:
    """Rank and figure of a line that names it in one word behind others: ``loss 2.1 param_sum 8.5``."""
    found = _PATTERNS["one-word"].search(text)
    if found is None or len(_PATTERNS["one-word"].findall(text)) > 1:
        return text
    if re.search(r"\d\.\d", text[: found.start()]) is None:
        return text
    rank = re.search(r"\brank[\s_:=#]{0,4}\d{1,5}\b\]?", text[: found.start()], re.IGNORECASE)
    return f"{rank.group() if rank else ''} {found.group()}"


def _first_figure(text: str) -> str:
    """A line up to its first figure, where others stand apart from it: ``sum = 38211.40   val acc 71.2``."""
    return re.sub(r"(\d\.\d{1,17})(?:\s{2,}|\t|[,;|]\s).*$", r"\1", text[:LINE_CHARS])


def _of_weights(text: str) -> bool:
    named = _PATTERNS["norm"].search(text) or (
        _PATTERNS["sum"].search(text) and _PATTERNS["weights"].search(text)
    )
    return bool(named and not _PATTERNS["other"].search(text))


def _announced(event: Event, transcript: Transcript) -> bool:
    """Do words right above a series of values, a line a rank, say that they are sums of the weights?

    The line itself may name the sum or the weights, one of both, or nothing but the rank and the value.
    """
    own = _single(event)
    if own is None or (own[2] not in ("", ":", "=") and not (_names(own[2]) and len(own[2]) <= SHORT)):
        return False
    for other in reversed(transcript.events[max(0, event.id - ABOVE) : event.id]):
        one = _single(other)
        if one is not None and one[2] == own[2]:
            continue
        text = f"{other.text[-LINE_CHARS:]} {own[2]}"
        return bool(
            _PATTERNS["summed"].search(text)
            and _PATTERNS["weights"].search(text)
            and not _PATTERNS["other"].search(text)
            and not _PATTERNS["before"].search(text)
            and not _PATTERNS["data"].search(text)
        )
    return False


def _names(text: str) -> bool:
    return bool(
        (_PATTERNS["sum"].search(text) or _PATTERNS["weights"].search(text))
        and not _PATTERNS["other"].search(text)
    )


def _in_one_line(text: str) -> dict[int, str]:
    """rank -> value, where one line names several ranks, each followed by its value alone."""
    found = list(_PATTERNS["rank"].finditer(text))
    if len({item.group("between").strip() for item in found}) > 1:
        return {}
    values = {int(item.group("rank")): item.group("value") for item in found}
    return values if len(values) > 1 and len(values) == len(found) else {}


def _line_by_line(event: Event, transcript: Transcript) -> dict[int, str]:
    """rank -> value, from this line and the next ones that differ from it in rank and value only."""
    own = _single(event)
    if own is None:
        return {}
    values = {own[0]: own[1]}
    for other in transcript.events[event.id + 1 : event.id + 1 + LOOK_AHEAD]:
        one = _single(other)
        if one is None or one[2] != own[2]:
            continue
        if one[0] in values:  # the next step
            break
        values[one[0]] = one[1]
    return values


def _single(event: Event) -> tuple[int, str, str] | None:
    """Rank, value, and what else the line says; None for a line that tells no value of one rank."""
    text = _first_figure(_alone(event.text[:LINE_CHARS])).strip()
    value = _PATTERNS["value"].search(text)
    if value is None:
        return None
    before = text[: value.start()]
    named = re.search(r"\brank[\s_:=#]{0,4}(\d{1,5})\b", before, re.IGNORECASE) or re.match(
        r"\W{0,2}(?:(?:gpu|proc(?:ess)?|worker|cuda:|device|r) ?)?\[?(\d{1,4})[\]:)]", before, re.IGNORECASE
    )
    rank = int(named.group(1)) if named else event.rank
    if rank is None:
        return None
    rest = before[: named.start()] + before[named.end() :] if named else before
    rest = re.sub(r"\b(?:node|host|worker|pid|gpu|cuda|device)[\w.:=-]{0,20}?\d+\b", " ", rest)
    return rank, value.group("value"), " ".join(rest.split())


def _odd(values: dict[int, str]) -> list[int]:
    """The ranks that do not agree with more than half of all."""
    kinds = list(values.values())
    most = max(kinds, key=kinds.count)
    if 2 * kinds.count(most) <= len(kinds):
        return []
    return sorted(rank for rank, value in values.items() if value != most)
