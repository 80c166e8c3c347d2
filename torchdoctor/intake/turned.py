"""Texts of log viewers that show the newest line first: read from the last entry to the first.

An entry is a line that begins with a time, with the lines without one below it, whose order it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.intake.source import Tally
from torchdoctor.intake.times import stamp

NOTE = "the lines stand newest first, by their times; they were read from the last one to the first"
_FALLS = 5  # at least so many, and so many times more than there are rises
_RARE = 20
_LINES = 3  # of an entry, on the average; a list of changes has more

Numbered = tuple[int, str, bool]


def in_order(lines: Sequence[Numbered], tally: Tally) -> Sequence[Numbered]:
    """The lines in the order of their times, numbered anew; the tally keeps the numbers that they have.

    As they are where they stand in that order, or tell none.
    """
    turned = _turned(lines)
    if turned is None:
        return lines
    order: list[int] = []
    found = []
    for number, text, joined in turned:
        if not joined:
            order.append(number)
        found.append((len(order), text, joined))
    tally.order = tuple(order)
    tally.notes.append(NOTE)
    return found


def _turned(lines: Sequence[Numbered]) -> list[Numbered] | None:
    entries: list[list[Numbered]] = [[]]
    falls = rises = 0
    before = ""
    for line in lines:
        at = None if line[2] else stamp(line[1])
        if at is None:
            entries[-1].append(line)
            continue
        entries.append([line])
        if before and at != before:
            falls, rises = falls + (at < before), rises + (at > before)
        before = at
    written = sum(1 for _, text, joined in lines if text.strip() and not joined)
    if falls < _FALLS or rises * _RARE > falls or (len(entries) - 1) * _LINES < written:
        return None
    head, *rest = entries
    return [*head, *(line for entry in reversed(rest) for line in entry)]
