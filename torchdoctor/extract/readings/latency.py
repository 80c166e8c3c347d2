"""Times of single calls: percentiles that somebody prints, or a call a line, the first ones left out."""

from __future__ import annotations

import re
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import amounts
from torchdoctor.extract.readings.figures import Figure, seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import shown
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "latency"

FACTS: dict[str, str] = {
    "latency.tail": "float: the slowest calls as a multiple of the median one, calls of the same work",
}

TAIL = 5.0  # a 99th percentile or repeated outliers
MAXIMUM = 20.0  # a single maximum
FEWEST = 8
FEWEST_BINS = 3
LONGEST = 500.0
WARM_UP = 3
STEADY = 2.5  # times the median, that the calls which are not outliers stay below

_PATTERNS = {
    "median": (
        r"\b(?:p ?50|median[ae]?|m\u00e9diane?|mediana|\u043c\u0435\u0434\u0438\u0430\u043d\u0430"
        r"|50(?:th)? ?%|50th percentile|typical|typ\.?|usually|normally)(?!\w)"
        r"|\u4e2d\u4f4d\u6570|\u4e2d\u592e\u5024|\uc911\uc559\uac12|\uc911\uac04\uac12"
    ),
    "mean": (
        r"\b(?:mean|avg|average|mittel(?:wert)?|durchschnitt|moyenne|media|m\u00e9dia|gemiddelde"
        r"|\u015brednia|\u0441\u0440\u0435\u0434\u043d\u0435\u0435|ortalama)(?!\w)"
        r"|\u5e73\u5747|\ud3c9\uade0"
    ),
    "tail": r"\b(?:p ?99(?:\.\d+)?|p ?95|99(?:\.\d+)?(?:th)? ?(?:%|percentile))",
    "bare": r"[ :=]{1,12}(?P<value>\d{1,6}(?:[.,]\d{1,4})?)(?![\w%])",
    "max": (
        r"\b(?:maks(?:imum)?|max(?:imum|imal|imo|imale)?\.?|m\u00e1x(?:imo)?|massimo|worst(?: case)?|slowest"
        r"|h\u00f6chste\w*|l\u00e4ngste\w*|pire|peor|pior"
        r"|\u043c\u0430\u043a\u0441(?:\u0438\u043c\u0443\u043c)?|en uzun|najd\u0142u\u017csz\w*)(?!\w)"
        r"|\u6700\u5927|\u6700\u957f|\u6700\u6162|\u6700\u9577|\ucd5c\ub300"
    ),
    # the same work, told where words of other work stand, too
    "equal": (
        r"(?:same|fixed|constant|identical|equal)\b[^.\n]{0,40}\b(?:shapes?|sizes?|inputs?|tensors?|images?"
        r"|lengths?|work|weights)"
        r"|always the same|(?:always|immer|toujours|siempre|sempre) \d{1,5} ?[x\u00d7*]|(?:shape|size"
        r"|input)s? (?:is|are) (?:fixed|constant|the same)|immer (?:gleich"
        r"|dieselbe)|gleiche\w* (?:Form|Gr\u00f6\u00dfe|Eingabe)"
        r"|(?:fixe|fija|fijo|fissa|fixa|sabit)\b|m\u00eame (?:taille|forme|entr\u00e9e)"
        r"|mism[oa] (?:tama\u00f1o|forma|entrada)"
        r"|mesm[oa] (?:tamanho|forma|entrada)|\u0442\u043e\u0442 \u0436\u0435"
        r"|\u043e\u0434\u0438\u043d\u0430\u043a\u043e\u0432"
        r"|\u56fa\u5b9a|\u76f8\u540c|\u4e00\u6837|\u540c\u3058|\ub3d9\uc77c|\uac19\uc740|\uace0\uc815"
        r"|batch(?: size)? ?=? ?1\b"
    ),
    # an inline series: "1.31 1.30 1.31 38.7 1.30", with "," or blanks between
    "series": (
        r"(?<![\w.,])(?:\d{1,6}(?:\.\d{1,4})?(?: ?ms)?(?:, |,| / | "
        r"|; )){9,400}\d{1,6}(?:\.\d{1,4})?(?![\w.])"
    ),
    "units": (
        r"\bms\b|millisec|latenc|per call|events?|inference|elapsed|\u5ef6\u8fdf|\u6beb\u79d2"
        r"|\u30ec\u30a4\u30c6\u30f3\u30b7|\u30df\u30ea\u79d2|\uc9c0\uc5f0|Latenz|latencia|lat\u00eancia"
        r"|latence|\u0437\u0430\u0434\u0435\u0440\u0436\u043a|\u043c\u0441"
    ),
    # the work differs from call to call
    "unequal": (
        r"\btokens?\b|prompts?\b|\blengths?\b|\bLLM\b|variable|different (?:sizes?|shapes?|resolutions?)"
        r"|dynamic shape|bucket"
        r"|DataLoader|\bloader\b|data time|data_time|checkpoint|recompil|torch\.compile|warm-?up included"
    ),
    "figures": r"^[\s\[]*(?:\d{1,6}(?:\.\d{1,4})?[,;\s]{1,8}){3,}[\d.]*[\s\],]*$",
    "bin": (
        r"^\W{0,4}(?P<low>\d{1,6}(?:\.\d{1,3})?) ?(?:ms)? ?(?:-|\u2013|\.\.|to|bis"
        r"|,) ?(?P<high>\d{1,6}(?:\.\d{1,3})?) ?(?:ms)?\W{1,12}"
        r"(?P<count>\d{1,9}(?:,\d{3})?)\b"
    ),
    "time-head": (
        r"^(?:ms|.*\(ms\)|.*\[ms\]|\w*_ms|latency.*|time.*|elapsed.*|duration.*|dauer.*|latenz.*"
        r"|dt)$"
    ),
    "gone": (
        r"\b(?:are|is) gone\b|\bsolved\b|closing (?:this|it)?|\bfixed (?:it|by)\b|behoben|r\u00e9solu"
        r"|resuelto|risolto"
    ),
    "computed": r"(?P<what>percentile|quantile)\([^\[\]\n]{1,60}[\[(](?P<asked>[\d., ]{3,60})[\])]",
    "decimal": r"\d{1,7}(?:\.\d{1,12})?",
    "digits": r"[\d.:,/-]+",
    "one": r"\d{1,6}(?:\.\d{1,4})?",
    "call": r"^\s*(?P<name>[A-Za-z][\w ]{0,24}?)[ #:=\[]{0,3}(?P<number>\d{1,7})\b[\]):,]?\s",
    "ours": r"torch|cuda|\bGPU\b|inference|latency|forward|model",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """The tail of the times of equal calls; nothing where the calls are not equal work."""
    if (
        passage.told(_pattern("gone")) is not None
        or not passage.personal
        or not _pattern("ours").search(passage.text)
    ):
        return
    if _pattern("unequal").search(passage.text) and not _pattern("equal").search(passage.text):
        return
    found = (
        _percentiles(passage)
        or _computed(passage)
        or _listed(passage)
        or _series(passage)
        or _columns(passage)
        or _logged(passage)
        or _histogram(passage)
        or _told(passage)
    )
    if found is not None:
        ratio, line = found
        yield line.fact("latency.tail", round(ratio, 1))


def _percentiles(passage: Passage) -> tuple[float, Line] | None:
    named: dict[str, tuple[float, Line]] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID, Voice.CODE):
        figures = list(seconds(line.text))
        if line.voice is Voice.CODE and (len(figures) < 2 or "(" in line.text):
            continue  # an indented summary passes for code
        for name in ("median", "mean", "tail", "max"):
            for word in _pattern(name).finditer(line.text):
                figure = next((item for item in figures if 0 <= item.start - word.end() <= 16), None)
                bare = _pattern("bare").match(line.text, word.end())
                value = figure.value if figure is not None else None
                if value is None and bare is not None:  # p50 4.1: a unit stands once, or elsewhere
                    value = float(bare.group("value").replace(",", ".")) * _unit(line, figures)
                if value is not None and (name not in named or (name == "tail" and value > named[name][0])):
                    named[name] = value, line
    middle, _ = named.get("median") or named.get("mean") or (0.0, None)
    if middle <= 0:
        return None
    for name, least in (("tail", TAIL), ("max", MAXIMUM)):
        if name in named and named[name][0] >= least * middle:
            return named[name][0] / middle, named[name][1]
    return None


