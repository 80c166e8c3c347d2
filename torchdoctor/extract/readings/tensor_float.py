"""Differences of float32 results that TF32 explains: about 1e-3 on Ampere and later, gone without TF32.

A float32 product with TF32 keeps 10 bits of mantissa; without it results of a GPU and of a CPU differ by
1e-6 to 1e-5. Half precision differs as much, so that it must not be in play.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.figures import small_numbers
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import Shown
from torchdoctor.extract.readings.shown import shown as shown_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "tensor_float"

FACTS: dict[str, str] = {
    "tensor_float.difference": "float: difference between float32 results, of a size that TF32 brings about",
    "tensor_float.on": "bool: a setting of TF32 is shown to be on where results differ",
    "tensor_float.card": "str: GPU of the text that has TF32 (Ampere or later)",
    "tensor_float.older_sound": "bool: an older card or a CPU shows a far smaller difference",
    "tensor_float.on_gpu": "bool: the lines of code that a traceback shows name cuda",
    "tensor_float.gone_without": "bool: the difference went away when TF32 was switched off",
}

Measured = tuple[float, Line, int]  # a difference, its line and its column

LARGE = (5e-5, 6e-2)
SMALL = 2e-5
CONTRAST = 30.0
ROUNDING = 2e-6  # of the size of a result
SHORT = 60  # characters of a head

_PATTERNS = {
    "card": (
        r"\b(?:A(?:100|10G?|16|2|30|40|800|[2456]000)|RTX[ -]?(?:A\d{4}|[345]0[5-9]0(?: ?Ti| ?Super)?"
        r"|\d000 Ada)|30[5-9]0(?:Ti)?|40[5-9]0"
        r"|50[5-9]0|H(?:100|200|20|800)|L(?:4|40S?)|GH200|B(?:100|200)|Ampere|Hopper|Ada Lovelace"
        r"|Blackwell)\b"
    ),
    "older": (
        r"\b(?:V100|P100|T4|Quadro RTX [4568]000"
        r"|K80|P40|M40|(?:GTX|RTX)? ?(?:10[5-8]0|16[5-6]0|20[6-8]0)(?: ?Ti| ?Super)?"
        r"|TITAN|Turing|Volta|Pascal)\b"
    ),
    "compared": (
        r"diff|\berr(?:or)?s?\b|mismatch|delta|deviat|discrepan|\babs\(|max_abs|\batol\b|allclose|max abs"
        r"|rel\. ?err|off by|residual|\bécart|abweichung|fehler|erreur|diferencia|desviación|diferença"
        r"|differenza|errore"
        r"|verschil|różnic|błąd|fark\b|hata|погрешн|разниц|расхожд|отклонен|ошибк"
        r"|误差|誤差|差异|差异|相差|差が|差は|ずれ|오차|차이|sai số|selisih"
    ),
    "other": (
        r"\bloss|\blr\b|converge|learning.rate|accuracy|\bacc\b|epoch|weight_decay|\beps\b|error.?rate"
        r"|\bWER\b"
        r"|\bmAP\b|grad_norm"
    ),
    "half": (
        r"\.half\(|float16|bfloat16|(?<!no )(?<!without )(?<!not )autocast|\bbf16\b|\bfp16\b|half precision"
        r"|\bint8\b|GradScaler"
    ),
    "no-half": (
        r"\b(?:no|not|without|kein\w*|ohne|sans|pas d\w|sin|sem|senza|geen|bez|\u0431\u0435\u0437)"
        r"\s?['\u2019]?"
        r"(?:using )?(?:AMP|autocast|half precision|fp16|bf16)\b"
        r"|is_autocast_enabled\(\)[`'\")]*\s*(?:[=:]+|->|is|returns|gives|liefert|ist|gibt|est|renvoie"
        r"|es|da|\u00e8)?\s*"
        r"[`'\"]*False\b"
    ),
    "on": (
        r"allow_tf32['\")\]]*\s*(?:[=:]|is|->|\u2192)?\s*(?:\(?True\b|1\b|on\b)|tf32 (?:is )?(?:on|enabled"
        r"|True)\b"
        r"|float32_matmul_precision\(?\W{0,8}(?:(?:prints|is|returns|says|gives)\W{1,3})?(?:high|medium)\b"
        r"|(?:NVIDIA_TF32_OVERRIDE"
        r"|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)\W{0,3}1\b"
        r"|fp32_precision\W{0,6}tf32"
    ),
    "off": (
        r"allow_tf32['\")\]]*\s*(?:[=:]|is|->|to)?\s*\(?(?:False|0\b)|tf32\b[^.\n]{0,24}\b(?:off|disabled?"
        r"|False)\b"
        r"|(?:without|disabl\w+|no|turn\w* off|switch\w* off) tf32|float32_matmul_precision\(?\W{0,8}highest"
        r"|NVIDIA_TF32_OVERRIDE\W{0,3}0\b"
        r"|fp32_precision\W{0,6}ieee"
    ),
    # convolutions then come from another library, which has no TF32
    "no-cudnn": (
        r"cudnn\.enabled['\")\]]*\s*[=:,]\s*\(?False|cudnn\.flags\(enabled=False"
        r"|(?:without|disabl\w+|turn\w* off|switch\w* off) cudnn\b|cudnn (?:is )?(?:off|disabled)\b"
    ),
    "heads": r"\S\s{2,}\S",
    "row": r"\S\s{2,}-?\d[\d.]*(?:e-?\d{1,2})?\s*$|\S\s{2,}-?\d[\d.]*(?:e-?\d{1,2})?\s{2,}\S",
    # torch.testing and NumPy
    "asserted": (
        r"(?m)^(?:E +)?(?:AssertionError: )?(?:Tensor-likes|Scalars) are not close!|Not equal to tolerance"
    ),
    "passes": (
        r"\b(?:pass(?:es|ed)?|match(?:es|ed)?|agrees?|works?|fine|ok|gone|disappears?|identical|equal)\b"
    ),
    "fails": r"\b(?:not|no|n't|still|also|fails?|failed|never|neither)\b",
    "told-about": r"release notes|changelog|what's new|migration guide|breaking changes",
    "size": r"(?:torch\.)?\(?\w+(?:\.double\(\)|\.float\(\))?\)?\.(?:abs\(\)\.max|norm)\(\)(?:\.item\(\))?$",
    "number": r"\d{1,9}\.\d{0,12}(?:e[+-]?\d{1,3})?",
    "query": r"allow_tf32|float32_matmul_precision|fp32_precision",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("card", "older"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a comparison that somebody made; nothing where a text only tells about TF32."""
    shown = passage.asked or passage.session or _pattern("asserted").search(passage.text)
    if not shown or cured(passage) or _pattern("told-about").search(passage.text):
        return
    values = list(shown_values(passage))
    figures = [one for one in _figures(passage) if not _rounding(one, values)]
    older = _older(passage, figures)
    most = LARGE[1] if older is None else 10.0
    found = [(value, line) for value, line, _ in figures if LARGE[0] <= value <= most]
    # results that are large in themselves differ by more, on the older card as well
    apart = [] if older is None else [one for one in found if one[0] >= CONTRAST * older[0]]
    large = next(iter(apart or found), None)
    if large is None:
        return
    value, where = large
    yield where.fact("tensor_float.difference", value)
    if "cuda" in passage.called:
        yield where.fact("tensor_float.on_gpu", True)
    card = card_of(passage)
    if card is not None:
        yield card[0].fact("tensor_float.card", card[1])
    gone = _gone(passage, figures, value, "off", older)
    if gone is None and card is not None:
        gone = _gone(passage, figures, value, "no-cudnn", older)
    if gone is not None:
        yield gone.fact("tensor_float.gone_without", True)
    if older is not None and older[0] * CONTRAST <= value:
        yield older[1].fact("tensor_float.older_sound", True)
    if not _half(passage, values):
        on = _on(passage, values)
        if on is not None:
            yield on.fact("tensor_float.on", True)


