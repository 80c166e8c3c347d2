"""The loaded catalog. Rules become objects only when somebody asks for them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Any

from torchdoctor.catalog.rule import (
    Check,
    Condition,
    ConditionalFix,
    Match,
    Matches,
    Pattern,
    Rule,
    RuleText,
)
from torchdoctor.model import FactValue, Fix, Role, Severity, TorchdoctorError

# what parts the prefilter: the words by which literals are grouped, and the groups; the literals of a group;
# a literal and its places. All count as white space, which is folded in a literal, so that none holds one.
GROUP, ENTRY, PLACES = "\t", "\x1f", "\x1e"

Place = tuple[str, int]  # rule id, number of the match block
Numbers = tuple[int, int]  # the same, the rule as its number in the catalog
Loose = tuple[str, int, Sequence[str], Sequence[str]]  # a place, kinds and types of the events it takes


class UnknownRuleError(TorchdoctorError):
    """A rule id that the catalog does not have; the message names the nearest ones."""


def _frozen(value: Any) -> FactValue:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def word_of(literal: str) -> str:
    """The longest word of a literal with white space on both sides, so that a text which holds the literal
    has it as a word of its own; "" where the literal has none."""
    return max(literal.split(" ")[1:-1], key=len, default="")


def _built(row: Sequence[Any]) -> Match:
    patterns, kinds, types, where, shared = row
    return Match(
        tuple(
            Pattern(source, tuple((name, kind) for name, kind in holes), weight, *reach)
            for source, holes, weight, *reach in patterns
        ),
        tuple(kinds),
        tuple(types),
        _conditions(where),
        shared,
    )


def _conditions(rows: Sequence[Sequence[Any]]) -> tuple[Condition, ...]:
    return tuple(Condition(fact, word, _frozen(constant)) for fact, word, constant in rows)


class RuleSet:
    """All rules, by id, with the prefilter that finds candidates for a text.

    :meth:`literals` are what match blocks need, :meth:`places` tells which blocks; ``loose`` lists the blocks
    without one, with the events they take, so that no rule is built for others;
    ``retired`` maps each retired rule, which matches nothing, to its heirs.
    """

    def __init__(self, packs: Sequence[bytes]) -> None:
        self.loose: list[Loose] = []
        self.retired: dict[str, tuple[str, ...]] = {}
        self._ids: list[str] = []
        self._groups: list[
            tuple[dict[str, bytes], int]
        ] = []  # of each pack by word, number of its first rule
        self._read: dict[str, dict[str, list[Numbers]]] = {}  # word -> literals, of the groups that were read
        self._lines: dict[str, tuple[bytes, slice, slice]] = {}  # rule id -> catalog, its index and text line
        self._rows: dict[str, list[Any]] = {}
        self._rules: dict[str, Rule] = {}
        self._checks: list[str] = []
        for data in packs:
            self.add(data)

    def add(self, data: bytes) -> None:
        """Take in the rules of a further compiled catalog."""
        ends = [data.index(b"\n")]
        for _ in range(3):
            ends.append(data.index(b"\n", ends[-1] + 1))
        head = json.loads(data[ends[0] + 1 : ends[1]])
        ids, lengths = head["ids"], head["lengths"]
        starts = accumulate((length + 1 for length in lengths), initial=ends[3] + 1)
        lines = [slice(start, start + length) for start, length in zip(starts, lengths, strict=False)]
        self._lines.update(zip(ids, zip(repeat(data), lines, lines[len(ids) :], strict=False), strict=False))
        self._read.clear()
        words = data[ends[1] + 1 : ends[2]].decode().split(GROUP)
        groups = data[ends[2] + 1 : ends[3]].split(GROUP.encode())
        self._groups.append((dict(zip(words, groups, strict=True)), len(self._ids)))
        self._ids += ids
        self.loose.extend((ids[rule], match, kinds, types) for rule, match, kinds, types in head["loose"])
        self._checks.extend(head["checks"])
        self.retired.update((name, tuple(heirs)) for name, heirs in head["retired"].items())

    def literals(self, words: Container[str] | None = None) -> Iterator[str]:
        """What match blocks need, each once. Given all that white space parts in a text, only what may stand
        in it."""
        for word in dict.fromkeys(word for groups, _ in self._groups for word in groups):
            if words is None or not word or word in words:
                yield from self._group(word)

    def places(self, literal: str) -> Sequence[Place]:
        """The match blocks that need the literal; none for one that none needs."""
        return [(self._ids[rule], match) for rule, match in self._group(word_of(literal)).get(literal, ())]

    def order(self, literal: str) -> Numbers:
        """Where the catalog first names a literal of its own."""
        return self._group(word_of(literal))[literal][0]

    def _group(self, word: str) -> dict[str, list[Numbers]]:
        """The literals that have the word, with their places."""
        known = self._read.get(word)
        if known is None:
            known = self._read[word] = {}
            for groups, first in self._groups:
                entries = groups.get(word, b"").decode()
                for entry in filter(None, entries.split(ENTRY)):
                    literal, _, places = entry.partition(PLACES)
                    own = known.setdefault(literal, [])
                    for place in places.split():
                        rule, _, match = place.partition(".")
                        own.append((first + int(rule), int(match)))
        return known

    def _row(self, rule_id: str) -> list[Any] | None:
        row = self._rows.get(rule_id)
        if row is None and rule_id in self._lines:
            data, index, _ = self._lines[rule_id]
            row = self._rows[rule_id] = json.loads(data[index])
        return row

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, rule_id: str) -> bool:
        return rule_id in self._lines

    def ids(self) -> tuple[str, ...]:
        """All rule ids, in the catalog's order."""
        return tuple(self._lines)

    def rules(self) -> Iterator[Rule]:
        for rule_id in self._lines:
            yield self.rule(rule_id)

    def rule(self, rule_id: str) -> Rule:
        """The rule. Raises UnknownRuleError."""
        rule = self._rules.get(rule_id)
        if rule is None:
            rule = self._rules[rule_id] = self._build(rule_id)
        return rule

    def leads_to(self, rule_id: str) -> Sequence[str]:
        """Ids of the direct consequences, groups expanded; () for an unknown id."""
        row = self._row(rule_id)
        return row[5] if row else ()

    def role(self, rule_id: str) -> Role:
        """The rule's role; CAUSE for an unknown id."""
        row = self._row(rule_id)
        return Role(row[3]) if row else Role.CAUSE

    def checks(self) -> tuple[str, ...]:
        """Ids of the rules that have an environment side."""
        return tuple(self._checks)

    def text(self, rule_id: str) -> RuleText:
        """The words of the rule. Raises UnknownRuleError."""
        if rule_id not in self._lines:
            raise self._unknown(rule_id)
        data, _, words = self._lines[rule_id]
        why, fixes, decide_with, references, retired, more, note, when = json.loads(data[words])
        return RuleText(
            why,
            tuple(
                ConditionalFix(
                    Fix(fix["do"], fix["run"], fix["risk"]),
                    _conditions(fix["when"]),
                    tuple(fix["for"]),
                    tuple(fix["not_for"]),
                )
                for fix in fixes
            ),
            decide_with,
            tuple(references),
            retired,
            more,
            note,
            _conditions(when),
        )

    def _unknown(self, rule_id: str) -> UnknownRuleError:
        from difflib import get_close_matches

        near = get_close_matches(rule_id, self._lines, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `torchdoctor rules list` shows all"
        return UnknownRuleError(f"no rule {rule_id!r}{hint}")

    def _build(self, rule_id: str) -> Rule:
        row = self._row(rule_id)
        if row is None:
            raise self._unknown(rule_id)
        check = (
            Check(_conditions(row[11][0]), _conditions(row[11][1]), Severity(row[11][2])) if row[11] else None
        )
        return Rule(
            row[0],
            row[1],
            Severity(row[2]),
            Role(row[3]),
            row[4],
            tuple(row[5]),
            tuple(row[6]),
            _conditions(row[7]),
            _conditions(row[8]),
            _conditions(row[9]),
            Matches(row[10], _built),
            check,
        )
