"""Regular expressions that are compiled at their first use: most inputs need few of them."""

from __future__ import annotations

import re
from functools import cache


@cache
def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, kept for the process."""
    return re.compile(source, flags)


def search(source: str, text: str, *words: str) -> re.Match[str] | None:
    """The first match. A text with none of the words, one of which every match holds, needs no pattern."""
    return pattern(source).search(text) if any(word in text for word in words) else None


class Patterns(dict[str, re.Pattern[str]]):
    """Patterns by name: ``PATTERNS["bar"].search(text)``."""

    def __init__(self, sources: dict[str, str], flags: int = 0) -> None:
        self._sources = sources
        self._flags = flags

    def __missing__(self, name: str) -> re.Pattern[str]:
        found = self[name] = re.compile(self._sources[name], self._flags)
        return found
