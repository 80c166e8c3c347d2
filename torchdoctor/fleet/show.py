"""Statistics for people, for programs, and as one HTML page with charts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from torchdoctor.fleet.failure import monday
from torchdoctor.fleet.stats import Count, Stats
from torchdoctor.model import counted
from torchdoctor.render.clean import clean
from torchdoctor.render.page import page, safe

SCHEMA = "torchdoctor.stats/1"
TOP = 10
_KINDS = {
    "causes": "Causes",
    "nodes": "Nodes that failed first",
    "gpus": "GPUs",
    "ranks": "Ranks that failed first",
    "frames": "Lines of users' code",
}
_WEEKS = 26  # in a chart, the last ones
_BAR, _GAP, _HEIGHT = 22, 6, 120


def to_json(stats: Stats) -> str:
    """All of it, one object. Weeks are named by their Mondays."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "outcomes": dict(stats.outcomes),
        "failures": stats.failures,
        "undated": stats.undated,
        "weeks": _weeks(stats.weeks),
    }
    for kind in _KINDS:
        value[kind] = [
            {
                "name": row.name, "title": row.title or None, "count": row.count, "weeks": _weeks(row.weeks),
                "new": row.new, "expected": row.expected, "odd": row.odd,
            }
            for row in getattr(stats, kind)
        ]  # fmt: skip
    value["notes"] = list(stats.notes)
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _weeks(weeks: Sequence[tuple[int, int]]) -> dict[str, int]:
    return {monday(week): count for week, count in weeks}


def to_text(stats: Stats, width: int, top: int = TOP) -> Iterator[str]:
    """Lines of at most ``width`` characters: the last week and the one before beside each sum."""
    yield _headline(stats)
    weeks = [week for week, _ in stats.weeks]
    last = weeks[-1] if weeks else None
    new = [row for row in stats.causes if row.new]
    if last is not None and len(weeks) > 1:
        yield ""
        yield f"New in the week of {monday(last)}: " + (
            ", ".join(f"{row.name} ({row.count:,})" for row in new[:top]) or "no cause"
        )
    for words in _odd(stats):
        yield f"! {words}"
    for kind, title in _KINDS.items():
        yield from _table(title, getattr(stats, kind), last, width, top)
    if stats.notes:
        yield from ("", *stats.notes)


def _headline(stats: Stats) -> str:
    reports = sum(count for _, count in stats.outcomes)
    parts = ", ".join(f"{count:,} {outcome}" for outcome, count in stats.outcomes)
    span = ""
    if stats.weeks:
        first, last = stats.weeks[0][0], stats.weeks[-1][0]
        span = (
            f"; weeks of {monday(first)} to {monday(last)}" if first != last else f"; week of {monday(last)}"
        )
    undated = f"; {stats.undated:,} without a date" if stats.undated else ""
    return f"{counted(reports, 'report')}: {parts}{span}{undated}"


def _odd(stats: Stats) -> Iterator[str]:
    for row in stats.nodes:
        if row.odd:
            yield (
                f"{row.name} failed first {counted(row.count, 'time')}, where {row.expected:.1f} would be "
                "expected: test it (torchdoctor gate), or leave it out"
            )


def _table(title: str, rows: Sequence[Count], last: int | None, width: int, top: int) -> Iterator[str]:
    if not rows:
        return
    room = max(20, width - 38)
    heads = (monday(last), monday(last - 1)) if last is not None else ("", "")
    yield ""
    yield f"{title:<{room + 2}} {'failures':>9} {heads[0]:>10} {heads[1]:>10}".rstrip()
    for row in rows[:top]:
        weeks = dict(row.weeks)
        figures = ("", "") if last is None else (f"{weeks.get(last, 0):,}", f"{weeks.get(last - 1, 0):,}")
        name = clean(row.name) + (f"  {clean(row.title)}" if row.title else "")
        name = name if len(name) <= room else name[: room - 1] + "…"
        new = " new" if row.new else ""
        yield f"  {name:<{room}} {row.count:>9,} {figures[0]:>10} {figures[1]:>10}{new}".rstrip()
    if len(rows) > top:
        yield f"  and {len(rows) - top:,} more"


def to_html(stats: Stats, top: int = TOP) -> str:
    """One page: failures by week, then a table of each kind with a bar for each row. Loads nothing."""
    weeks = range(stats.weeks[-1][0] - _WEEKS + 1, stats.weeks[-1][0] + 1) if stats.weeks else range(0)
    weeks = range(max(weeks.start, stats.weeks[0][0]), weeks.stop) if stats.weeks else weeks
    body = [f"<h1>{escape(_headline(stats))}</h1>"]
    if stats.weeks:
        body.append(f"<h2>Failures by week</h2>{_columns(dict(stats.weeks), weeks)}")
    body += [f'<p><span class="mark warn">!</span>{safe(words)}</p>' for words in _odd(stats)]
    for kind, title in _KINDS.items():
        rows: Sequence[Count] = getattr(stats, kind)
        if rows:
            cells = "".join(_row(row, rows[0].count, weeks) for row in rows[:top])
            body.append(f"<h2>{title}</h2><table>{cells}</table>")
            if len(rows) > top:
                body.append(f'<p class="dim">and {len(rows) - top:,} more</p>')
    body += [f'<p class="dim">{safe(note)}</p>' for note in stats.notes]
    return page("Failures", "\n".join(body))


def _row(row: Count, most: int, weeks: range) -> str:
    known = dict(row.weeks)
    peak = max(known.values(), default=1)
    line = "".join(
        f'<rect x="{number * 5}" y="{16 - round(14 * known[week] / peak)}" width="4" '
        f'height="{round(14 * known[week] / peak)}" fill="currentColor"/>'
        for number, week in enumerate(weeks) if week in known
    )  # fmt: skip
    spark = f'<svg width="{max(1, len(weeks)) * 5}" height="16" role="img">{line}</svg>' if line else ""
    wide = max(1, round(160 * row.count / most))
    bar = f'<svg width="160" height="12"><rect width="{wide}" height="12" fill="currentColor"/></svg>'
    new = ' <span class="mark warn">new</span>' if row.new else ""
    title = f'<br><span class="dim">{safe(row.title)}</span>' if row.title else ""
    return (
        f"<tr><td>{safe(row.name)}{new}{title}</td><td>{row.count:,}</td><td>{bar}</td><td>{spark}</td></tr>"
    )


def _columns(counts: dict[int, int], weeks: range) -> str:
    most = max(counts.values())
    parts = []
    for number, week in enumerate(weeks):
        height = round(_HEIGHT * counts.get(week, 0) / most)
        x = number * (_BAR + _GAP)
        told = f"week of {monday(week)}: {counts.get(week, 0):,}"
        parts.append(
            f'<rect x="{x}" y="{_HEIGHT - height + 4}" width="{_BAR}" height="{height}" fill="currentColor">'
            f"<title>{told}</title></rect>"
        )
    width = len(weeks) * (_BAR + _GAP)
    ends = f"{monday(weeks[0])} to {monday(weeks[-1])}, at most {most:,} a week"
    svg = f'<svg width="{width}" height="{_HEIGHT + 6}" role="img" aria-label="{ends}">{"".join(parts)}</svg>'
    return f'<div class="draw">{svg}</div><p class="dim">{ends}</p>'