def _rounding(measured: Measured, values: list[Shown]) -> bool:
    """Is the size of the results printed beside a difference, which is no more of it than float32 rounds?"""
    value, line, _ = measured
    sizes = (
        _pattern("number").search(one.value)
        for one in values
        if one.line.at == line.at and _pattern("size").match(one.expression)
    )
    return any(size is not None and value <= ROUNDING * float(size.group()) for size in sizes)


def card_of(passage: Passage) -> tuple[Line, str] | None:
    """The first GPU of the text that has TF32, and where it is named."""
    line = passage.first(_pattern("card"))
    found = _pattern("card").search(line.text) if line is not None else None
    return (line, found.group()) if line is not None and found is not None else None


def _switched(text: str) -> bool:
    return bool(_pattern("off").search(text) or _pattern("no-cudnn").search(text))


def _figures(passage: Passage) -> Iterator[Measured]:
    """Differences that were printed or told: of a line that names them, or the answer to a comparison."""
    comparing = False
    table = False  # below heads that name a difference
    for line in passage.lines:
        # a tolerance is no difference
        text = re.sub(r"\(up to \S+ allowed\)", lambda found: " " * len(found.group()), line.text)
        if text.lstrip()[:1] == "|" and line.voice is not Voice.CODE:
            heads = not re.search(r"\d", re.sub(r"(?i)\b(?:tf|fp|float|f)(?:32|64)\b", "", text))
            if heads and text.strip("|-: "):
                table = bool(_pattern("compared").search(text)) and not _pattern("other").search(text)
            for figure in small_numbers(text.replace("|", " ")) if table else ():
                yield figure.value, line, figure.start
            continue
        if table and not text.strip(" -=+\u2500"):
            continue
        if table and line.voice is Voice.PRINTED and _pattern("row").search(text):
            for figure in small_numbers(text):
                yield figure.value, line, figure.start
            continue
        named = bool(_pattern("compared").search(text))
        if line.voice in (Voice.TYPED, Voice.CODE):
            comparing = named
            continue
        if _pattern("other").search(text):
            table = False
            continue
        # "GPU            max rel err": heads over columns that blanks keep apart
        table = named and bool(_pattern("heads").search(text)) and not any(small_numbers(text))
        headed = (
            line.voice is Voice.PRINTED and not any(char.isdigit() for char in text[:1]) and len(text) < SHORT
        )
        if named and (text.rstrip()[-1:] == ":" or (headed and not any(small_numbers(text)))):
            comparing = True
        said = line.voice is Voice.SAID
        told = said and _pattern("older").search(text)
        if named or comparing or told or _switched(text) or "now" in text:
            for figure in small_numbers(text):
                yield figure.value, line, figure.start
        if line.voice is Voice.SAID and text.rstrip()[-1:] != ":":
            comparing = False


