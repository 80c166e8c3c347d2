"""Outputs that are NaN in float16 and sound in another format, as somebody prints and tells them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice
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
    "half": r"float16|\bfp16\b|\bhalf\b|\.half\(\)|\bautocast\b",
    # a value that was printed, or somebody who says that the output is NaN
    "shown": (
        r"\[\s*nan\b|\btensor\(\s*nan|(?<![\w.])nan,\s*nan\b|\b(?:all|only|full of|become|becomes|is|are|were"
        r"|gives?|returns?|outputs?|get|getting|contains?|to) (?:just |only |all |full of )?nans?\b"
    ),
    "output": (
        r"logits?|\bout(?:put)?s?\b|predict\w*|\bimages?\b|hidden|embedding|\bpreds?\b|latents?|features?"
        r"|answer"
        r"|generat\w*|samples?\b|scores?\b|probs?|activation"
    ),
    "training": r"\bloss\b|GradScaler|backward\(|optimi[sz]er|\blr\b|train(?:ing)? step|unscale|grad_norm",
    "otherwise": (
        r"(?:float32|fp32|bfloat16|\bbf16\b|full precision|\bCPU\b)[^\n]{0,80}"
        r"\b(?:fine|works?|ok|okay|sensible|correct|right|sane|good|normal|no nans?"
        r"|finite|as expected|clean)\b"
        r"|\b(?:fine|works?|ok|okay|sensible|correct|right|sane|good|normal|no nans?"
        r"|finite|clean)\b[^\n]{0,60}"
        r"\b(?:float32|fp32|bfloat16|bf16|full precision|CPU)\b"
    ),
    "format": r"float32|fp32|bfloat16|\bbf16\b|\bCPU\b",
    "wrong": r"(?:float32|fp32|full precision)[^.\n]{0,40}\b(?:also|too|as well|same|nan)\b",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of outputs that are NaN; nothing where somebody trains, which has causes of its own."""
    text = passage.text
    if not passage.personal or not _pattern("half").search(text) or _pattern("training").search(text):
        return
    if not _pattern("output").search(text):
        return
    shown = passage.first(_pattern("shown"), Voice.PRINTED) or passage.first(_pattern("shown"), Voice.SAID)
    sound = (
        passage.told(_pattern("otherwise"))
        or passage.first(_pattern("otherwise"), Voice.PRINTED)
        or next((line for line in passage.sentences if _sound(line.text)), None)
    )
    if shown is None or sound is None or passage.first(_pattern("wrong"), Voice.SAID) is not None:
        return
    yield shown.fact("half_nan.output", True)
    yield sound.fact("half_nan.sound_otherwise", True)


def _sound(text: str) -> bool:
    """Does a sentence, or a part of it, say that another format works?"""
    parts = re.split(r"[,;\uff0c\u3001]\s*", text)
    return any(
        _pattern("format").search(part) and says("works").search(part) and not _pattern("nan").search(part)
        for part in parts
    )
