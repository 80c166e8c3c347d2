"""Drawings of an incident, as SVG without script: who failed when, and which rank said what.

Colour is never alone: a failure of a rank's own is a square, an echo a ring, and each carries its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from math import log2
from typing import NamedTuple

from torchdoctor.model import counted, moment_of
from torchdoctor.render.clean import clean
from torchdoctor.render.words import ranks as in_runs

LANES = 64  # ranks drawn with a line of their own
ALONE = 24  # of more ranks, those with a failure of their own that still get one
GROUPS = 32  # lines for all the others
_LANE, _TOP, _LEFT, _WIDTH = 18, 26, 116, 900
_BIN = 12  # marks of a group that are nearer to each other than this are one
_CELL, _COLUMNS, _NAME = 16, 32, 250
_SMALL, _SMALL_COLUMNS, _NUMBER, _KINDS = 11, 64, 44, 12  # of a map of very many ranks
CELLS = 128  # ranks up to which each has a cell of the large kind


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


class _Lane(NamedTuple):
    """One line of the timeline: a rank, or several of them."""

    name: str
    ranks: tuple[int, ...]


def timeline(marks: Sequence[Mark]) -> str:
    """A line for each rank, time from left to right; "" for fewer than two marks with a rank.

    Without times for most of them the order of the lines is drawn instead, and it says so. Of more than
    ``LANES`` ranks those with a failure of their own have a line, the others one for each group of them.
    """
    told = [mark for mark in marks if mark.rank is not None]
    if len(told) < 2:
        return ""
    times = _seconds([mark.time for mark in told])
    known = [time for time in times if time is not None]
    by_time = 2 * len(known) >= len(told) and len(set(known)) > 1
    place = _Scale(min(known), max(known)) if by_time else _Scale(0, len(told) - 1)
    lanes = _lanes(told)
    row = {rank: number for number, lane in enumerate(lanes) for rank in lane.ranks}
    height = _TOP + _LANE * len(lanes) + 24
    parts = [_lane(lane.name, _TOP + _LANE * number) for number, lane in enumerate(lanes)]
    merged: dict[tuple[int, bool, int], list[tuple[Mark, float]]] = defaultdict(list)
    for number, mark in enumerate(told):
        moment = times[number] if by_time else float(number)
        x = place(moment) if moment is not None else _LEFT + 8.0
        lane = row[mark.rank if mark.rank is not None else -1]
        if len(lanes[lane].ranks) == 1:
            parts.append(_mark(mark, x, _TOP + _LANE * lane))
        else:
            merged[lane, mark.own, int(x) // _BIN].append((mark, x))
    parts += [_several(found, _TOP + _LANE * lane) for (lane, _, _), found in merged.items()]
    parts.append(_axis(told, known, by_time, height - 6))
    if any(len(lane.ranks) > 1 for lane in lanes):
        words = "each line stands for several ranks; a larger mark stands for more of them"
        parts.append(f'<text x="{_LEFT}" y="14" class="dim">{words}</text>')
    return _svg(_LEFT + _WIDTH + 20, height, "Timeline: which rank failed when", parts, "wide")


def _seconds(times: Sequence[str | None]) -> list[float | None]:
    """Seconds since the epoch; a year or a day that a time lacks is that of the others, or any."""
    day = next((time[:10] for time in times if time and time[:4].isdecimal()), "2000-01-01")
    month = next((time[2:7] for time in times if time and time.startswith("--")), day[5:10])
    found: list[float | None] = []
    for time in times:
        if time and time.startswith("--"):
            time = f"{day[:4]}-{time[2:]}"
        elif time and time[2:3] == ":":
            time = f"{day[:4]}-{month}T{time}"
        moment = moment_of(time)
        if moment is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        found.append(moment.timestamp() if moment is not None else None)
    return found


def _lanes(marks: Sequence[Mark]) -> list[_Lane]:
    ranks = sorted({mark.rank for mark in marks if mark.rank is not None})
    hosts: dict[int, str] = {}
    for mark in marks:
        if mark.rank is not None and mark.host:
            hosts.setdefault(mark.rank, clean(mark.host)[:10])
    if len(ranks) <= LANES:
        return [_alone(rank, hosts) for rank in ranks]
    own = sorted({mark.rank for mark in marks if mark.own and mark.rank is not None})
    alone = own if len(own) <= ALONE else []
    size = 2
    while (ranks[-1] // size) - (ranks[0] // size) >= GROUPS:
        size *= 2
    groups: dict[int, list[int]] = defaultdict(list)
    for rank in sorted(set(ranks) - set(alone)):
        groups[rank // size].append(rank)
    others = [_Lane(f"{group[0]}-{group[-1]}", tuple(group)) for _, group in sorted(groups.items())]
    return [*(_alone(rank, hosts) for rank in alone), *others]


def _alone(rank: int, hosts: dict[int, str]) -> _Lane:
    return _Lane(f"rank {rank} {hosts.get(rank, '')}"[:18].rstrip(), (rank,))


class _Scale:
    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.span = (high - low) or 1.0

    def __call__(self, value: float) -> float:
        return _LEFT + 12 + (value - self.low) / self.span * (_WIDTH - 30)


def _lane(name: str, y: int) -> str:
    return (
        f'<text x="4" y="{y + 4}" class="name">{escape(name)}</text>'
        f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" class="lane"/>'
    )


def _several(found: Sequence[tuple[Mark, float]], y: int) -> str:
    """One mark for those of several ranks that fall together."""
    mark, x = found[0]
    if len(found) == 1:
        return _mark(mark, x, y)
    who = in_runs(sorted({one.rank for one, _ in found if one.rank is not None}))
    middle = sum(at for _, at in found) / len(found)
    radius = 5 + min(3.0, log2(len(found)) / 2)
    title = f"<title>{escape(clean(f'ranks {who[:300]}: {mark.kind}, {mark.text[:120]}'))}</title>"
    if not mark.own:
        return f'<circle cx="{middle:.1f}" cy="{y}" r="{radius:.1f}" class="echo">{title}</circle>'
    side = 2 * radius
    corner = f'x="{middle - radius:.1f}" y="{y - radius:.1f}"'
    name = "first" if any(one.first for one, _ in found) else "own"
    return f'<rect {corner} width="{side:.1f}" height="{side:.1f}" class="{name}">{title}</rect>'


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


def _axis(marks: Sequence[Mark], known: Sequence[float], by_time: bool, y: int) -> str:
    if not by_time:
        words = "in the order of the lines: not all of them have a time"
        return f'<text x="{_LEFT}" y="{y}" class="dim">{words}</text>'
    low, high = (
        datetime.fromtimestamp(value, timezone.utc).strftime("%H:%M:%S.%f")[:12]
        for value in (min(known), max(known))
    )
    zoned = any((moment := moment_of(mark.time)) is not None and moment.tzinfo for mark in marks)
    span = f"{max(known) - min(known):,.3f} s"
    if len(known) < len(marks):
        span += f"; {len(marks) - len(known)} without a time are at the left"
    return (
        f'<text x="{_LEFT}" y="{y}" class="dim">{low}{" UTC" if zoned else ""}</text>'
        f'<text x="{_LEFT + _WIDTH / 2}" y="{y}" text-anchor="middle" class="dim">{span}</text>'
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
    if len(ranks) > CELLS:
        return _dense_map(ranks, kinds, cells)
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


def _dense_map(ranks: Sequence[int], kinds: Sequence[str], cells: dict[tuple[str, int | None], Mark]) -> str:
    """A field of small cells for each kind of message; neighbours that say the same are one piece."""
    parts: list[str] = []
    low = ranks[0] // _SMALL_COLUMNS * _SMALL_COLUMNS
    rows = range(low, ranks[-1] + 1, _SMALL_COLUMNS)
    y = 0
    for kind in kinds[:_KINDS]:
        those = [rank for rank in ranks if (kind, rank) in cells]
        word = f"{len(those)} ranks" if len(those) > 1 else f"rank {those[0]}"
        parts.append(f'<text x="4" y="{y + 14}" class="name">{escape(clean(kind)[:60])}: {word}</text>')
        y += 20
        for start in rows:
            here = [rank for rank in those if start <= rank < start + _SMALL_COLUMNS]
            if not here:
                continue
            parts.append(f'<text x="4" y="{y + 9}" class="dim">{start}</text>')
            end = _NUMBER + _SMALL * min(_SMALL_COLUMNS, ranks[-1] + 1 - start)
            parts.append(f'<line x1="{_NUMBER}" y1="{y + 10.5}" x2="{end}" y2="{y + 10.5}" class="lane"/>')
            parts += [_piece(run, start, y) for run in _alike(here, kind, cells)]
            y += _SMALL + 1
        y += 8
    if len(kinds) > _KINDS:
        parts.append(
            f'<text x="4" y="{y + 12}" class="dim">and {counted(len(kinds) - _KINDS, "more kind")}</text>'
        )
        y += 20
    width = _NUMBER + _SMALL * _SMALL_COLUMNS + 8
    return _svg(width, y, "Which rank said what", parts, "wide")


def _alike(ranks: Sequence[int], kind: str, cells: dict[tuple[str, int | None], Mark]) -> list[list[Mark]]:
    """Runs of neighbouring ranks whose marks look the same; a first failure stands alone."""
    runs: list[list[Mark]] = []
    for rank in ranks:
        mark = cells[kind, rank]
        last = runs[-1][-1] if runs else None
        follows = last is not None and last.rank is not None and last.rank + 1 == rank
        if follows and last is not None and (last.own, last.first) == (mark.own, mark.first):
            runs[-1].append(mark)
        else:
            runs.append([mark])
    return runs


def _piece(run: Sequence[Mark], start: int, y: int) -> str:
    mark, last = run[0], run[-1]
    low, high = mark.rank or 0, last.rank or 0
    who = f"rank {low}" if low == high else f"ranks {low}-{high}"
    title = f"<title>{escape(clean(f'{who}: {mark.text[:120]}'))}</title>"
    name = ("first" if mark.first else "own") if mark.own else "echo"
    x = _NUMBER + _SMALL * (low - start) + 1
    width = _SMALL * len(run) - 2
    if not mark.own:
        return f'<rect x="{x + 1}" y="{y + 2}" width="{width - 2}" height="6" class="{name}">{title}</rect>'
    return f'<rect x="{x}" y="{y}" width="{width}" height="{_SMALL - 1}" class="{name}">{title}</rect>'


def _svg(width: float, height: float, label: str, parts: Sequence[str], kind: str = "") -> str:
    name = f'class="{kind}" ' if kind else ""
    return (
        f'<svg {name}viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
