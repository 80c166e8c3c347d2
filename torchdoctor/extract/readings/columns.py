"""Tables of a text: rows between bars, columns that blanks or tabs part, and CSV, each under a head."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage

MOST_CELLS = 24

_PATTERNS = {
    "rule": r"^[\s|+:=_-]+$",
    "gap": r"\s{2,}|\t",
    # a unit behind a blank would be a cell of its own: "61.0 s", "38 %", "5.9 GB"
    "unit": r"(?<=\d) (?=(?:%|[KMGT]i?B?|[kmun]?s|sec|min|it/s|img/s|images/s|samples/s)(?:\s|$))",
    "figure": r"\d",
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one row, without blanks around them, and the line they stand in."""

    cells: tuple[str, ...]
    line: Line


@dataclass(frozen=True, slots=True)
class Table:
    """A head and two rows or more, each with as many cells as the head."""

    head: Row
    rows: tuple[Row, ...]

    def column(self, wanted: re.Pattern[str], start: int = 0) -> int | None:
        """The first column from ``start`` on whose head the pattern finds."""
        cells = self.head.cells
        return next((at for at in range(start, len(cells)) if wanted.search(cells[at])), None)


def tables(passage: Passage) -> Iterator[Table]:
    """The tables of a text, in order; a table ends at the first line that does not fit its head."""
    lines = passage.lines
    at = 0
    while at < len(lines) - 2:
        found = next(
            (table for how in ("bars", "gaps", "commas", "blanks") if (table := _from(lines, at, how))), None
        )
        if found is None:
            at += 1
            continue
        yield found
        at = found.rows[-1].line.at + 1


def _from(lines: tuple[Line, ...], at: int, how: str) -> Table | None:
    head = _cells(lines[at].text, how)
    # with single blanks every sentence has a head's form: only bare words over bare figures are taken
    most = MOST_CELLS if how != "blanks" else 8
    if not 2 <= len(head) <= most or _pattern("figure").match(head[0]) or not any(head):
        return None
    rows: list[Row] = []
    for line in lines[at + 1 :]:
        if _pattern("rule").match(line.text):
            continue
        cells = _cells(line.text, how)
        if len(cells) != len(head) or not any(_pattern("figure").search(cell) for cell in cells):
            break
        if how == "blanks" and not all(_pattern("figure").search(cell) for cell in cells):
            break
        rows.append(Row(cells, line))
    return Table(Row(head, lines[at]), tuple(rows)) if len(rows) >= 2 else None


def _cells(text: str, how: str) -> tuple[str, ...]:
    stripped = _pattern("unit").sub("", text.strip())
    if how == "bars":
        if "|" not in stripped and "\u2502" not in stripped:
            return ()
        return tuple(cell.strip(" *`") for cell in stripped.replace("\u2502", "|").strip("|").split("|"))
    if how == "commas":
        mark = ";" if stripped.count(";") >= 1 else ","
        return tuple(cell.strip(" \"'") for cell in stripped.split(mark)) if mark in stripped else ()
    if how == "gaps":
        return tuple(_pattern("gap").split(stripped))
    return tuple(stripped.split())
