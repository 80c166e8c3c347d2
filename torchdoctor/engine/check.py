"""The rules' environment side: what will fail on this machine before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import Check, Condition, Rule
from torchdoctor.engine import commands, surroundings
from torchdoctor.engine.conditions import every, holds, in_words
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.wording import asked, filled
from torchdoctor.model import (
    VERDICT_ORDER,
    CheckResult,
    Evidence,
    Fact,
    Fix,
    NotChecked,
    Outcome,
    Report,
    Severity,
    Verdict,
)
from torchdoctor.probes.source import waits
from torchdoctor.records import replace

_VERDICTS = {Severity.FATAL: Verdict.FAIL, Severity.WARNING: Verdict.WARN, Severity.INFO: Verdict.PASS}


def check(facts: FactBook, rules: RuleSet, only: tuple[str, ...] = ()) -> Report:
    """Every rule with an environment side, or ``only`` these, against the machine's facts.

    A rule that does not apply is left out; one whose facts cannot be told is UNKNOWN, and listed in
    ``not_checked`` with the reasons. Starts the probes that the rules ask for.
    """
    results: list[CheckResult] = []
    skipped: list[NotChecked] = []
    notes: list[str] = []
    for rule in sorted(map(rules.rule, only or rules.checks()), key=_wait):
        if rule.check is None:
            continue
        outcome = _one(rule, rule.check, facts, rules, skipped)
        if outcome is None:
            continue
        if outcome.verdict is Verdict.FAIL or outcome.verdict is Verdict.WARN:
            results.append(outcome)
        elif rule.check.severity is Severity.INFO and outcome.reason:
            notes.append(f"{rule.title} ({rule.id}): {outcome.observed}")
        else:
            results.append(outcome)
    results = _without_general(results, rules)
    if any(one.verdict is not Verdict.PASS for one in results):
        # it depends on the whole machine: nothing may wait for that which is known without it
        ask = partial(_without_text, facts=facts)
        seen = surroundings.of_machine(ask)
        results = [
            replace(one, action=_action(one.id, ask, seen, rules)) if one.verdict is not Verdict.PASS else one
            for one in results
        ]
    results.sort(key=lambda result: (VERDICT_ORDER[result.verdict], result.id))
    failed = any(result.verdict in (Verdict.FAIL, Verdict.WARN) for result in results)
    return Report(
        outcome=Outcome.DIAGNOSED if failed else Outcome.NO_FAILURE,
        checks=tuple(results),
        not_checked=tuple(skipped),
        notes=tuple(notes),
        facts=facts.asked(),
    )


def _wait(rule: Rule) -> int:
    """Rules that wait for no program come first, so that one that hangs does not cost their findings."""
    side = rule.check
    return waits(item.fact for item in (*side.applies_if, *side.fail_if)) if side is not None else 0


def torch_missing(python: str) -> Report | None:
    """What every command says where this interpreter has no torch; None where it has one, or cannot tell.

    Starts the interpreter; nothing is imported.
    """
    from torchdoctor.catalog import load
    from torchdoctor.probes import ProbeSource

    source = ProbeSource(python=python)
    try:
        report = check(FactBook(source), load(), ("torch-missing",))
    finally:
        source.close()
    return replace(report, notes=(), not_checked=()) if report.outcome is Outcome.DIAGNOSED else None


def _without_general(results: list[CheckResult], rules: RuleSet) -> list[CheckResult]:
    """One failure is told once: by the special case, where the rule of it is there and fails too."""
    bad = {result.id for result in results if result.verdict in (Verdict.FAIL, Verdict.WARN)}
    general = {name for found in bad for name in rules.rule(found).refines}
    return [result for result in results if result.id not in bad or result.id not in general]


def _told(conditions: tuple[Condition, ...], facts: FactBook) -> bool | None:
    """Three-valued, and lazy: facts after one that is false are not asked for."""
    values: list[bool | None] = []
    for condition in conditions:
        values.append(holds(condition, facts.machine(condition.fact)))
        if values[-1] is False:
            break
    return every(values)


def _one(
    rule: Rule, side: Check, facts: FactBook, rules: RuleSet, skipped: list[NotChecked]
) -> CheckResult | None:
    applies = _told(side.applies_if, facts)
    if applies is False:
        return None
    failed = _told(side.fail_if, facts) if applies else None
    conditions = (*side.applies_if, *side.fail_if)
    if failed is None:
        unknown = [
            _untold(facts.machine(item.fact))
            for item in conditions
            if holds(item, facts.machine(item.fact)) is None
        ]
        skipped.append(NotChecked(rule.id, "could not tell: " + ", ".join(dict.fromkeys(unknown))))
        return None
    observed = ", ".join(dict.fromkeys(in_words(item, facts.machine(item.fact)) for item in side.fail_if))
    if not failed:
        return CheckResult(rule.id, Verdict.PASS, rule.title, observed=observed, group=rule.family)
    words = rules.text(rule.id)
    evidence = tuple(
        Evidence(
            in_words(item, facts.machine(item.fact)), facts.machine(item.fact).source or None, fact=item.fact
        )
        for item in conditions
    )
    return CheckResult(
        rule.id,
        _VERDICTS[side.severity],
        rule.title,
        observed=observed,
        evidence=evidence,
        reason=words.why,
        group=rule.family,
    )


def _untold(fact: Fact) -> str:
    """Which fact cannot be told, why, and as far as it is known what stands in the way."""
    why = fact.reason.value if fact.reason else "not-asked"
    first = fact.detail.strip().partition("\n")[0]
    return f"{fact.name} ({why}: {first})" if first and first != why else f"{fact.name} ({why})"


def _without_text(name: str, facts: FactBook) -> Fact:
    """A fact where nothing was read: what only a text can tell is not there."""
    of_text = name.partition(".")[0] in ("log", "event", "match")
    return Fact.absent(name) if of_text else facts.machine(name)


def _action(
    rule_id: str, ask: Callable[[str], Fact], seen: surroundings.Surroundings, rules: RuleSet
) -> str | None:
    """What to do on this machine first: of the ways out that fit it, the one that is written for it."""
    value = partial(asked, seen=seen, ask=ask)
    found: list[tuple[int, Fix]] = []
    for conditional in rules.text(rule_id).fixes:
        rank = surroundings.place(conditional, seen)
        if rank is None or any(holds(item, value(item.fact)) is False for item in conditional.when):
            continue
        # one that names a value of the message has nothing to say where there is none
        fix = filled(conditional.fix, value)
        if fix is not None and commands.fits(fix.run or "", seen):
            found.append((rank, fix))
    if not found:
        return None
    _, best = min(found, key=lambda item: item[0])
    return f"{best.do} ({best.run})" if best.run else best.do
