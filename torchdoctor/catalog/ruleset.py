"""The loaded catalog. Rules become objects only when somebody asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from torchdoctor.catalog.rule import Check, Condition, ConditionalFix, Match, Pattern, Rule, RuleText
from torchdoctor.model import FactValue, Fix, Role, Severity, TorchdoctorError

Place = tuple[str, int]  # rule id, number of the match block
Loose = tuple[str, int, Sequence[str], Sequence[str]]  # the same, kinds and types of the events it takes


class UnknownRuleError(TorchdoctorError):
    """A rule id that the catalog does not have; the message names the nearest ones."""


def _frozen(value: Any) -> FactValue:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _conditions(rows: Sequence[Sequence[Any]]) -> tuple[Condition, ...]:
    return tuple(Condition(fact, word, _frozen(constant)) for fact, word, constant in rows)


class RuleSet:
    """All rules, by id, with the prefilter that finds candidates for a text.

    ``literals`` are what match blocks need, :meth:`places` tells which; ``loose`` lists the blocks without
    one, with the events they take, so that no rule is built for others; ``whole`` lists those that are asked
    of the whole text, ``retired`` maps each retired rule, which matches nothing, to those in its place.
    """

    def __init__(self, packs: Sequence[bytes]) -> None:
        self.literals: dict[str, list[list[int]]] = {}  # numbers of rules and of their match blocks
        self.loose: list[Loose] = []
        self.whole: list[Place] = []
        self.retired: dict[str, tuple[str, ...]] = {}
        self._ids: list[str] = []
        self._lines: dict[str, tuple[bytes, bytes]] = {}  # rule id -> index line, text line
        self._rows: dict[str, list[Any]] = {}
        self._rules: dict[str, Rule] = {}
        self._checks: list[str] = []
        for data in packs:
            self.add(data)

    def add(self, data: bytes) -> None:
        """Take in the rules of a further compiled catalog."""
        _, head_line, *lines = data.split(b"\n")
        head = json.loads(head_line)
        ids = head["ids"]
        self._lines.update(zip(ids, zip(lines, lines[len(ids) :], strict=False), strict=False))
        if not self._ids:
            self.literals = head["literals"]
        else:
            first = len(self._ids)
            for literal, places in head["literals"].items():
                known = self.literals.setdefault(literal, [])
                known.extend([first + rule, match] for rule, match in places)
        self._ids += ids
        self.loose.extend((ids[rule], match, kinds, types) for rule, match, kinds, types in head["loose"])
        self.whole.extend((ids[rule], match) for rule, match in head["whole"])
        self._checks.extend(head["checks"])
        self.retired.update((name, tuple(heirs)) for name, heirs in head["retired"].items())

    def places(self, literal: str) -> list[Place]:
        """The match blocks that need the literal; [] for one that none needs."""
        return [(self._ids[rule], match) for rule, match in self.literals.get(literal, ())]

    def _row(self, rule_id: str) -> list[Any] | None:
        row = self._rows.get(rule_id)
        if row is None and rule_id in self._lines:
            row = self._rows[rule_id] = json.loads(self._lines[rule_id][0])
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
        why, fixes, decide_with, references, retired = json.loads(self._lines[rule_id][1])
        return RuleText(
            why,
            tuple(
                ConditionalFix(Fix(fix["do"], fix["run"], fix["risk"]), _conditions(fix["when"]))
                for fix in fixes
            ),
            decide_with,
            tuple(references),
            retired,
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
        matches = tuple(
            Match(
                tuple(
                    Pattern(source, tuple((name, kind) for name, kind in holes), weight)
                    for source, holes, weight in patterns
                ),
                tuple(kinds),
                tuple(types),
                _conditions(where),
            )
            for patterns, kinds, types, where in row[9]
        )
        check = (
            Check(_conditions(row[10][0]), _conditions(row[10][1]), Severity(row[10][2])) if row[10] else None
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
            matches,
            check,
        )
