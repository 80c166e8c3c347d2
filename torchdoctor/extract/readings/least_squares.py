"""lstsq on CUDA for a matrix without full rank: nan or huge numbers, finite ones of another solver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "least_squares"

FACTS: dict[str, str] = {
    "least_squares.wild": "bool: a solution of lstsq on a GPU is printed with nan, inf or huge numbers",
    "least_squares.rank_low": "bool: the rank that is printed is below the number of columns",
    "least_squares.other_solver": "bool: the same problem is solved on the CPU or by NumPy, too",
}

HUGE = 1e6
BEYOND = 1e4  # times the solution that is printed beside it
APART = 100  # a residual so many times another is no rounding
TINY = 1e-3
LOOK_AHEAD = 12

_PATTERNS = {
    "lstsq": r"\blstsq\b",
    "solver": r"gels[dsy]\b|np\.linalg|numpy|scipy|\bpinv\b",
    "shape": (
        r"[\[(]\s*\d{1,9}(?:\s*,\s*\d{1,9})?\s*,\s*(?P<columns>\d{1,6})\s*[\])]"
        r"|\d\s*[x\u00d7]\s*(?P<wide>\d{1,6})\b"
    ),
    "wide-words": (
        r"\b(?P<columns>\d{1,6})\s*(?:columns|unknowns|coefficients|features|Spalten|Unbekannte"
        r"|colonnes|inconnues"
        r"|columnas|colunas|colonne|\u5217|\uc5f4|\u0441\u0442\u043e\u043b\u0431)"
    ),
    "dependent": (
        r"(?i)\b(?:two|some|several|the) (?:of the )?(?:columns|features)\b[^.\n]{0,40}\b(?:equal"
        r"|identical|same|collinear|dependent)"
        r"|\b(?:duplicate|repeated|collinear|linearly dependent|zero|constant|identical) (?:columns?"
        r"|features?)\b"
        r"|\brank[- ]deficient\b|\bunder-?determined\b|gleiche Spalten|linear abh\u00e4ngig"
        r"|colin\u00e9aire|colineal"
        r"|\u7ebf\u6027\u76f8\u5173|\u7dda\u5f62\u5f93\u5c5e|\uc120\ud615 \uc885\uc18d"
        r"|\u043b\u0438\u043d\u0435\u0439\u043d\u043e \u0437\u0430\u0432\u0438\u0441\u0438\u043c"
    ),
    "ranked": r"rank\D{0,24}?(?P<rank>\d{1,6})(?![\d.])",
    "gpu": r"cuda|\.to\((?:device|dev)\)|\bGPU\b",
    "other": (
        r"np\.linalg\.lstsq|numpy\.linalg\.lstsq|scipy\S{0,10}lstsq|lstsq\([^\n]*(?:\.cpu\(\)|gels[dsy])"
    ),
    # a comment behind what is printed
    "residual": (
        r"(?:norm|resid\w*|mse|err\w*|allclose|abs)\b.*#\s*(?:->|=>|prints?"
        r"|gives?)?\s*(?:tensor\()?(?P<value>[^\s()]+)\)?\s*$"
    ),
    "printed": (
        r"^\s*(?:resid\w*|error|norm|\|\|?[^|=]{3,20}\|\|?)\s*\(?(?:cpu|gpu"
        r"|cuda)\b[^=:]{0,12}[=:]\s*(?P<value>\S+)\s*$"
    ),
    "made": r"\s*(?P<name>[A-Za-z_]\w*)(?:, ?\w+)* ?= ?(?P<value>\S.*)$",
    "moved": r"\.cuda\(|\.to\(|cuda",
    "word": r"[A-Za-z_]\w*",
    "on-gpu": r"\bcuda\b|\.cuda\(|_gpu\b|_cuda\b|gpu_|cuda_|\bgpu\b|\.to\(",
    "number": r"(?<![\w.])-?(?:\d{1,20}(?:\.\d{0,12})?(?:e[+-]?\d{1,3})?|nan|inf)(?![\w])",
    "tensor": r"^\s*(?:\w+\s?[:=]?\s*)?(?:tensor\(|\[{1,2}\s*-?\d)",
    "told": r"\b(?:nans?|inf|garbage|huge|wild|way off|wrong)\b[^.\n]{0,60}\b(?:gpu|cuda)\b",
    "rank-of": r"rank\D{0,12}(?P<rank>\d{1,6})\s*(?:of|/|<|out of|vs\.?|but)\s*(?P<columns>\d{1,6})",
    "columns": r"\[\s*(?P<rows>\d{1,9})\s*,\s*(?P<columns>\d{1,6})\s*\]",
    "rank": r"^\s*(?:tensor\()?(?P<rank>\d{1,6})(?:,|\)|$)",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("gpu",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of solutions that were printed; nothing where lstsq is only talked about."""
    code = [line for line in snippets(passage) if _pattern("lstsq").search(line.text)]
    code = code or [line for line in passage.lines if _pattern("lstsq").search(line.text)]
    if not code or not _pattern("gpu").search(passage.text):
        return
    apart = _apart(passage)
    wild = (
        apart
        or _wild(passage, code[0])
        or _beside(passage, code[0])
        or _shown_wild(passage)
        or _told(passage)
    )
    if wild is None:
        return
    yield wild.fact("least_squares.wild", True)
    other = next((line for line in code if _pattern("other").search(line.text)), None) or apart
    other = other or passage.first(_pattern("solver"))
    if other is not None:
        yield other.fact("least_squares.other_solver", True)
    low = _rank_low(passage) or _rank_shown(passage) or passage.first(_pattern("dependent"), Voice.SAID)
    if low is not None:
        yield low.fact("least_squares.rank_low", True)


