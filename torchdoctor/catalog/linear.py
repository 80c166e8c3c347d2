"""Can a regular expression run away? Decided on its parse tree: what cannot be shown to be linear is refused.

Python's ``re`` tries one way after the other to share a text among the parts of a pattern. A part that may
take more or fewer characters has one way only where something must follow that it cannot take itself; else
every length of it is tried with all that stands behind it. Imported only where a rule has a regex.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as names  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as names
    import sre_parse as parser

MAX_SOURCE = 2000
# so many characters of an event are tried: what an unbounded repeat counts for
MAX_TEXT = 4000
# steps from one start: an unbounded repeat beside a part that may be there or not, two of {0,100}
MOST_STEPS = 12 * MAX_TEXT
_DEEPEST = 40
_ENDLESS = float("inf")

# characters beyond Latin-1 that stand for their kind where two classes are compared
_SAMPLES = "\u0131\u017f\u212a\u0416\u0660\u2007\u2028\u2713\u3042\u4e2d\uff21\U0001f600"
_REFUSED = {
    "GROUPREF": "a back-reference",
    "GROUPREF_IGNORE": "a back-reference",
    "GROUPREF_EXISTS": "a condition on a group",
    "ASSERT": "a look-around",
    "ASSERT_NOT": "a look-around",
}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CLASSES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}

Chars = frozenset[str]


class _Refused(Exception):
    """Why the pattern may take more than linear time; the text completes "the regex …"."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the pattern: takes ``least`` to ``most`` of ``chars``, the first of them one of ``first``.

    ``ways`` is in how many ways it can take one text of one length; ``sure`` says that the text alone decides
    how much it takes.
    """

    chars: Chars
    first: Chars
    least: float = 1
    most: float = 1
    ways: float = 1
    sure: bool = False

    @property
    def fixed(self) -> bool:
        return self.least == self.most


def complaint(source: str) -> str:
    """Why the regular expression, which compiles, is refused; "" for one that is linear."""
    if len(source) > MAX_SOURCE:
        return f"the regex is longer than {MAX_SOURCE} characters"
    try:
        tree = parser.parse(source)
        parts = _Reader(tree).parts(tree, 0)
        if _begins_endless(parts) and not _anchored(tree):
            raise _Refused(
                "begins with a repeat without a bound, of which every place is tried as a start; put \\b or "
                "a text before it"
            )
        if _steps(_without_end(parts)) > MOST_STEPS:
            raise _Refused(
                "has parts that can share one text in too many ways; put a character that the first cannot "
                "take between two repeats, or bound them, as [^:]{0,80}"
            )
    except _Refused as error:
        return f"the regex {error}"
    except (RecursionError, OverflowError, re.error) as error:
        return f"the regex cannot be examined: {error}"
    return ""


def _begins_endless(parts: Sequence[_Part]) -> bool:
    for part in parts:
        if part.most == _ENDLESS:
            return True
        if part.least:
            return False
    return False


def _anchored(tree: Any) -> bool:
    return bool(len(tree)) and str(tree[0][0]) == "AT"


class _Reader:
    """Turns the parse tree into parts. Where it cannot be exact, a part takes more than the pattern does."""

    def __init__(self, tree: Any) -> None:
        codes = {code + near for code in _codes(tree) for near in (-1, 0, 1)}
        marks = {chr(code) for code in codes if 0 <= code <= sys.maxunicode}
        # two classes that overlap share one of these
        self.every: Chars = frozenset({*map(chr, range(256)), *_SAMPLES, *marks})

    def parts(self, tree: Any, depth: int) -> list[_Part]:
        """The pieces of a sequence in order. Raises _Refused."""
        if depth > _DEEPEST:
            raise _Refused(f"is nested more than {_DEEPEST} levels deep")
        found: list[_Part] = []
        for operation, value in tree:
            name = str(operation)
            if name in _REFUSED:
                raise _Refused(f"has {_REFUSED[name]}, which is not linear")
            if name == "AT":
                continue
            if name == "SUBPATTERN":
                found += self.parts(value[-1], depth + 1)
            elif name == "ATOMIC_GROUP":
                found += self.parts(value, depth + 1)
            elif name == "BRANCH":
                found.append(_branch([self.parts(item, depth + 1) for item in value[1]]))
            elif name in _REPEATS:
                least, most, body = value
                bound = _ENDLESS if most is names.MAXREPEAT else most
                found += _repeated(self.parts(body, depth + 1), least, bound)
            else:
                chars = self.chars(name, value)
                found.append(_Part(chars, chars))
        return found

    def chars(self, name: str, value: Any) -> Chars:
        """The characters that one element takes, of those that tell the pattern's classes apart."""
        if name == "ANY":
            return self.every
        if name == "LITERAL":
            return _any_case({chr(value)})
        if name == "NOT_LITERAL":
            return self.every - {chr(value)}
        if name == "IN":
            taken = {char for item in value for char in self._item(*item)}
            return self.every - taken if str(value[0][0]) == "NEGATE" else _any_case(taken)
        raise _Refused(f"has a part that is not known here ({name})")

    def _item(self, operation: Any, value: Any) -> Iterator[str]:
        name = str(operation)
        if name == "LITERAL":
            yield chr(value)
        elif name == "RANGE":
            yield from (char for char in self.every if value[0] <= ord(char) <= value[1])
        elif name == "CATEGORY":
            kind = str(value).removeprefix("CATEGORY_").removeprefix("UNI_")
            pattern = _CLASSES[kind.removeprefix("NOT_")]
            pattern = pattern.upper() if kind.startswith("NOT_") else pattern
            yield from filter(re.compile(pattern).match, self.every)
        elif name != "NEGATE":
            raise _Refused(f"has a class that is not known here ({name})")


