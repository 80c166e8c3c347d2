"""Regular expressions that are compiled at their first use: most inputs need few of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache


@cache
def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, kept for the process."""
    return re.compile(source, flags)


def search(source: str, text: str, *words: str) -> re.Match[str] | None:
    """The first match. A text with none of the words, one of which every match holds, needs no pattern."""
    return pattern(source).search(text) if any(word in text for word in words) else None


_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_REMEMBERED = 2_000  # texts of at most so many characters, and so many of them
_LONG = 400


class Words:
    """Words that are looked for in texts most of which have none, and differ from another in numbers only."""

    def __init__(self, words: Iterable[str]) -> None:
        words = tuple(dict.fromkeys(words))
        self._numbers = tuple(word for word in words if any(map(str.isdigit, word)))
        self._words = tuple(word for word in words if word not in self._numbers)
        self._without: set[bytes] = set()

    def __call__(self, text: str) -> bool:
        """Does the text hold one of them?"""
        if any(word in text for word in self._numbers):
            return True
        shape = text.encode("utf-8", "replace").translate(_DIGITS) if len(text) <= _LONG else b""
        if shape in self._without:
            return False
        if any(word in text for word in self._words):
            return True
        if shape and len(self._without) < _REMEMBERED:
            self._without.add(shape)
        return False


class Patterns(dict[str, re.Pattern[str]]):
    """Patterns by name: ``PATTERNS["bar"].search(text)``."""

    def __init__(self, sources: dict[str, str], flags: int = 0) -> None:
        self._sources = sources
        self._flags = flags

    def __missing__(self, name: str) -> re.Pattern[str]:
        found = self[name] = re.compile(self._sources[name], self._flags)
        return found
