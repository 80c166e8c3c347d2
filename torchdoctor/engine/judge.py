"""How a rule stands at each place where it matches: confirmed, possible, unlikely, or ruled out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import Condition, Rule
from torchdoctor.engine.conditions import holds, in_words
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.finding import Finding, Occurrence, quote
from torchdoctor.model import Event, Evidence, Fact, Standing
from torchdoctor.number import count
from torchdoctor.records import replace

_ORDER = {Standing.CONFIRMED: 0, Standing.POSSIBLE: 1, Standing.UNLIKELY: 2}


def judge(found: Iterable[tuple[str, Occurrence]], rules: RuleSet, facts: TextFacts) -> list[Finding]:
    """Findings, one a rule, general rules dropped where one that refines them stands on the same event."""
    by_rule: dict[str, list[Occurrence]] = defaultdict(list)
    for rule_id, occurrence in found:
        with facts.guard(rule_id):
            judged = _judge(rules.rule(rule_id), occurrence, facts)
            if judged is not None:
                by_rule[rule_id].append(judged)
    for rule_id, refining in [(rule_id, rules.rule(rule_id)) for rule_id in list(by_rule)]:
        sure = {item.event.id for item in by_rule[rule_id] if item.standing is Standing.CONFIRMED}
        for general in refining.refines:
            if general in by_rule:
                by_rule[general] = [item for item in by_rule[general] if item.event.id not in sure]
    findings: list[Finding] = []
    for rule_id, items in by_rule.items():
        if items:
            items.sort(key=_goodness)
            findings.append(Finding(rules.rule(rule_id), items))
    _compete(findings)
    return findings


def _goodness(item: Occurrence) -> tuple[bool, int, int, int]:
    return (item.event.recovered, _ORDER[item.standing], item.event.id, -item.weight)


def _judge(rule: Rule, occurrence: Occurrence, facts: TextFacts) -> Occurrence | None:
    evidence = [quote(occurrence.event, occurrence.snippet)]
    missing: list[str] = []
    for condition in rule.rule_out:
        fact = facts.fact(condition.fact, occurrence.event, occurrence.captures)
        told = holds(condition, fact)
        if told is True:
            return None
        if told is None:
            missing.append(in_words(condition, fact))
    doubtful = occurrence.doubtful or occurrence.event.quoted
    standing = Standing.POSSIBLE if doubtful else Standing.CONFIRMED
    confirmed = 0
    for condition in rule.confirm:
        fact = facts.fact(condition.fact, occurrence.event, occurrence.captures)
        told = holds(condition, fact)
        if told is True:
            confirmed += 1
            evidence.append(_as_evidence(condition, fact, occurrence.event, against=False))
        elif told is False:
            standing = Standing.UNLIKELY
            evidence.append(_as_evidence(condition, fact, occurrence.event, against=True))
        else:
            missing.append(in_words(condition, fact))
            if standing is Standing.CONFIRMED:
                standing = Standing.POSSIBLE
    told_own = [
        holds(condition, facts.fact(condition.fact, occurrence.event, occurrence.captures))
        for condition in rule.follows_if
    ]
    return replace(
        occurrence,
        by_itself=False in told_own,
        standing=standing,
        confirmed_by=confirmed,
        evidence=tuple(evidence),
        missing=tuple(dict.fromkeys(missing)),
    )


def _as_evidence(condition: Condition, fact: Fact, event: Event, *, against: bool) -> Evidence:
    file: str | None = None
    line: int | None = None
    if fact.source.startswith("text:"):
        file, _, number = fact.source[len("text:") :].rpartition(":")
        line = count(number)
        if line is None:
            file = None
        elif line == event.line and not fact.name.startswith("event."):
            line = event.message_line or line  # it was read out of the message
    if fact.name.startswith(("event.", "log.")) and isinstance(fact.value, str) and len(fact.value) > 200:
        return Evidence(
            f"{fact.name} {condition.word} {condition.constant}", file, line, event.rank, fact.name, against
        )
    return Evidence(in_words(condition, fact), file, line, event.rank, fact.name, against)


def _compete(findings: list[Finding]) -> None:
    """Where several causes claim the same words of one event, only a fact can confirm one of them."""
    claims: dict[int, list[tuple[Finding, int]]] = defaultdict(list)
    for finding in findings:
        for index, item in enumerate(finding.occurrences):
            if item.standing is Standing.CONFIRMED:
                claims[item.event.id].append((finding, index))
    for group in claims.values():
        if len(group) < 2:
            continue
        for finding, index in group:
            mine = finding.occurrences[index]
            rivals = [
                other.occurrences[place]
                for other, place in group
                if other is not finding
                and not _related(finding.rule, other.rule)
                and _overlap(mine, other.occurrences[place])
            ]
            if any(
                rival.confirmed_by >= mine.confirmed_by and rival.weight >= mine.weight for rival in rivals
            ):
                finding.occurrences[index] = replace(mine, standing=Standing.POSSIBLE)


def _related(one: Rule, other: Rule) -> bool:
    return (
        other.id in one.leads_to
        or one.id in other.leads_to
        or other.id in one.refines
        or one.id in other.refines
        or one.role is not other.role
    )


def _overlap(one: Occurrence, other: Occurrence) -> bool:
    return one.start < other.end and other.start < one.end
