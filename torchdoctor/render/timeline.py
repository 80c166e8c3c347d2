"""The timeline of an incident in words: which rank failed first, which failed of their own, who only echoed.

Rows for people, made of plain text; how they are laid out is the page's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdoctor.model import Part
from torchdoctor.render.words import ranks, time_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.model import Moment

_ROLES = {Part.FIRST: "first", Part.CAUSE: "failed too", Part.ECHO: "echo"}
_SILENT = "printed nothing about a failure"
MAX_ROWS = 12
_HOSTS = 4


class Row(NamedTuple):
    """One row: when, who, in which role, and the line that says so. ``strong`` marks the first failure."""

    when: str
    who: str
    role: str
    text: str
    strong: bool


def rows(moments: Sequence[Moment], *, all_of_them: bool = False) -> tuple[list[Row], int]:
    """The rows, and how many were left out. Ranks that say the same in the same role share one row."""
    groups: dict[tuple[Part, str, str], list[Moment]] = {}
    firsts = {moment.host for moment in moments if moment.role is Part.FIRST}
    by_host = len(firsts) <= _HOSTS  # a tie of more hosts is one row
    for moment in moments:
        name = moment.rule or _without_numbers(moment.text)
        host = moment.host or "" if moment.role is Part.FIRST and by_host else ""
        groups.setdefault((moment.role, name, host), []).append(moment)
    found = [_row(role, group) for (role, _, _), group in groups.items()]
    shown = found if all_of_them else found[:MAX_ROWS]
    return shown, len(found) - len(shown)


def heads(rows: Sequence[Row]) -> list[str]:
    """When, who and in which role of each row, in columns of one width."""
    columns = ([row.when for row in rows], [row.who for row in rows], [row.role for row in rows])
    widths = [max(map(len, column)) for column in columns]
    return [
        "".join(cell.ljust(width) + "  " for cell, width in zip(told, widths, strict=True) if width)
        for told in zip(*columns, strict=True)
    ]


def _row(role: Part, group: list[Moment]) -> Row:
    times = [moment.time for moment in group if moment.time]
    when = time_of(times[0]) if times else ""
    hosts = {moment.host for moment in group if moment.host}
    who = f"rank {group[0].rank}" if len(group) == 1 else f"ranks {ranks([moment.rank for moment in group])}"
    if len(hosts) == 1 and all(moment.host for moment in group):
        who += f" on {next(iter(hosts))}"
    return Row(when, who, _ROLES[role], group[0].text or _SILENT, role is Part.FIRST)


def _without_numbers(text: str) -> str:
    return "".join("#" if char.isdecimal() else char for char in text[:60])
