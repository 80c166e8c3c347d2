"""Norms of gradients that a text prints, one after another: in lines of a log and in columns of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATTERNS = {
    "norm": (
        r"(?:grad(?:ient)?s?[_ ]?norm|\bg_?norm|norm[_ ]?grad|\|\|\s?(?:grad|g|\u2207\w{0,3})\s?\|\||\|grad\|"
        r"|\u68af\u5ea6\u8303\u6570|\u52fe\u914d\u30ce\u30eb\u30e0)"
    ),
    "value": r"['\"]?\s*[:=|(]?\s*(?P<value>\d{1,9}(?:[.,]\d{1,12})?(?:e[+-]?\d{1,3})?)(?![\w.])",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def norms(passage: Passage) -> list[tuple[float, Line]]:
    """The norms in order, each with its line; those of lines where there are any, else of a column."""
    return list(_lines(passage)) or list(_column(passage))


def _lines(passage: Passage) -> Iterator[tuple[float, Line]]:
    for line in passage.of(Voice.PRINTED, Voice.CODE):
        name = _pattern("norm").search(line.text)
        found = _pattern("value").match(line.text, name.end()) if name is not None else None
        if found is not None:
            yield float(found.group("value").replace(",", ".")), line


def _column(passage: Passage) -> Iterator[tuple[float, Line]]:
    for table in tables(passage):
        # columns of several runs, or of several parts, are no series
        if sum(_pattern("norm").search(head) is not None for head in table.heads) != 1:
            continue
        for row in table.rows:
            for head, cell in row.cells:
                if _pattern("norm").search(head) and (value := number(cell)) is not None:
                    yield value, row.line
        return
