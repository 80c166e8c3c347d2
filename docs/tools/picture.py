"""A terminal as an SVG picture: text with the escape sequences of its colours, drawn on light or dark."""

from __future__ import annotations

import re
from html import escape

from torchdoctor.render.styled import cells

# background, text, and the colours of ECMA-48 with enough contrast on that background
_NAMES = ("31", "32", "33", "34", "36")  # red, green, yellow, blue, cyan
SHADES = {
    "light": ("#ffffff", "#1f2328", ("#cf222e", "#116329", "#7d4e00", "#0550ae", "#1b7c83")),
    "dark": ("#0d1117", "#e6edf3", ("#ff7b72", "#3fb950", "#d29922", "#79c0ff", "#56d4dd")),
}
_WIDE, _HIGH, _EDGE = 7.8, 18, 14
_CODES = re.compile(r"\x1b\[([\d;]*)m")


def drawn(call: str, text: str, shade: str) -> str:
    """The call and its output as a picture without script, fonts or addresses."""
    background, ink, inks = SHADES[shade]
    colours = dict(zip(_NAMES, inks, strict=True))
    lines = [f"$ {call}", "", *text.rstrip().splitlines()]
    columns = max(cells(_CODES.sub("", line)) for line in lines)
    width, height = round(columns * _WIDE) + 2 * _EDGE, len(lines) * _HIGH + 2 * _EDGE
    rows = [
        f'<text y="{_EDGE + 13 + number * _HIGH}">{"".join(_runs(line, colours))}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" font-size="13" fill="{ink}" '
            'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace">',
            f"<title>{escape(call)}, and what it prints</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{background}" stroke="{ink}" '
            'stroke-opacity=".2"/>',
            *rows,
            "</svg>\n",
        ]
    )


def _runs(line: str, colours: dict[str, str]) -> list[str]:
    """Each run of a line in its style, at its cell, so that no font moves it."""
    made, column, style = [], 0, ""
    for number, part in enumerate(_CODES.split(line)):
        if number % 2:
            style = part
            continue
        text = part.lstrip(" ")
        column += len(part) - len(text)
        if text:
            codes = style.split(";")
            fill = next((f' fill="{colours[code]}"' for code in codes if code in colours), "")
            weight = ' font-weight="bold"' if "1" in codes else ""
            faint = ' fill-opacity=".65"' if "2" in codes else ""
            made.append(
                f'<tspan x="{_EDGE + column * _WIDE:g}" textLength="{cells(text.rstrip()) * _WIDE:g}"'
                f"{fill}{weight}{faint}>{escape(text.rstrip(), quote=False)}</tspan>"
            )
            column += cells(text)
    return made
