"""Outputs that are NaN in float16 and sound in another format, as somebody prints and tells them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured, supposed
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import shown as shown_values
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "half_nan"

FACTS: dict[str, str] = {
    "half_nan.output": "bool: the output of a model is NaN, and float16 is what it computes in",
    "half_nan.sound_otherwise": "bool: in float32 or bfloat16 the same model gives no NaN",
}

_PATTERNS = {
    "nan": r"\bnans?\b|isnan\(",
    "half": r"(?<!b)float16|\bfp16\b|\bhalf\b|\.half\(\)|\bautocast\b",
    # a value that was printed, or somebody who says that the output is NaN
    "shown": (
        r"\[\s*nan\b|\btensor\(\s*nan|(?<![\w.])nan,\s*nan\b|\b(?:all|only|full of|become|becomes|is|are|were"
        r"|gives?|returns?|outputs?|get|getting|contains?|to) (?:just |only |all |full of )?nans?\b"
    ),
    "output": (
        r"logits?|\bout(?:put)?s?\b|predict\w*|\bimages?\b|hidden|embedding|\bpreds?\b|latents?"
        r"|features?|answer"
        r"|generat\w*|samples?\b|scores?\b|probs?|activation"
    ),
    "training": r"\bloss\b|GradScaler|backward\(|optimi[sz]er|\blr\b|train(?:ing)? step|unscale|grad_norm",
    "otherwise": (
        r"(?:float32|fp32|bfloat16|\bbf16\b|full precision|\bCPU\b)[^\n]{0,80}"
        r"\b(?:fine|works?|ok|okay|sensible|correct|right|sane|good|normal|no nans?"
        r"|finite|as expected|clean|nicely|as (?:it|they) should|perfect(?:ly)?)\b"
        r"|\b(?:fine|works?|ok|okay|sensible|correct|right|sane|good|normal|no nans?"
        r"|finite|clean)\b[^\n]{0,60}"
        r"\b(?:float32|fp32|bfloat16|bf16|full precision|CPU)\b"
    ),
    # of pictures
    "nice": (
        r"\bsch\u00f6n(?:e[srn]?)?\b|\bsauber\w*|\bjolie?s?\b|\bbelles?\b|\bbonit[ao]s?\b|\bbell[aeio]\b|\bmooie?\b"
        r"|\u0142adn\w+|\u043a\u0440\u0430\u0441\u0438\u0432\w+|g\u00fczel|\u6f02\u4eae|\u6e05\u6670"
        r"|\u304d\u308c\u3044|\u7dba\u9e97|\uc608\uc058|\uae68\ub057"
    ),
    "format": r"float32|fp32|bfloat16|\bbf16\b|\bCPU\b",
    # a cast of NaN to bytes; the share or the number of NaN in an output
    "cast": r"RuntimeWarning: invalid value encountered in (?:cast|divide|true_divide|multiply)",
    "counted": r"isnan\(|isfinite\(|\.isnan\b",
    "none-of": r"\s*(?:tensor\()?\s*(?:0(?:\.0*)?|False)\b",
    "some-of": r"\s*(?:tensor\()?\s*(?:[1-9]\d*\b|0?\.\d*[1-9]|1\.|True\b)",
    "not-nan": (
        r"\b(?:no|not|never|without|any|keine?|aucun|sans|sin|sem|senza"
        r"|nessun\w*)\b[^.\n]{0,20}\bnans?\b|nan\("
    ),
    "value": r"(?<![\w.])-?\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?(?![\w.])",
    "bad-value": r"(?<![\w.])-?(?:nan|inf)(?![\w(])",
    "wrong": r"(?:float32|fp32|full precision)[^.\n]{0,40}\b(?:also|too|as well|same|nan)\b",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of outputs that are NaN; nothing where somebody trains, which has causes of its own."""
    text = passage.text
    if not passage.asked or cured(passage) or not _pattern("half").search(text) or _trains(passage):
        return
    if (pair := _by_format(passage) or _counts(passage)) is not None:
        yield pair[0].fact("half_nan.output", True)
        yield pair[1].fact("half_nan.sound_otherwise", True)
        return
    shown = _shown(passage)
    if not any(
        (_pattern("output").search(text), says("blank").search(text), _pattern("counted").search(text))
    ):
        return
    sound = (
        passage.told(_pattern("otherwise"))
        or passage.first(_pattern("otherwise"), Voice.PRINTED)
        or next((line for line in passage.sentences if _sound(line.text)), None)
    )
    if shown is None or sound is None or passage.first(_pattern("wrong"), Voice.SAID) is not None:
        return
    yield shown.fact("half_nan.output", True)
    yield sound.fact("half_nan.sound_otherwise", True)


