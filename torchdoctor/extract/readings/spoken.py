"""What people say of a program: that it hangs, works, is slow, needs more memory, in a dozen languages.

A reading asks for a thing by its name and gets a pattern. How the tables are written stands at the head of
``spoken.txt``.
"""

from __future__ import annotations

import os
import re
from functools import cache

_FILE = os.path.join(os.path.dirname(__file__), "spoken.txt")
_FILLED = r"[^.\n]{0,40}?"


@cache
def says(thing: str) -> re.Pattern[str]:
    """The pattern of a thing, in whatever letters it is written."""
    return re.compile(source(thing), re.IGNORECASE)


@cache
def source(thing: str) -> str:
    """The pattern's text, to be part of another one; it has no groups."""
    ways = sorted(_tables()[thing], key=len, reverse=True)
    spaced = "|".join(_way(one) for one in ways if max(one) < "\u2e80")
    joined = "|".join(re.escape(one) for one in ways if max(one) > "\u2e80")
    return rf"(?:(?<![\w-])(?:{spaced})(?![\w-])|{joined})" if joined else rf"(?<![\w-])(?:{spaced})(?![\w-])"


def _way(text: str) -> str:
    escaped = re.escape(text).replace(r"\.\.\.", _FILLED).replace(r"\ ", r"\s+").replace(r"\*", r"\w*")
    return escaped.replace("'", "['\u2019]")


@cache
def _tables() -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    table: list[str] = []
    with open(_FILE, encoding="utf-8") as file:
        for line in file:
            text = line.strip()
            if text[:1] == "[":
                name = text.strip("[]")
                if name in tables:
                    raise ValueError(f"{_FILE}: [{name}] stands there twice; the first would be lost")
                table = tables[name] = []
            elif text and text[0] != "#":
                table.extend(text.split("|"))
    return tables