def _shown_wild(passage: Passage) -> Line | None:
    """The value of a call on the GPU, in a column beside it."""
    for one in shown(passage):
        on_gpu = _pattern("lstsq").search(one.expression) and not _pattern("other").search(one.expression)
        if on_gpu and _huge(one.value):
            return one.line
    return None


def _huge(text: str) -> bool:
    words = (found.group().lower().lstrip("-") for found in _pattern("number").finditer(text))
    return any(word in ("nan", "inf") or float(word) >= HUGE for word in words)


def _rank_shown(passage: Passage) -> Line | None:
    """A rank that is printed or told below the number of columns that stands anywhere in the text."""
    wide: int | None = None
    for name in ("shape", "wide-words"):
        found = next(
            (match for line in passage.lines if (match := _pattern(name).search(line.text)) is not None), None
        )
        if wide is None and found is not None:
            wide = int(next(group for group in found.groups() if group))
    if wide is None:
        return None
    for line in passage.lines:
        for found in _pattern("ranked").finditer(line.text):
            if 0 < int(found["rank"]) < wide:
                return line
    return None


def _wild(passage: Passage, start: Line) -> Line | None:
    for line in passage.lines[start.at + 1 : start.at + 1 + LOOK_AHEAD]:
        if line.voice is not Voice.PRINTED:
            continue
        for found in _pattern("number").finditer(line.text):
            word = found.group().lower().lstrip("-")
            if word in ("nan", "inf") or float(word) >= HUGE:
                return line
    return None


def _beside(passage: Passage, start: Line) -> Line | None:
    """A solution printed from the GPU whose numbers are far above those of one from elsewhere."""
    sane: float | None = None
    wild: tuple[float, Line] | None = None
    for line in passage.lines[start.at + 1 :]:
        if line.voice is not Voice.PRINTED or not _pattern("tensor").match(line.text):
            continue
        vector, gpu, _ = line.text.partition("device='cuda")
        found = [abs(float(one.group())) for one in _pattern("number").finditer(vector)]
        if not found:
            continue
        if gpu:
            wild = wild or (max(found), line)
        elif sane is None:
            sane = max(found)
    return wild[1] if sane and wild is not None and wild[0] >= BEYOND * sane else None


def _apart(passage: Passage) -> Line | None:
    """The residual on the GPU where it is far above that of the same problem on the CPU."""
    sane: float | None = None
    wild: tuple[float, Line] | None = None
    names: set[str] = set()  # what was computed on the GPU
    for line in passage.lines:
        made = _pattern("made").match(line.text)
        if made is not None and _pattern("moved").search(made.group("value")):
            names.add(made.group("name"))
        found = _pattern("residual").search(line.text) or _pattern("printed").search(line.text)
        number = _pattern("number").fullmatch(found.group("value").strip(",;")) if found else None
        if found is None or number is None:
            continue
        value = abs(float(number.group()))
        shown = line.text[: found.start("value")]
        if _pattern("on-gpu").search(shown) or names.intersection(_pattern("word").findall(shown)):
            wild = wild or (value, line)
        else:
            sane = value if sane is None else sane
    if sane is None or wild is None:
        return None
    return wild[1] if not wild[0] <= APART * max(sane, TINY) else None


def _told(passage: Passage) -> Line | None:
    """Words for nan or garbage on the GPU."""
    if not passage.asked or cured(passage):
        return None
    found = passage.first(_pattern("told"), Voice.SAID)
    if found is not None:
        return found
    for line in passage.sentences:
        about = _pattern("gpu").search(line.text) or _pattern("lstsq").search(line.text)
        if about and (_huge(line.text) or says("strange").search(line.text)):
            return line
    return None


def _rank_low(passage: Passage) -> Line | None:
    columns: int | None = None
    for line in passage.lines:
        if (found := _pattern("rank-of").search(line.text)) is not None:
            return line if int(found.group("rank")) < int(found.group("columns")) else None
        if line.voice is Voice.PRINTED and (shape := _pattern("columns").search(line.text)) is not None:
            columns = int(shape.group("columns"))
        if line.voice is Voice.TYPED and "matrix_rank(" in line.text:
            answer = next(passage.answers(line, 1), None)
            rank = _pattern("rank").match(answer.text) if answer is not None else None
            width = columns or _typed_columns(passage)
            if answer is not None and rank is not None and width:
                return answer if int(rank.group("rank")) < width else None
    return None


def _typed_columns(passage: Passage) -> int | None:
    """Columns of the first matrix that is written out: torch.tensor([[1., 2.], [2., 4.]])."""
    for line in passage.of(Voice.TYPED, Voice.CODE):
        found = re.search(r"tensor\(\[\[([^\[\]]{1,200})\]", line.text)
        if found is not None:
            return found.group(1).count(",") + 1
    return None
