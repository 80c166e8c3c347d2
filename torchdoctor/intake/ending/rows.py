"""What programs print about how they ended and what they got over: the tables of ``rows.tsv``.

A row is the parts of words of which one stands in each of its lines, a pattern that is searched in the line
without regard to capitals, who prints such a line, and the case of ``fixtures`` that shows it. Words of
success count as a clause of their own, never as a part of one.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.patterns import Words
from torchdoctor.records import Record, record

if TYPE_CHECKING:
    import re

# where a clause begins and ends
_CLAUSE = r"(?:^|[\]\):|>,;\u2713\u2714\u2705\u2500-] ?|\d\.? |\b(?:and|is|are|was|has|have|been|all|now) )"
_END = r"(?=$|[.!,;:)\u2713\u2714\u2705]|\s(?:in|after|at|with(?!out)|on|for|\(|\[|-|\u2014|=|[a-z]+=))"
_WORK = r"(?:(?:all )?(?:training|run|jobs?|evaluation|inference|export|experiment|epoch|everything|ranks))?"
_WRONG = r"(?:an? |some )?(?:errors?|failures?|exceptions?|non-?zero)"
_PLACEHOLDERS = (("{clause}", _CLAUSE), ("{end}", _END), ("{work}", _WORK), ("{wrong}", _WRONG))


@record(frozen=True, slots=True)
class Row(Record):
    """Parts of words, of which a match holds one; a pattern, who prints it, and the case that shows it."""

    words: tuple[str, ...]
    pattern: str
    by: str
    case: str = ""


@record(frozen=True, slots=True)
class Table(Record):
    """Rows that say the same, and the words of all."""

    rows: tuple[Row, ...]
    words: Words

    @property
    def pattern(self) -> str:
        return "|".join(f"(?:{row.pattern})" for row in self.rows)

    def search(self, text: str) -> re.Match[str] | None:
        """A match of the first row that has one; a row is compiled when one of its words is in a text."""
        low = text.lower()
        if not self.words(low):
            return None
        for row in self.rows:
            for word in row.words:
                if word in low:
                    if (found := _compiled(row.pattern).search(text)) is not None:
                        return found
                    break
        return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    import re

    return re.compile(pattern, re.IGNORECASE)


def _read() -> dict[str, Table]:
    found: dict[str, list[Row]] = {}
    with open(os.path.join(os.path.dirname(__file__), "rows.tsv"), encoding="utf-8") as file:
        for line in file:
            if line[0] in "#\n":
                continue
            table, words, pattern, by, case = [*line.rstrip("\n").split("\t"), "", ""][:5]
            for name, text in _PLACEHOLDERS:
                pattern = pattern.replace(name, text)
            found.setdefault(table, []).append(Row(tuple(words.split()), pattern, by, case))
    return {
        name: Table(tuple(rows), Words(word for row in rows for word in row.words))
        for name, rows in found.items()
    }


_TABLES = _read()
GOOD = _TABLES["good"]
SOFT = _TABLES["soft"]
NOT_GOOD = _TABLES["not_good"]
STATUS = _TABLES["status"]
BAD = _TABLES["bad"]
ACCOUNTED = _TABLES["accounted"]
REFUSAL = _TABLES["refusal"]
TROUBLE = _TABLES["trouble"]
NO_TROUBLE = _TABLES["no_trouble"]
DIED = _TABLES["died"]
CHILD = _TABLES["child"]
REPORTED = _TABLES["reported"]
AROUND = _TABLES["around"]
AGAIN = _TABLES["again"]
CAUGHT = _TABLES["caught"]
INSTEAD = _TABLES["instead"]
GAVE_UP = _TABLES["gave_up"]
HARMLESS = _TABLES["harmless"]
ASKED_FOR = _TABLES["asked_for"]
LEFT_OUT = _TABLES["left_out"]
NOT_LOADED = _TABLES["not_loaded"]
LMODS = _TABLES["lmods"]
NOT_IMPORTED = _TABLES["not_imported"]
