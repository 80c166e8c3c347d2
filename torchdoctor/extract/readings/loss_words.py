"""A loss that is NaN where its name is not "loss": in other languages, as a norm, in words.

``extract.loss`` knows the lines that programs print. People write their own: ``verlust nan |grad| nan``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.breaking_off import last_finite
from torchdoctor.extract.readings.cured import cured, supposed
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.spoken import says, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "loss_words"

FACTS: dict[str, str] = {
    "loss_words.shown": "bool: a loss, or the gradient's norm at every step to the end, is printed as NaN",
    "loss_words.told": "bool: somebody says that his loss becomes NaN or infinite",
    "loss_words.code": "str: code whose value or gradient is not finite at 0, or at large numbers",
}

_PATTERNS = {
    "others": r"(?i)\bkeras\b|tensorflow|\bjax\b|\bflax\b|mxnet|sklearn|scikit",
    "nan": r"(?i)(?<![\w.])-?nan(?![\w(])",
    "bad": r"(?i)\bnans?\b|(?<![\w.])inf(?:inite|inity)?\b|unendlich|infini\b|infinito",
    "never": (
        r"(?i)\bnans?\b[^.,\n]{0,16}\b(?:never|nie|jamais|nunca|mai|kommt nicht|kam nicht)\b"
        r"|\b(?:no|not|never|without|any|keine?|aucune?|pas de|sans|sin|sem|senza|nessun\w*"
        r"|non)\b[^.\n]{0,16}?\b(?:nans?|infs?)\b"
        r"|\b(?:if|whether|wenn|falls)\b[^.\n]{0,40}\bnans?\b|\b(?:isnan|nan_to_num|isfinite|nanmean"
        r"|nan ?batches)\b"
        r"|\u6ca1\u6709\s?nan|nan\s?(?:\u306f|\u304c)?\u306a|nan(?:\uc740|\uc774)? \uc5c6"
        r"|\u043d\u0435\u0442 nan"
    ),
    "norm": (
        r"(?i)(?:\|\|?\s?(?:grad|g|\u2207\w?)\s?\|\|?|\bg?(?:rad(?:ient)?)?[_ ]?norm"
        r"|\bgrad\w*)['\"]?\s{0,4}[:=|]?\s{0,4}(?P<value>-?nan\b|-?inf\b|\d[\d.e+-]*)"
    ),
    "call": r"\b(?:torch|F)\.(?:log|sqrt|exp|acos|asin|log1p|rsqrt|pow|log2|log10|norm|atan2|cdist)\(",
    "hazard": (
        r"(?:torch|math|np|F)\.(?:log|sqrt|exp|acos|asin|log1p|rsqrt|pow|log_softmax|log2|log10|norm"
        r"|atan2|arccos)\(|\.(?:log|sqrt|exp|rsqrt|acos"
        r"|asin|norm|logsumexp)\(|masked_fill\(|float\(['\"]-?inf|\*\*\s?(?:0?\.5|-)"
        r"|(?<![/*\w])/\s?(?!\d)[\w(]|cdist\("
    ),
}


_pattern = patterns(_PATTERNS)


@cache
def _named() -> re.Pattern[str]:
    return re.compile(
        rf"(?:{source('loss')})['\"\])]*\s{{0,4}}[:=|]?\s{{0,4}}(?:tensor\(\s*)?-?nan(?![\w(])", re.IGNORECASE
    )


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a loss that somebody sees; nothing where it is over, or a tool counts NaN and finds none."""
    if not passage.asked or cured(passage) or _pattern("others").search(passage.text):
        return
    line = _printed(passage) or _norms(passage) or last_finite(passage)
    if line is not None:
        yield line.fact("loss_words.shown", True)
    told = next((one for one in passage.sentences if _tells(one.text)), None)
    if told is None:
        return
    yield told.fact("loss_words.told", True)
    code = next((one for one in snippets(passage) if _pattern("hazard").search(one.text)), None)
    code = code or passage.first(_pattern("call"))
    if code is not None:
        yield code.fact("loss_words.code", code.text.strip()[:120])


def _tells(text: str) -> bool:
    return (
        not supposed(text)
        and says("loss").search(text) is not None
        and _pattern("bad").search(_pattern("never").sub("", text)) is not None
    )


def _printed(passage: Passage) -> Line | None:
    found = passage.first(_named(), Voice.PRINTED)
    if found is not None:
        return found
    for one in shown(passage):
        if says("loss").search(one.expression.replace("_", " ").replace(".", " ")) and _nan(one.value):
            return one.line
    for table in tables(passage):
        for row in table.rows:
            for head, cell in row.cells:
                value = number(cell)
                if value is not None and value != value and says("loss").search(head.replace("_", " ")):
                    return row.line
    return None


def _nan(value: str) -> bool:
    return re.match(r"(?i)\W*(?:tensor\()?\W*nan\b", value) is not None


def _norms(passage: Passage) -> Line | None:
    """The first norm that is NaN where all after it are, and there are two of them at least."""
    first: Line | None = None
    count = 0
    for line in passage.of(Voice.PRINTED):
        found = _pattern("norm").search(line.text)
        if found is None:
            continue
        if _pattern("nan").match(found["value"]):
            first, count = first or line, count + 1
        else:
            first, count = None, 0
    return first if count > 1 else None