def _codes(tree: Any) -> Iterator[int]:
    """Code points that the pattern names, as characters and as ends of ranges."""
    for item in tree:
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]) in ("LITERAL", "NOT_LITERAL"):
            yield item[1]
        elif isinstance(item, tuple) and len(item) == 2 and str(item[0]) == "RANGE":
            yield from item[1]
        elif isinstance(item, (tuple, list, parser.SubPattern)):
            yield from _codes(item)


def _any_case(chars: set[str]) -> Chars:
    # flags may hold for a part only, so they are taken to hold everywhere
    return frozenset({form for char in chars for form in (char, char.lower(), char.upper())})


def _repeated(body: list[_Part], least: int, most: float) -> list[_Part]:
    if most == 0 or not body:
        return []
    if least == most == 1:
        return body
    if len(body) == 1 and body[0].fixed and body[0].most == body[0].ways == 1:
        return [_Part(body[0].chars, body[0].first, least, most)]
    # what follows the body may be the body once more
    twice = _ways([*body, *body]) if most > 1 else _ways(body)
    if most > MAX_TEXT and (twice > 1 or not any(part.least for part in body)):
        raise _Refused("repeats without a bound what can take one text in more than one way")
    return [
        _Part(
            frozenset().union(*(part.chars for part in body)),
            _first(body),
            least * sum(part.least for part in body),
            most * sum(part.most for part in body),
            twice ** (min(most, MAX_TEXT) / 2 if most > 1 else 1),
        )
    ]


def _branch(choices: list[list[_Part]]) -> _Part:
    ways = [_ways(choice) for choice in choices]
    exclusive = all(_exclusive(one, other) for at, one in enumerate(choices) for other in choices[at + 1 :])
    return _Part(
        frozenset().union(*(part.chars for choice in choices for part in choice)),
        frozenset().union(*map(_first, choices)),
        min(sum(part.least for part in choice) for choice in choices),
        max(sum(part.most for part in choice) for choice in choices),
        max(ways) if exclusive else sum(ways),
        exclusive and all(part.fixed or part.sure for choice in choices for part in choice),
    )


def _first(parts: Sequence[_Part]) -> Chars:
    found: set[str] = set()
    for part in parts:
        found |= part.first
        if part.least:
            break
    return frozenset(found)


def _exclusive(one: Sequence[_Part], other: Sequence[_Part]) -> bool:
    """Can no text begin with both alternatives: do they differ at a place that both reach in one way?"""
    return any(not mine & theirs for mine, theirs in zip(_places(one), _places(other), strict=False))


def _places(parts: Sequence[_Part]) -> Iterator[Chars]:
    """What may stand at the first, second, … place, as far as each has one number."""
    for part in parts:
        if not part.least:
            return
        if not part.fixed or part.chars != part.first:
            yield part.first
            return
        yield from [part.chars] * int(min(part.least, 64))


def _hold(part: _Part, behind: Sequence[_Part]) -> float:
    """What it costs per length of a part to see that the next parts do not fit there; 0 when they may.

    They do not where something must follow that the part cannot take. Before that may stand what is left out
    then, and a run of fixed length of the part's own characters, which is compared each time as far as it
    repeats its beginning. At the pattern's end nothing is left to be shared.
    """
    run: list[_Part] = []
    for other in behind:
        if part.chars & other.first:
            if not other.fixed:
                return 0
            run.append(other)
        elif other.least:
            break
    return 1 + sum(one.least for one in run if one.chars & run[0].first)


def _ways(parts: Sequence[_Part]) -> float:
    """In how many ways the sequence can share one text among its parts, at most."""
    total = 1.0
    for at, part in enumerate(parts):
        total *= part.ways
        if not part.fixed and not part.sure and not _hold(part, parts[at + 1 :]):
            total *= min(part.most - part.least + 1, MAX_TEXT)
    return total


def _without_end(parts: list[_Part]) -> list[_Part]:
    """The sequence without what it may take beyond its least at the end: nothing behind it can fail then."""
    found = list(parts)
    while found and not found[-1].fixed and found[-1].chars == found[-1].first and found[-1].ways == 1:
        last = found.pop()
        if last.least:
            found.append(_Part(last.chars, last.first, last.least, last.least))
    return found


def _steps(parts: Sequence[_Part]) -> float:
    """How many comparisons a try of the sequence at one place takes, at most."""
    steps = 1.0
    for at in reversed(range(len(parts))):
        part = parts[at]
        length = min(part.most, MAX_TEXT)
        hold = _hold(part, parts[at + 1 :])
        if part.fixed or part.sure:
            steps += length
        elif hold:
            steps += length * (1 + hold)
        else:
            steps = length + min(part.most - part.least + 1, MAX_TEXT) * steps
        steps *= part.ways
    return steps
