"""Tables that people paste: of Markdown, in columns that blanks keep apart, or of comma-separated values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ROWS = 60
SHORT = 32

_PATTERNS = {
    "gap": r"\s{2,}|\t+",
    "rule": r"[\s|:=+\u2500\u2550\u2502-]+",
    "number": (
        r"[~\u2248<>=+\u00b1]*\s?-?(?:\d[\d.,_]*(?:e[+-]?\d{1,3})?|nan|inf)\s?(?:%|x"
        r"|[A-Za-z/\u00b5]{1,9})?"
    ),
    "plain": r"-?(?:\d{1,12}(?:[.,]\d{1,20})?(?:e[+-]?\d{1,3})?|nan|inf)(?![\w.])",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row under the heads of its table; ``label`` is the first cell."""

    label: str
    cells: tuple[tuple[str, str], ...]  # head and cell
    line: Line


@dataclass(frozen=True, slots=True)
class Table:
    """Heads over columns, without that of the labels where it has none."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]


def tables(passage: Passage) -> Iterator[Table]:
    """The tables of a text, each with two rows at least of as many cells as it has heads."""
    heads: list[str] | None = None
    rows: list[Row] = []
    for line in passage.lines:
        cells = _cells(line)
        if cells is None:
            if line.voice is Voice.SAID:
                yield from _table(heads, rows)
                heads, rows = None, []
            continue
        if not cells:
            continue
        fits = heads is not None and len(cells) - len(heads) in (0, 1)
        filled = any(_pattern("number").fullmatch(cell) or cell == "None" for cell in cells)
        if fits and heads is not None and (filled or rows) and len(rows) < MOST_ROWS:
            rows.append(Row(cells[0], tuple(zip(heads[::-1], cells[::-1], strict=False))[::-1], line))
        elif not filled:
            yield from _table(heads, rows)
            heads, rows = cells, []
    yield from _table(heads, rows)


def number(cell: str) -> float | None:
    """The first number of a cell; NaN and infinity are numbers here."""
    found = _pattern("plain").search(cell.replace("\u202f", ""))
    if found is None:
        return None
    return float(found.group().replace(",", "."))


def _table(heads: list[str] | None, rows: list[Row]) -> Iterator[Table]:
    if heads is not None and rows:
        yield Table(tuple(heads), tuple(rows))


def _heads(cells: list[str]) -> bool:
    """Short words that blanks keep apart; "without      with checkpoint" passes for a sentence."""
    return all(len(cell) <= SHORT and cell[-1:] not in ".?!:,;" for cell in cells)


def _cells(line: Line) -> list[str] | None:
    """The cells of a row, none for the rule below the heads; None where the line is no row."""
    text = line.text.strip()
    if line.voice in (Voice.TYPED, Voice.SHELL):
        return None
    if _pattern("rule").fullmatch(text):
        return []
    if text[:1] == "|" and text[1:2] != "|":  # "||grad|| head" is a norm
        return [cell.strip(" *`") for cell in text.strip("|").split("|")]
    wide = [cell for cell in _pattern("gap").split(text) if cell]
    if len(wide) > 1 and (line.voice is not Voice.SAID or _heads(wide)):
        return wide
    if " | " in text and text.count("|") > 1:
        return [cell.strip(" *`") for cell in text.split("|")]
    if text.count(",") > 1 and " " not in text.replace(", ", ",") and line.voice is not Voice.CODE:
        return [cell.strip() for cell in text.split(",")]
    return None