def _older(passage: Passage, figures: list[Measured]) -> Measured | None:
    """The smallest difference that stands on the line of an older card, or right below it."""
    found = [
        item
        for item in figures
        if _pattern("older").search(item[1].text)
        or (item[1].at and _pattern("older").search(passage.lines[item[1].at - 1].text))
    ]
    return min(found, key=lambda item: item[0], default=None)


def _gone(
    passage: Passage, figures: list[Measured], large: float, off: str, older: Measured | None
) -> Line | None:
    """A line with a far smaller difference, once TF32 was switched off, or beside the word for it."""
    least = SMALL if older is None else max(SMALL, 3 * older[0])
    places = ((line.at, _pattern(off).search(line.text)) for line in passage.lines)
    switched = next(((at, found.start()) for at, found in places if found), None)
    if switched is None:
        return None
    for value, line, column in figures:
        if value <= least and value * 20 <= large and (line.at, column) >= switched:
            return line
    # "with NVIDIA_TF32_OVERRIDE=0 it passes"
    for line in passage.of(Voice.SAID):
        for sentence in re.split(r"[.!?;](?=\s|$)", line.text):
            off_here = _pattern(off).search(sentence)
            if (
                off_here
                and _pattern("passes").search(sentence)
                and not _pattern("fails").search(sentence[: off_here.start()] + sentence[off_here.end() :])
            ):
                return line
    return None


def _half(passage: Passage, values: list[Shown]) -> bool:
    """Is half precision in play? Not where autocast is shown, or said, to be off."""
    text = passage.text
    if any("autocast" in one.expression and one.value.strip("`().,") == "False" for one in values):
        text = text.replace("is_autocast_enabled", "")
    return _pattern("half").search(_pattern("no-half").sub("", text)) is not None


def _on(passage: Passage, values: list[Shown]) -> Line | None:
    for one in values:
        if _pattern("query").search(one.expression) and re.match(
            r"\W*(?:True|high|medium|tf32)\b", one.value
        ):
            return one.line
    for line in passage.lines:
        if line.text.lstrip()[:1] in "|#":
            continue
        if _pattern("on").search(line.text):
            return line
        if line.voice is Voice.TYPED and _pattern("query").search(line.text):
            for answer in passage.answers(line, 2):
                if re.search(r"\bTrue\b|['\"](?:high|medium|tf32)['\"]", answer.text):
                    return answer
    return None
