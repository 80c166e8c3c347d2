"""Drawings of an incident, as SVG without script: who failed when, and which rank said what.

Colour is never alone: a failure of a rank's own is a square, an echo a ring, and each carries its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from typing import NamedTuple

from torchdoctor.render.clean import clean

LANES = 64  # ranks drawn with a line of their own
_LANE, _TOP, _LEFT, _WIDTH = 18, 26, 92, 900
_CELL, _COLUMNS, _NAME = 16, 32, 250


class Mark(NamedTuple):
    """One thing that one rank said. ``own`` is a failure of its own, else it only echoes that of another."""

    rank: int | None
    host: str | None
    time: str | None
    own: bool
    first: bool
    kind: str  # the rule, or the type of the exception
    text: str
    place: str


def seconds(time: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 time (UTC when it names no zone); None for what is no date."""
    if not time:
        return None
    try:
        moment = datetime.fromisoformat(time.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def timeline(marks: Sequence[Mark]) -> str:
    """A line for each rank, time from left to right; "" for fewer than two marks with a rank.

    Without times for all of them the order of the lines is drawn instead, and it says so. Of more than
    ``LANES`` ranks those with a failure of their own are drawn first, then the lowest numbers.
    """
    told = [mark for mark in marks if mark.rank is not None]
    ranks = sorted({mark.rank for mark in told if mark.rank is not None})
    if len(told) < 2 or not ranks:
        return ""
    own = {mark.rank for mark in told if mark.own}
    shown = sorted(sorted(ranks, key=lambda rank: (rank not in own, rank))[:LANES])
    times = [seconds(mark.time) for mark in told]
    known = [time for time in times if time is not None]
    by_time = len(known) == len(told) and max(known) > min(known)
    place = _scale(known if by_time else list(range(len(told))))
    height = _TOP + _LANE * len(shown) + 24
    parts = [_lane(rank, _TOP + _LANE * number, told) for number, rank in enumerate(shown)]
    for number, mark in enumerate(told):
        if mark.rank in shown:
            moment = times[number] if by_time else number
            x = place(0.0 if moment is None else float(moment))
            parts.append(_mark(mark, x, _TOP + _LANE * shown.index(mark.rank)))
    parts.append(_axis(known, by_time, height - 6))
    left_out = len(ranks) - len(shown)
    if left_out:
        parts.append(
            f'<text x="{_LEFT}" y="14" class="dim">and {left_out} more ranks, which only echo</text>'
        )
    return _svg(_LEFT + _WIDTH + 20, height, "Timeline: which rank failed when", parts, "wide")


def _scale(values: Sequence[float]) -> _Scale:
    return _Scale(min(values), max(values))


class _Scale:
    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.span = (high - low) or 1.0

    def __call__(self, value: float) -> float:
        return _LEFT + 12 + (value - self.low) / self.span * (_WIDTH - 30)


def _lane(rank: int, y: int, marks: Sequence[Mark]) -> str:
    host = next((mark.host for mark in marks if mark.rank == rank and mark.host), "")
    name = f"rank {rank}" + (f" {clean(host)[:10]}" if host else "")
    return (
        f'<text x="4" y="{y + 4}" class="name">{escape(name[:16])}</text>'
        f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" class="lane"/>'
    )


def _mark(mark: Mark, x: float, y: int) -> str:
    words = ", ".join(part for part in (f"rank {mark.rank}", mark.time or "", mark.kind, mark.place) if part)
    title = f"<title>{escape(clean(f'{words}: {mark.text[:200]}'))}</title>"
    if not mark.own:
        return f'<circle cx="{x:.1f}" cy="{y}" r="5" class="echo">{title}</circle>'
    size = 7 if mark.first else 5
    name = "first" if mark.first else "own"
    side = 2 * size
    corner = f'x="{x - size:.1f}" y="{y - size}"'
    square = f'<rect {corner} width="{side}" height="{side}" class="{name}">{title}</rect>'
    if not mark.first:
        return square
    anchor = "end" if x > _LEFT + _WIDTH * 0.6 else "start"
    shift = -12 if anchor == "end" else 12
    at = f'x="{x + shift:.1f}" y="{y + 4}"'
    return f'{square}<text {at} text-anchor="{anchor}" class="label">{escape(clean(mark.kind)[:60])}</text>'


def _axis(known: Sequence[float], by_time: bool, y: int) -> str:
    if not by_time:
        words = "in the order of the lines; the log gives no times for all of them"
        return f'<text x="{_LEFT}" y="{y}" class="dim">{words}</text>'
    low, high = (
        datetime.fromtimestamp(value, timezone.utc).strftime("%H:%M:%S.%f")[:12]
        for value in (min(known), max(known))
    )
    span = max(known) - min(known)
    return (
        f'<text x="{_LEFT}" y="{y}" class="dim">{low} UTC</text>'
        f'<text x="{_LEFT + _WIDTH / 2}" y="{y}" text-anchor="middle" class="dim">{span:,.3f} s</text>'
        f'<text x="{_LEFT + _WIDTH}" y="{y}" text-anchor="end" class="dim">{high}</text>'
    )


def rank_map(marks: Sequence[Mark]) -> str:
    """Ranks from left to right, a row for each kind of message; "" for fewer than two ranks.

    Filled where a rank has it as its own failure, ringed where it is an echo.
    """
    told = [mark for mark in marks if mark.rank is not None]
    ranks = sorted({mark.rank for mark in told if mark.rank is not None})
    kinds = list(dict.fromkeys(mark.kind for mark in sorted(told, key=lambda mark: not mark.own)))
    if len(ranks) < 2:
        return ""
    cells = {(mark.kind, mark.rank): mark for mark in sorted(told, key=lambda mark: (mark.own, mark.first))}
    parts: list[str] = []
    y = 0
    for start in range(0, len(ranks), _COLUMNS):
        columns = ranks[start : start + _COLUMNS]
        y += 14
        for number, rank in enumerate(columns):
            if len(columns) <= 16 or number % 4 == 0:
                x = _NAME + _CELL * number + 8
                parts.append(f'<text x="{x}" y="{y}" text-anchor="middle" class="dim">{rank}</text>')
        for kind in kinds:
            found = [
                (number, cells[kind, rank]) for number, rank in enumerate(columns) if (kind, rank) in cells
            ]
            if not found and start:
                continue
            parts.append(f'<text x="4" y="{y + 17}" class="name">{escape(clean(kind)[:36])}</text>')
            parts.extend(_cell(mark, _NAME + _CELL * number, y + 5) for number, mark in found)
            end = _NAME + _CELL * len(columns)
            parts.append(f'<line x1="{_NAME}" y1="{y + 21}" x2="{end}" y2="{y + 21}" class="lane"/>')
            y += 20
        y += 8
    return _svg(_NAME + _CELL * min(len(ranks), _COLUMNS) + 20, y + 8, "Which rank said what", parts)


def _cell(mark: Mark, x: int, y: int) -> str:
    title = f"<title>{escape(clean(f'rank {mark.rank}: {mark.text[:200]}'))}</title>"
    if mark.own:
        name = "first" if mark.first else "own"
        return f'<rect x="{x + 2}" y="{y}" width="12" height="12" class="{name}">{title}</rect>'
    return f'<circle cx="{x + 8}" cy="{y + 6}" r="5" class="echo">{title}</circle>'


def _svg(width: float, height: float, label: str, parts: Sequence[str], kind: str = "") -> str:
    name = f'class="{kind}" ' if kind else ""
    return (
        f'<svg {name}viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
