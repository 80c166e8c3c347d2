"""The rules whose known messages come nearest to one that no rule knows.

``messages.tsv`` beside the rules holds a line for each message that decided a labelled input: the rule, and
the message's words. Two messages are alike as far as they share words and pairs of neighbours, each weighted
by how few messages have it: the cosine of tf-idf vectors, in which a pair weighs as much as its words.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

MESSAGES = "messages.tsv"
LEAST = 0.4  # below it, what is nearest to failures that no rule knows shares everyday words with them
_MOST_WORDS = 60
# what torch puts before every failed check of its own
_ASSERTED = re.compile(r"INTERNAL ASSERT FAILED at [^\n]{0,300}? please report a bug to PyTorch")
_COMMON = 12  # a word that more than one of so many messages has tells nothing
_FEWEST = 3  # words that two messages share, where the one asked of has as many
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~+@%-]*[/\\][\w./\\~+@%<>=:-]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]{2,}")


class Near(NamedTuple):
    """A rule, the words of its nearest message, and how alike the two are: 0 (nothing) to 1 (all words)."""

    rule: str
    message: str
    likeness: float


def normalised(message: str) -> str:
    """The words of a message in lower case, names taken apart, without paths, numbers and signs."""
    said = _ASSERTED.sub(" ", message[:2_000])
    words = _WORD.findall(_HUMP.sub(" ", _PATH.sub(" ", said)))
    return " ".join(words[:_MOST_WORDS]).lower()


def messages_text(messages: Iterable[tuple[str, str]]) -> str:
    """The file of (rule, message), each message of a rule once."""
    rows = {(rule, words) for rule, message in messages if (words := normalised(message))}
    return "".join(f"{rule}\t{words}\n" for rule, words in sorted(rows))


class _Messages:
    """The messages of a folder: (rule, words), the words apart, and how much each word weighs."""

    def __init__(self, directory: str) -> None:
        try:
            with open(os.path.join(directory, MESSAGES), encoding="utf-8") as file:
                self.rows = [line.rstrip("\n").partition("\t")[::2] for line in file]
        except OSError:
            self.rows = []
        self.split = [words.split(" ") for _, words in self.rows]
        self.seen = Counter(word for words in self.split for word in words)
        self.weight = {word: self._weight(count) for word, count in self.seen.items()}

    def _weight(self, count: float) -> float:
        return math.log(1 + len(self.rows) / count) ** 2

    def length(self, words: list[str]) -> float:
        """The square of a vector's length. Words that no message has are mostly names, and count half."""
        unknown = self._weight(1) / 2
        weight = {word: self.weight.get(word, unknown) for word in words}
        pairs = set(itertools.pairwise(words))
        return sum(weight.values()) + sum(weight[one] + weight[two] for one, two in pairs)


_messages = cache(_Messages)  # a tree of logs asks once for each that no rule knows


def nearest(directory: str, message: str, limit: int = 3, least: float = LEAST) -> list[Near]:
    """The rules nearest to ``message``, the nearest first; none where the folder has no messages."""
    known = _messages(directory)
    weight = known.weight
    words = normalised(message).split(" ")
    asked, pairs = set(words), set(itertools.pairwise(words))
    # what most messages have ("error") makes none a candidate
    telling = {word for word in asked if known.seen[word] * _COMMON < len(known.rows)}
    length = known.length(words)
    fewest = min(_FEWEST, len(asked))
    best: dict[str, Near] = {}
    for (rule, text), parts in zip(known.rows, known.split, strict=True):
        if telling.isdisjoint(parts):
            continue
        shared = asked.intersection(parts)
        if len(shared) < fewest:
            continue
        both = pairs.intersection(itertools.pairwise(parts))
        common = sum(weight[word] for word in shared)
        common += sum(weight[one] + weight[two] for one, two in both)
        near = Near(rule, text, common / math.sqrt(length * known.length(parts)))
        if near.likeness >= least and (rule not in best or near.likeness > best[rule].likeness):
            best[rule] = near
    return sorted(best.values(), key=lambda near: (-near.likeness, near.rule))[:limit]
