"""The tables of ``tongues.txt``: words by which people ask, tell and teach, in a dozen languages.

Each table is read when it is first asked for. How a table is written stands at the head of the file.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

_FILE = os.path.join(os.path.dirname(__file__), "tongues.txt")
_INSIDE = frozenset("_():,[")  # marks that no word of a sentence keeps


class Group(NamedTuple):
    """Words that stand for each other: whole ones, and those that are looked for inside the sentence."""

    words: frozenset[str]
    inside: tuple[str, ...]


class Rule(NamedTuple):
    """A word of each group, and none of ``but``, in one sentence."""

    groups: tuple[Group, ...]
    but: frozenset[str]

    def holds(self, sentence: str, words: frozenset[str]) -> bool:
        """Does a sentence, of these words, have one of each group?"""
        return words.isdisjoint(self.but) and all(
            not words.isdisjoint(group.words) or any(part in sentence for part in group.inside)
            for group in self.groups
        )


@cache
def rules(table: str) -> tuple[Rule, ...]:
    """The rules of a table: a line each."""
    return tuple(_rule(line) for line in _table(table, "rules"))


@cache
def words(table: str) -> frozenset[str]:
    """The words of a table, as they are written there."""
    return frozenset(" ".join(_table(table, "words")).split())


@cache
def phrases(table: str) -> tuple[str, ...]:
    """The phrases of a table, in order."""
    return tuple(
        one.strip(" ").replace("\\n", "\n") for line in _table(table, "phrases") for one in line.split("|")
    )


def _rule(line: str) -> Rule:
    line = " ".join(" ".join(words(word[1:])) if word[0] == "$" else word for word in line.split())
    groups, _, but = line.partition(" - ")
    return Rule(tuple(map(_group, groups.split(" + "))), frozenset(but.split()))


def _group(text: str) -> Group:
    every = text.split()
    # scripts without blanks between words, phrases, and what holds a mark
    inside = [
        word for word in every if word[0] > "\u2e80" or (len(word) > 1 and not _INSIDE.isdisjoint(word))
    ]
    return Group(frozenset(every), tuple(word.replace("_", " ") for word in inside))


def _table(name: str, kind: str) -> list[str]:
    return _tables()[f"[{name}: {kind}]"]


@cache
def _tables() -> dict[str, list[str]]:
    """The lines of each table; one that is set in goes on with the line above."""
    tables: dict[str, list[str]] = {}
    table: list[str] = []
    with open(_FILE, encoding="utf-8") as file:
        for line in file:
            text = line.rstrip("\n")
            if text[:1] == "[" and text.endswith((": rules]", ": words]", ": phrases]")):
                table = tables[text] = []
            elif text[:1] == " ":
                table[-1] += text
            elif text and text[0] != "#":
                table.append(text)
    return tables
