"""The page of results: bars and lines as SVG, on a page that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

_HEAD = (
    '<!doctype html><meta charset="utf-8"><title>torchdoctor: benchmarks</title><style>'
    ":root{color-scheme:light dark}body{font:14px sans-serif;max-width:820px;margin:2em auto;padding:0 1em}"
    "svg{font-size:13px;fill:currentColor;max-width:100%}rect,circle{fill:#4a7ebb}"
    "line,polyline{stroke:currentColor;fill:none}polyline{stroke:#4a7ebb;stroke-width:2}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:2px 12px 2px 0;vertical-align:top}"
    "</style><h1>Benchmarks</h1>"
)


def page(about: Iterable[str], parts: Iterable[str]) -> str:
    """Paragraphs, then the parts."""
    return f"{_HEAD}{''.join(f'<p>{escape(text)}</p>' for text in about)}{''.join(parts)}\n"


def bars(title: str, rows: Iterable[tuple[str, float, str]]) -> str:
    """Horizontal bars with their figures: (name, value, the figure in words)."""
    rows = list(rows)
    most = max((value for _, value, _ in rows), default=1) or 1
    parts = [
        f'<text x="0" y="{at * 24 + 15}">{escape(name)}</text><rect x="280" y="{at * 24 + 3}" height="16" '
        f'width="{320 * value / most:.1f}"/><text x="{286 + 320 * value / most:.1f}" y="{at * 24 + 15}">'
        f"{escape(words)}</text>"
        for at, (name, value, words) in enumerate(rows)
    ]
    return (
        f'<h2>{escape(title)}</h2><svg width="800" height="{24 * len(rows)}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{"".join(parts)}</svg>'
    )


def line(title: str, points: Sequence[tuple[float, float]], unit: str, slope: float) -> str:
    """Seconds over a size, both axes logarithmic, with the fitted slope."""
    xs, ys = ([math.log(point[axis]) for point in points] for axis in (0, 1))

    def place(value: float, values: list[float], length: float) -> float:
        return length * (value - min(values)) / ((max(values) - min(values)) or 1)

    at = [(60 + place(x, xs, 600), 170 - place(y, ys, 140)) for x, y in zip(xs, ys, strict=True)]
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/><text x="{x - 16:.1f}" y="{y - 9:.1f}">{seconds:.2f} s'
        f'</text><text x="{x - 16:.1f}" y="192">{size:g}</text>'
        for (x, y), (size, seconds) in zip(at, points, strict=True)
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    return (
        f"<h2>{escape(title)}</h2><p>time grows as {escape(unit)} to the power of {slope:.2f}</p>"
        f'<svg width="760" height="200" role="img"><line x1="50" y1="176" x2="700" y2="176"/>'
        f'<polyline points="{path}"/>{marks}<text x="705" y="192">{escape(unit)}</text></svg>'
    )


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of words below their headings."""
    top = "".join(f"<th>{escape(word)}</th>" for word in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{top}</tr>{body}</table>"


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The power with which the second values grow with the first: least squares of the logarithms."""
    xs, ys = ([math.log(point[axis]) for point in points] for axis in (0, 1))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
