"""A standard deviation or variance that is NaN because it was taken over one value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import Shown, shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "spread"

FACTS: dict[str, str] = {
    "spread.code": "str: code that takes a standard deviation or a variance",
    "spread.nan": "bool: its value is shown or told to be NaN",
    "spread.single": "bool: figures, a setting or words show that it is taken over one value",
}

_PATTERNS = {
    "code": r"\.(?:std|var|std_mean|var_mean)\(",
    "by-n": r"unbiased\s*=\s*False|correction\s*=\s*0\b|\bnp\.|numpy",
    "name": r"\b(?:\w*_)?(?:std|stdev|var|variance|sigma)\b",
    "row": (
        r"(?<![A-Za-z])(?:\w{0,16}[_./])?(?:std|stdev|var|variance"
        r"|sigma)(?:[_./]\w{1,16})?['\"]?\s*(?:\(\))?\s{0,4}[:=|]?\s{0,4}"
        r"(?:tensor\(\s*\[*)?\s*-?nan\b"
    ),
    "mean": (
        r"(?i)(?<![A-Za-z])(?:\w{0,16}[_./])?(?:mean|avg|reward|mittel|moyenne)\s*(?:\(\))?\s{0,4}[:="
        r"|]?\s{0,4}(?:tensor\()?-?\d"
    ),
    "not-nan": (
        r"(?i)\b(?:no|not|never|without|contains? no|keine?|aucun|sans|sin|sem"
        r"|senza)\b[^.\n]{0,20}\bnans?\b"
    ),
    "spread": (
        r"(?i)\bstd\b|\bvar\b|\bvariances?\b|standard deviation|\bstdev\b|Standardabweichung|Varianz"
        r"|\u00e9cart[- ]type|desviaci\u00f3n"
        r"|varianza|desvio|deviazione|\u6807\u51c6\u5dee|\u65b9\u5dee|\u6a19\u6e96\u504f\u5dee"
        r"|\u5206\u6563|\ud45c\uc900\ud3b8\ucc28|\ubd84\uc0b0"
        r"|\u0434\u0438\u0441\u043f\u0435\u0440\u0441"
        r"|\u0441\u0442\u0430\u043d\u0434\u0430\u0440\u0442\u043d"
    ),
    # sizes: "size 1", "n=1", "num_generations = 1", "torch.Size([1, 7])", "{1}" of shape[0]
    "one": (
        r"(?i)(?<![\w.])(?:size|n|num|count|len|length|batch|batch[_ ]size|bs|group[_ ]size"
        r"|num_generations|num_samples|samples"
        r"|n_samples|n_utt|rows|numel|k|G|steps|num_envs|n_steps)\s{0,3}[=:]?\s{0,3}1(?![\d.])"
        r"|torch\.Size\(\[1(?:, \d+)*\]\)|\bshape\s*[=:]?\s*\(1,|\.numel\(\)\D{1,6}1(?!\d)"
        r"|\(\d+, 1(?:, \d+)*\)|\[\d+, 1(?:, \d+)*\]|\[1,|\(1,\s?\d*\)"
    ),
    "figure": r"(?P<name>[^\W\d]\w{0,20})\s{0,3}[:=]?\s{0,3}(?P<value>\d{1,6})(?![\w.])",
    "nans": r"(?i)tensor\(\[*\s*nan\b|\[\s*nan\b|(?<![\w.])nan,\s*nan\b",
    "size-of": r"shape\[|\.size\(|len\(|numel\(|\.shape\b|Counter|unique",
    "one-value": r"^[\[({]*\s*(?:torch\.Size\(\[)?1\s*[,\])}]*(?:\s*\d+\s*[\])]*)?$",
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a spread that is NaN; nothing where the values themselves are told to be NaN."""
    if not passage.asked or cured(passage):
        return
    taken = (line for line in snippets(passage) if _pattern("code").search(line.text))
    code = next((line for line in taken if not _pattern("by-n").search(line.text)), None)
    # set into words: "per class: f = (f - f.mean(0)) / f.std(0)"
    if code is None:
        told = (line for line in passage.of(Voice.PRINTED, Voice.SAID) if _pattern("code").search(line.text))
        code = next((line for line in told if not _pattern("by-n").search(line.text)), None)
    values = list(shown(passage))
    nan = _row(passage) or _named(passage, code, values) or _value(values)
    derived = _derived(passage) if code is not None and nan is None else None
    nan = nan or derived or _told(passage, code is not None)
    if nan is None:
        return
    if code is not None:
        yield code.fact("spread.code", code.text.strip()[:120])
    yield nan.fact("spread.nan", True)
    single = _beside_a_mean(passage) or _shrinks(passage, nan) or _single(passage, values)
    if single is not None:
        yield single.fact("spread.single", True)


