"""Facts out of the lines in which a training program prints its losses.

Every program has its own format, so a loss is known by its name (``loss``, ``train_loss``, ``loss_bbox``,
``ppl``) with a value right behind it, and so is what a loss is computed from (``logits/chosen``). Names of
records (``best_loss: inf``) hold infinity before the first epoch in sound runs, as does
``Validation loss decreased (inf --> 0.31)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.extract.ratio import ratio
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "loss.not_a_number": "bool: a loss in the line is NaN or infinite",
    "loss.norm_stuck": "bool: three gradient norms in succession are NaN, and none after them is a number",
    "loss.rank_not_finite": "bool: the table of gradients by rank below the line holds NaN or infinity",
    "loss.ranks_finite": "int: how many ranks of that table have finite gradients",
    "loss.ratio": "text: the quotient that own lines hand to binary_cross_entropy, as hits / total",
}

LINE_CHARS = 4000
LOOK_AHEAD = 64
LOOK_BACK = 60  # rows of a table between its heads and the one at hand
# a scaler of half precision skips a step or two in sound runs, and the norm of those is NaN, too
STUCK = 3

_NAMES = (
    r"(?P<name>[A-Za-z_/.\-]{0,24}(?:[Ll]oss|LOSS|[Pp]pl|[Pp]erplexity|(?P<input>[Ll]og(?:its|ps|probs|_probs)))"
    r"(?:es|[_/.][A-Za-z_0-9]{1,24}|[A-Z0-9])?)"
)
_BETWEEN = r"(?:->|[\s:='\"(\[{|,*`]|tensor\(|is\b|value\b|\x1b\[[\d;]{0,8}m){1,24}?"
_VALUE = r"(?P<value>[-+]?(?:nan|NaN|NAN|inf|Inf|INF|Infinity))(?![\w.\-])"
_NAMED = _NAMES + _BETWEEN + _VALUE
# a row of YOLO's table, whose heads stand above: epoch, memory, then the losses
_ROW = r"(?:^|[\s|])\d{1,5}/\d{1,5}\s+\d{1,4}(?:\.\d{1,3})?[GM]\s+(?:\S+\s+){0,4}?(?:nan|inf)\b"
_NORM = (
    r"\bgrad(?:ient)?[_ ]?norm['\"]?(?:[\s:=|]|tensor\(|\x1b\[[\d;]{0,8}m){1,6}"
    r"(?P<value>[-+]?(?:nan|inf|\d{1,12}(?:\.\d{1,20})?))(?![\w.\-])"
)
# fairseq and its kin: "rank   1 = nan", or a row of mean, max, min and norm
_RANKED = (
    r"(?:rank +\d{1,5} = |\s*\d{1,5}(?= +\S+ +\S))"
    r"(?P<values>(?: *[-+]?(?:nan|inf|\d{1,12}(?:\.\d{1,20})?(?:e[-+]\d{1,3})?)){1,6})\s*"
)
_TABLE_LINES = 40
_RECORDS = ("best", "min", "lowest", "last", "prev", "record", "top")


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of a line that prints a loss or a gradient norm, when one is NaN or infinite; and of a call."""
    if event.frames:
        yield "ratio", ratio(event)
    text = event.text[:LINE_CHARS]
    lower = text.lower()
    if "gradients" in lower and (rows := _by_rank(event, transcript)):
        yield "rank_not_finite", any("n" in row for row in rows)  # of nan and inf
        yield "ranks_finite", sum("n" not in row for row in rows)
    if "nan" not in lower and "inf" not in lower:
        return
    if _named(text) or pattern(_ROW).search(text) or _in_column(event, transcript):
        yield "not_a_number", True
    elif _norm(text) == "nan" and _stuck(event, transcript):
        yield "norm_stuck", True


def _named(text: str) -> bool:
    """Does a loss that is not finite stand behind its name? A record is infinite before the first epoch."""
    for found in pattern(_NAMED).finditer(text):
        before = text[max(0, found.start() - 12) : found.start()].lower() + found["name"].lower()
        if found["input"] and "inf" in found["value"].lower():
            continue  # a logit that is masked out, or a probability of 0
        record = any(word in before for word in _RECORDS) or "->" in text[found.end() : found.end() + 8]
        if not record or "nan" in found["value"].lower():
            return True
    return False


def _columns(text: str) -> list[str]:
    """The cells of a row: between bars, tabs or commas, else between blanks."""
    for mark in ("|", "\t", ","):
        if text.count(mark) >= 2:
            return [cell.strip() for cell in text.strip().strip("|,").split(mark)]
    wide = re.split(r" {2,}", text.strip())
    return wide if len(wide) > 2 else text.split()


def _in_column(event: Event, transcript: Transcript) -> bool:
    """Is a loss not finite in a row of a table with heads of its own above it?"""
    cells = _columns(event.text[:LINE_CHARS])
    at = [n for n, cell in enumerate(cells) if cell.lower().lstrip("+-") in ("nan", "inf")]
    if not at or len(cells) < 3 or not any(cell[:1].isdecimal() for cell in cells):
        return False
    for other in reversed(transcript.events[max(0, event.id - LOOK_BACK) : event.id]):
        if "loss" not in other.text[:LINE_CHARS].lower():
            continue
        heads = _columns(other.text[:LINE_CHARS])
        if len(heads) != len(cells) or any(head[:1].isdecimal() for head in heads):
            continue
        named = [(heads[number].lower(), cells[number].lower().lstrip("+-")) for number in at]
        return any(
            "loss" in head and not (value == "inf" and any(word in head for word in _RECORDS))
            for head, value in named
        )
    return False


def _by_rank(event: Event, transcript: Transcript) -> list[str]:
    """The values of the first table below the line that has a row for each rank."""
    behind = transcript.events[event.id + 1 : event.id + 1 + _TABLE_LINES]
    lines = [one.text[:LINE_CHARS] for one in behind]
    if not any("across the workers" in line for line in lines):
        return []
    return [row["values"] for line in lines if (row := pattern(_RANKED).fullmatch(line)) is not None]


def _norm(text: str) -> str | None:
    """The gradient norm that a line prints, without a mean in brackets behind it."""
    found = pattern(_NORM, re.IGNORECASE).search(text[:LINE_CHARS])
    return None if found is None else found.group("value").lower().lstrip("+-")


def _stuck(event: Event, transcript: Transcript) -> bool:
    """Whether the next norms are NaN as well, while the losses beside them are numbers."""
    behind = transcript.events[event.id + 1 : event.id + 1 + LOOK_AHEAD]
    norms = [(norm, other.text) for other in behind if (norm := _norm(other.text)) is not None]
    if any(norm != "nan" or pattern(_NAMED).search(text[:LINE_CHARS]) for norm, text in norms):
        return False
    return 1 + len(norms) >= STUCK
