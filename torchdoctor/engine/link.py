"""Chains: which finding brought about which."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.finding import Finding
from torchdoctor.engine.textfacts import related
from torchdoctor.model import Role, Transcript


def consequences(rule_id: str, rules: RuleSet) -> set[str]:
    """All rules that a rule leads to, directly or through consequences that need not stand in the text.

    A cause in between must be found itself to carry the chain on: else nearly everything leads to everything.
    """
    reached: set[str] = set()
    waiting = list(rules.leads_to(rule_id))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            if rules.role(name) is not Role.CAUSE:
                waiting.extend(rules.leads_to(name))
    reached.discard(rule_id)
    return reached


def chains(
    findings: list[Finding],
    rules: RuleSet,
    transcript: Transcript,
    key: Callable[[Finding], tuple[object, ...]],
) -> list[tuple[Finding, list[Finding]]]:
    """Heads in the order of ``key``, each with the findings that follow from it.

    A follows from B when B's rule leads to A's, or when A stands on an exception that wraps or chains one
    on which B stands. Where two lead to each other, the better by ``key`` is the head; of
    consequences the one that was stamped first, since ranks write into one log with delay, else the
    one whose rule names the other.
    """
    ordered, stamped = _by_clock(sorted(findings, key=key))

    def before(one: Finding, other: Finding) -> bool:
        untold = one.role is other.role is Role.CONSEQUENCE and not {one.rule.id, other.rule.id} <= stamped
        named = other.rule.id in rules.leads_to(one.rule.id), one.rule.id in rules.leads_to(other.rule.id)
        if untold and named[0] != named[1]:
            return named[0]
        return ordered.index(one) < ordered.index(other)

    @cache  # a text with one finding asks for none
    def reach(rule_id: str) -> set[str]:
        return consequences(rule_id, rules)

    inner: dict[str, set[int]] = {}
    for finding in ordered:
        behind: set[int] = set()
        for occurrence in finding.occurrences:
            behind.update(event.id for event in related(occurrence.event, transcript))
        inner[finding.rule.id] = behind - finding.events()

    def follows(later: Finding, earlier: Finding) -> bool:
        if later.rule.id in reach(earlier.rule.id) and not later.best.by_itself:
            return True
        return bool(inner[later.rule.id] & earlier.events())

    graph = {
        finding.rule.id: [other for other in ordered if other is not finding and follows(other, finding)]
        for finding in ordered
    }
    under: dict[str, set[str]] = {finding.rule.id: _closure(finding.rule.id, graph) for finding in ordered}
    heads = _heads(ordered, under, before)
    covered = {name for head in heads for name in (head.rule.id, *under[head.rule.id])}
    if any(finding.rule.id not in covered for finding in ordered):  # three that lead round in a circle
        heads = _heads(ordered, under, lambda one, other: ordered.index(one) < ordered.index(other))
    taken = {head.rule.id for head in heads}
    result: list[tuple[Finding, list[Finding]]] = []
    for head in heads:
        members = [f for f in ordered if f.rule.id in under[head.rule.id] and f.rule.id not in taken]
        members.sort(key=lambda finding: finding.first())
        result.append((head, members))
    return result


def _heads(
    ordered: list[Finding], under: dict[str, set[str]], before: Callable[[Finding, Finding], bool]
) -> list[Finding]:
    """Those that follow from nothing, and of those that follow from each other the one before the others."""
    heads: list[Finding] = []
    for finding in ordered:
        above = [
            other for other in ordered if other is not finding and finding.rule.id in under[other.rule.id]
        ]
        mutual = [other for other in above if other.rule.id in under[finding.rule.id]]
        if len(above) == len(mutual) and all(before(finding, other) for other in mutual):
            heads.append(finding)
    return heads


def _by_clock(ordered: list[Finding]) -> tuple[list[Finding], frozenset[str]]:
    """The same order, in which consequences that carry times stand by these, in the places they had; and
    which these are.
    """
    stamps = {
        finding.rule.id: min(times)
        for finding in ordered
        if finding.role is Role.CONSEQUENCE
        and (times := [item.event.time for item in finding.occurrences if item.event.time])
        and len(times) == len(finding.occurrences)
    }
    if len(stamps) < 2 or len({len(time.partition(".")[0]) for time in stamps.values()}) > 1:
        return ordered, frozenset()
    timed = [finding for finding in ordered if finding.rule.id in stamps]
    earlier = iter(sorted(timed, key=lambda finding: stamps[finding.rule.id]))
    return [next(earlier) if finding.rule.id in stamps else finding for finding in ordered], frozenset(stamps)


def _closure(start: str, graph: dict[str, list[Finding]]) -> set[str]:
    reached: set[str] = set()
    waiting = [finding.rule.id for finding in graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(finding.rule.id for finding in graph[name])
    return reached