def _row(passage: Passage) -> Line | None:
    return passage.first(_pattern("row"), Voice.PRINTED) or next(
        (
            row.line
            for table in tables(passage)
            for row in table.rows
            for head, cell in row.cells
            if _spread(head) and _is_nan(cell)
        ),
        None,
    )


def _named(passage: Passage, code: Line | None, values: list[Shown]) -> Line | None:
    """NaN behind the name that the code gives to the spread."""
    made = (
        re.match(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*[\w.\[\]]{1,40}\.(?:std|var)\(", code.text) if code else None
    )
    if made is None:
        return None
    for one in values:
        if re.match(rf"{made['name']}\b", one.expression) and re.match(
            r"\W*(?:tensor\()?\W*nan\b", one.value
        ):
            return one.line
    return passage.first(
        re.compile(rf"\b{made['name']}\b\s{{0,4}}[:=|]?\s{{0,4}}(?:tensor\()?\[*-?nan\b"), Voice.PRINTED
    )


def _derived(passage: Passage) -> Line | None:
    """A line with NaN and a figure that is 1 there, and greater in one without: it was made of the spread."""
    for line in passage.of(Voice.PRINTED):
        if _pattern("nans").search(line.text) and _shrinks(passage, line) is not None:
            return line
    return None


def _spread(head: str) -> bool:
    return _pattern("name").search(head) is not None or _pattern("spread").search(head) is not None


def _is_nan(cell: str) -> bool:
    value = number(cell)
    return value is not None and value != value


def _value(values: list[Shown]) -> Line | None:
    for one in values:
        if not _pattern("code").search(one.expression):
            continue
        if "isnan" in one.expression:
            if re.match(r"\s*(?:tensor\()?\s*(?:True|[1-9])", one.value):
                return one.line
        elif not _pattern("by-n").search(one.expression) and re.match(r"\W*(?:tensor\()?\W*nan\b", one.value):
            return one.line
    return None


def _told(passage: Passage, taken: bool) -> Line | None:
    """Words for it; beside the code, those that tell of NaN at a size of one are enough."""
    return next(
        (
            line
            for line in passage.sentences
            if (_pattern("spread").search(line.text) or (taken and _one(line.text)))
            and re.search(r"(?i)\bnans?\b", _pattern("not-nan").sub("", line.text))
        ),
        None,
    )


def _one(text: str) -> bool:
    return _pattern("one").search(text) is not None or says("one value").search(text) is not None


def _beside_a_mean(passage: Passage) -> Line | None:
    """NaN beside a mean that is a number: then the values are numbers, and there is one of them."""
    for line in passage.of(Voice.PRINTED):
        if _pattern("row").search(line.text) and _pattern("mean").search(line.text):
            return line
    for table in tables(passage):
        for row in table.rows:
            spread = [cell for head, cell in row.cells if _spread(head)]
            mean = [cell for head, cell in row.cells if re.search(r"(?i)mean|avg|mittel|moyenne|media", head)]
            if any(map(_is_nan, spread)) and any(
                number(cell) is not None and not _is_nan(cell) for cell in mean
            ):
                return row.line
    return None


def _shrinks(passage: Passage, nan: Line) -> Line | None:
    """A figure of the line with NaN is 1, and greater under the same name in a line with a spread."""
    ones = {found["name"] for found in _pattern("figure").finditer(nan.text) if found["value"] == "1"}
    for line in passage.of(Voice.PRINTED):
        if line.at >= nan.at or re.search(r"(?i)\bnan\b", line.text):
            continue
        for found in _pattern("figure").finditer(line.text):
            if found["name"] in ones and int(found["value"]) > 1:
                return nan
    return None


def _single(passage: Passage, values: list[Shown]) -> Line | None:
    for one in values:
        if _pattern("size-of").search(one.expression) and _pattern("one-value").match(one.value.strip()):
            return one.line
    for line in passage.lines:
        if _pattern("one").search(line.text) and line.voice is not Voice.CODE:
            return line
    for line in passage.of(Voice.CODE):
        if re.search(r"(?:batch_size|num_generations|group_size|num_samples|n_samples)\s*=\s*1\b", line.text):
            return line
    return next((line for line in passage.sentences if says("one value").search(line.text)), None)
