"""Tables that stand in a text: Markdown, values parted by commas, columns of blanks, each with its head."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdoctor.extract.readings.passage import Line

MOST_CELLS = 40
LONGEST_HEAD = 60
MOST_BETWEEN = 12  # lines of something else between rows of the same table

_PATTERNS = {
    "rule": r"^[\s|+:=\-\u2500-\u257f]+$",
    "blanks": r"\t+|\s{2,}",
    "number": r"^[~<>\u2248+-]?\s?\$?\d",
    # "mine: 420 MHz, 34 W": whose row it is, before the first cell
    "label": r"^\s*(?P<label>[^\s,:|]{1,24}):\s+(?P<cell>\S.*)$",
    "asked": r"--query-(?:gpu|accounted-apps|compute-apps)[= ](?P<columns>[A-Za-z_.,]{5,900})",
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its cells, and whose it is where a name stands before it."""

    line: Line
    cells: tuple[str, ...]
    label: str = ""


@dataclass(slots=True)
class Table:
    """A head and the rows below it, all of as many cells."""

    head: tuple[str, ...]
    line: Line
    rows: list[TableRow] = field(default_factory=list)

    def column(self, wanted: re.Pattern[str]) -> int | None:
        """The first column whose head the pattern finds."""
        return next((at for at, name in enumerate(self.head) if wanted.search(name)), None)


def is_number(text: str) -> bool:
    """Does a cell begin with a figure?"""
    return _pattern("number").match(text) is not None


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """The tables in the order of their heads; a head without rows is none."""
    for split in (_bars, _commas, _blanks):
        table: Table | None = None
        since = 0
        for line in lines:
            if _pattern("rule").match(line.text) is not None:
                continue
            if split is _commas and (asked := _pattern("asked").search(line.text)) is not None:
                if table is not None and table.rows:
                    yield table
                table, since = Table(tuple(asked.group("columns").split(",")), line), 0
                continue
            row = _row(split(line.text), line, len(table.head) if table is not None else 0)
            if row is None:
                since += 1
                continue
            if _is_head(row):
                if table is not None and table.rows:
                    yield table
                table, since = Table(row.cells, line), 0
            elif table is not None and len(row.cells) == len(table.head) and since <= MOST_BETWEEN:
                table.rows.append(row)
                since = 0
            elif table is not None and split is _blanks and table.rows:
                yield table
                table = None
        if table is not None and table.rows:
            yield table


def _row(cells: tuple[str, ...], line: Line, wanted: int) -> TableRow | None:
    if not 2 <= len(cells) <= MOST_CELLS:
        return None
    label = ""
    if (found := _pattern("label").match(cells[0])) is not None:
        label, cells = found.group("label"), (found.group("cell"), *cells[1:])
    if len(cells) == wanted + 1 and any(map(is_number, cells[:wanted])) and not is_number(cells[-1]):
        cells = cells[:wanted]  # a remark behind the row
    return TableRow(line, cells, label)


def _is_head(row: TableRow) -> bool:
    if any(is_number(cell) or len(cell) > LONGEST_HEAD for cell in row.cells):
        return False
    return not all(cell.lower() in ("active", "not active", "n/a", "[n/a]") for cell in row.cells[1:])


def _bars(text: str) -> tuple[str, ...]:
    if text.count("|") < 2:
        return ()
    return tuple(cell.strip().strip("`*") for cell in text.strip().strip("|").split("|"))


def _commas(text: str) -> tuple[str, ...]:
    if "," not in text:
        return ()
    return tuple(cell.strip() for cell in text.split(","))


def _blanks(text: str) -> tuple[str, ...]:
    stripped = text.strip()
    if stripped[:1] == "|":
        return ()
    return tuple(cell for cell in _pattern("blanks").split(stripped) if cell)
