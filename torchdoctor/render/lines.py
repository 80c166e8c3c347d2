"""Plain lines for people, as ``checks`` and ``findings`` write them: cleaned, wrapped, with a mark."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TextIO

from torchdoctor.render.clean import clean, encodable

INDENT = "    "
_COLORS = {"✗": "31", "!": "33", "·": "36", "✓": "32", "?": "36", "–": "2"}


def write(lines: Iterable[tuple[str, str]], stream: TextIO, color: bool) -> None:
    """Write (mark, text) lines; a mark is one of ✗ ! · ✓ ? –, or empty. Raises OSError as the stream does."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for mark, text in lines:
        line = encodable(text, encoding)
        if mark:
            sign = encodable(mark, encoding)
            line = f"\x1b[{_COLORS[mark]}m{sign}\x1b[0m {line}" if color else f"{sign} {line}"
        stream.write(line.rstrip() + "\n")


def wrap(text: str, width: int, hang: int = 0, indent: str = INDENT) -> Iterator[str]:
    """The text, cleaned, in lines of at most ``width``; all but the first are ``hang`` further in."""
    for line in text.splitlines():
        yield from textwrap.wrap(
            clean(line),
            width,
            initial_indent=indent,
            subsequent_indent=indent + " " * hang,
            break_on_hyphens=False,
        )
