"""What a rule is once its file has been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchdoctor.model import FactValue, Fix, Record, Role, Severity
from torchdoctor.records import record

WORDS = (
    "is",
    "in",
    "contains",
    "contains_any",
    "lacks",
    "at_least",
    "below",
    "matches_version",
    "known",
    "absent",
)


@record(frozen=True, slots=True)
class Condition(Record):
    """One fact, one word, one constant."""

    fact: str
    word: str
    constant: FactValue


@record(frozen=True, slots=True)
class Pattern(Record):
    """A template ready for use: source of the regular expression and the types of its named holes.

    ``reach`` is how many characters of an event are tried; 0 for all, as a template's holes are bounded.
    """

    pattern: str
    holes: tuple[tuple[str, str], ...]
    weight: int  # characters of literal text
    reach: int = 0


@record(frozen=True, slots=True)
class Match(Record):
    """One way in which a cause shows in a text. All patterns must match within one event.

    ``shared``: other causes print the same words, so they never confirm this one.
    """

    patterns: tuple[Pattern, ...]
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    where: tuple[Condition, ...]
    shared: bool


class Matches:
    """The match blocks of a rule, in order. Each is built of its row when it is asked for: of a rule with
    dozens of them mostly one is tried."""

    def __init__(self, rows: Sequence[Any], build: Callable[[Any], Match]) -> None:
        self._rows = rows
        self._build = build
        self._built: dict[int, Match] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Match]:
        return map(self.__getitem__, range(len(self._rows)))

    def __getitem__(self, number: int) -> Match:
        found = self._built.get(number)
        if found is None:
            found = self._built[number] = self._build(self._rows[number])
        return found


@record(frozen=True, slots=True)
class Check(Record):
    """The environment side of a rule: it fails when all of ``fail_if`` hold."""

    applies_if: tuple[Condition, ...]
    fail_if: tuple[Condition, ...]
    severity: Severity


@record(frozen=True, slots=True)
class Rule(Record):
    """What the engine needs of a rule to match and judge; the words for people are in RuleText."""

    id: str
    family: str
    severity: Severity
    role: Role
    title: str
    leads_to: tuple[str, ...]
    refines: tuple[str, ...]
    confirm: tuple[Condition, ...]
    rule_out: tuple[Condition, ...]
    follows_if: tuple[Condition, ...]
    matches: Matches
    check: Check | None


@record(frozen=True, slots=True)
class ConditionalFix(Record):
    """A fix, the conditions under which it is the right one, and for whom: tags of ``context_tags``."""

    fix: Fix
    when: tuple[Condition, ...]
    wanted: tuple[str, ...] = ()  # the key ``for``
    not_for: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class RuleText(Record):
    """What a rule says to people. ``retired`` tells since when and why it matches nothing any more.

    ``why`` has at most 60 words, ``more`` what goes beyond. ``decide_with`` is a command, ``decide_note``
    prose, ``decide_when`` the conditions under which it decides anything.
    """

    why: str
    fixes: tuple[ConditionalFix, ...]
    decide_with: str | None
    references: tuple[str, ...]
    retired: str | None = None
    more: str | None = None
    decide_note: str | None = None
    decide_when: tuple[Condition, ...] = ()