def _trains(passage: Passage) -> bool:
    """Is a loss or an optimizer in play? A model that was trained elsewhere is none of it."""
    for line in passage.of(Voice.CODE, Voice.TYPED, Voice.PRINTED):
        if _pattern("training").search(line.text):
            return True
    return any(
        _pattern("training").search(line.text) and _pattern("nan").search(line.text)
        for line in passage.sentences
    )


def _shown(passage: Passage) -> Line | None:
    """The first line that shows, or the first words that say, that the output is NaN or blank."""
    found = passage.first(_pattern("shown"), Voice.PRINTED) or next(
        (one for one in passage.sentences if _pattern("shown").search(one.text) and not supposed(one.text)),
        None,
    )
    if found is not None:
        return found
    for one in shown_values(passage):
        if _pattern("counted").search(one.expression) and _pattern("some-of").match(one.value):
            return one.line
    cast = passage.first(_pattern("cast"))
    for line in passage.sentences:
        half = _pattern("half").search(line.text)
        if half and says("blank").search(line.text):
            return cast or line
        if supposed(line.text):
            continue
        if _pattern("bad-value").search(line.text) and not _pattern("not-nan").search(line.text):
            return line
    return cast if cast is not None and _pattern("nan").search(passage.text) else None


def _by_format(passage: Passage) -> tuple[Line, Line] | None:
    """A column or a row of float16 that holds NaN, and one of another format that holds numbers."""
    for table in tables(passage):
        for row in table.rows:
            bad = [head for head, cell in row.cells if _half(head) and _bad(cell)]
            good = [
                head
                for head, cell in row.cells
                if _other(head) and number(cell) is not None and not _bad(cell)
            ]
            if bad and good:
                return row.line, row.line
    bad_line: Line | None = None
    good_line: Line | None = None
    for line in passage.of(Voice.PRINTED):
        if _half(line.text) and not _other(line.text) and _pattern("bad-value").search(line.text):
            bad_line = bad_line or line
        elif _other(line.text) and not _half(line.text) and not _pattern("nan").search(line.text):
            value = _pattern("value").search(
                re.sub(r"(?i)\\w*(?:float|fp|bf)\\d+|torch\\.\\S+", "", line.text)
            )
            good_line = good_line or (line if value else None)
    return (bad_line, good_line) if bad_line is not None and good_line is not None else None


def _counts(passage: Passage) -> tuple[Line, Line] | None:
    """NaN that was counted: some in a line of float16, none in a line of another format."""
    bad: Line | None = None
    good: Line | None = None
    for one in shown_values(passage):
        if not _pattern("counted").search(one.expression):
            continue
        if _half(one.line.text) and _pattern("some-of").match(one.value):
            bad = bad or one.line
        elif _other(one.line.text) and _pattern("none-of").match(one.value):
            good = good or one.line
    return (bad, good) if bad is not None and good is not None else None


def _half(text: str) -> bool:
    return _pattern("half").search(text) is not None


def _other(text: str) -> bool:
    return _pattern("format").search(text) is not None


def _bad(cell: str) -> bool:
    value = number(cell)
    return value is not None and value != value


def _sound(text: str) -> bool:
    """Does a sentence, or a part of it, say that another format works?"""
    parts = re.split(r"[,;\uff0c\u3001]\s*", text)
    return any(
        (_pattern("format").search(part) or (_half(part) and says("off").search(part)))
        and (says("works").search(part) or _pattern("nice").search(part))
        and not _pattern("nan").search(part)
        for part in parts
    )