def _computed(passage: Passage) -> tuple[float, Line] | None:
    """``np.percentile(times, [50, 99])``, or quantile, and the values that it printed."""
    for one in shown(passage):
        called = _pattern("computed").search(one.expression)
        if called is None:
            continue
        scale = 1.0 if called["what"].lower() == "percentile" else 100.0
        asked = [float(text) * scale for text in _pattern("decimal").findall(called["asked"])]
        values = [float(text) for text in _pattern("decimal").findall(one.value)]
        if len(asked) != len(values):
            continue
        times = dict(zip(asked, values, strict=True))
        middle = times.get(50.0, 0.0)
        for least, of in ((TAIL, (95.0, 98.0, 99.0, 99.5, 99.9)), (MAXIMUM, (100.0,))):
            tail = max((times[part] for part in of if part in times), default=0.0)
            if middle > 0 and tail >= least * middle:
                return tail / middle, one.line
    return None


def _unit(line: Line, figures: list[Figure]) -> float:
    """What the first time of a line that has a unit is worth for each one; 1 where none has."""
    number = amounts.number(line.text[figures[0].start : figures[0].end]) if figures else None
    return figures[0].value / number if number else 1.0


def _series(passage: Passage) -> tuple[float, Line] | None:
    """Times of one call after another in a line, or over lines of numbers alone."""
    if _pattern("units").search(passage.text) is None:
        return None
    for line, text in _runs(passage):
        for found in _pattern("series").finditer(text):
            spread = _outliers([float(text) for text in _pattern("one").findall(found.group())], at_least=2)
            if spread is not None:
                return spread, line
    return None


def _runs(passage: Passage) -> Iterator[tuple[Line, str]]:
    """The lines; those of figures alone joined with the ones below."""
    run: list[Line] = []
    for line in (*passage.lines, None):
        if line is not None and _pattern("figures").match(line.text):
            run.append(line)
            continue
        if run:
            yield run[0], ", ".join(one.text.strip().strip("[],; ") for one in run)
            run = []
        if line is not None:
            yield line, line.text


def _columns(passage: Passage) -> tuple[float, Line] | None:
    """Percentiles that are heads of columns, the times below them."""
    for table in tables(passage.lines):
        middle_at = table.column(_pattern("median"))
        for name, least in (("tail", TAIL), ("max", MAXIMUM)):
            for tail_at in (at for at, head in enumerate(table.head) if _pattern(name).search(head)):
                if middle_at is None:
                    break
                for row in table.rows:
                    middle, tail = (_pattern("one").match(row.cells[at]) for at in (middle_at, tail_at))
                    if middle and tail and float(tail.group()) >= least * float(middle.group()) > 0:
                        return float(tail.group()) / float(middle.group()), row.line
    return None


def _logged(passage: Passage) -> tuple[float, Line] | None:
    """A table with a row a call: a number that counts up, and the time."""
    for table in tables(passage.lines):
        at = table.column(_pattern("time-head"))
        if at is None or at == 0 or not all(row.cells[0].isdecimal() for row in table.rows):
            continue
        numbers = [int(row.cells[0]) for row in table.rows]
        if any(after - before != 1 for before, after in pairwise(numbers)):
            continue
        found = [_pattern("one").match(row.cells[at]) for row in table.rows]
        spread = _outliers([float(one.group()) for one in found if one is not None], at_least=2)
        if spread is not None:
            return spread, table.line
    return None


def _histogram(passage: Passage) -> tuple[float, Line] | None:
    """Rows of a range of times and how many calls fell into it."""
    bins: list[tuple[float, float, int, Line]] = []
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        if (found := _pattern("bin").match(line.text)) is not None:
            low, high = float(found.group("low")), float(found.group("high"))
            bins.append((low, high, int(found.group("count").replace(",", "")), line))
    if len(bins) < FEWEST_BINS:
        return None
    _, usual, calls, _ = max(bins, key=lambda item: item[2])
    far = [item for item in bins if item[0] >= TAIL * usual > 0 and item[2] >= 2]
    few = sum(item[2] for item in far) * 4 <= calls
    return (far[-1][0] / usual, far[-1][3]) if far and few else None


def _outliers(values: list[float], at_least: int) -> float | None:
    """How far the slowest stands above the median of those after the first, where few are far off."""
    settled = values[WARM_UP:]
    if len(settled) < FEWEST:
        return None
    middle = median(settled)
    slow = [value for value in settled if value >= TAIL * middle > 0]
    rest = [value for value in settled if value < TAIL * middle]
    even = max(rest, default=0.0) <= STEADY * middle
    return max(slow) / middle if len(slow) >= at_least and len(slow) * 4 <= len(settled) and even else None


def _listed(passage: Passage) -> tuple[float, Line] | None:
    """A call a line: several that take far longer than the rest, none of them among the first."""
    series: dict[str, list[tuple[float, Line, int | None]]] = {}
    for line in passage.of(Voice.PRINTED):
        figures = list(seconds(line.text))
        if len(figures) != 1 or "epoch" in line.text.lower():
            continue
        call = _pattern("call").match(line.text)
        alike = _pattern("digits").sub("", line.text[: figures[0].start]).strip().lower()
        name = call.group("name").strip().lower() if call is not None else alike
        number = int(call.group("number")) if call is not None else None
        series.setdefault(name, []).append((figures[0].value, line, number))
    for calls in series.values():
        numbers = [number for _, _, number in calls if number is not None]
        gaps = [after - before for before, after in pairwise(numbers)]
        if gaps and (min(gaps) <= 0 or max(gaps) > 1.5 * min(gaps)):
            continue  # sizes that were tried, not calls one after another
        spread = _outliers([value for value, _, _ in calls], at_least=2)
        if spread is not None:
            return spread, max(calls[WARM_UP:], key=lambda item: item[0])[1]
    return None


def _told(passage: Passage) -> tuple[float, Line] | None:
    """ "Usually 5 ms, every few seconds one takes 80": equal work, and words for the odd call."""
    if _pattern("equal").search(passage.text) is None:
        return None
    for line in passage.sentences:
        times = [figure.value for figure in seconds(line.text)]
        odd = says("now and then").search(line.text) and not says("first call").search(line.text)
        # "every 5 s" is how often, not how long
        slow = [time for time in times[1:] if time <= LONGEST * times[0]]
        if odd and slow and max(slow) >= TAIL * times[0] > 0:
            return max(slow) / times[0], line
    return None
