"""A chain of findings as a diagnosis: its evidence, its frame, its fixes with the values of the message."""

from __future__ import annotations

from functools import partial

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import Rule
from torchdoctor.engine.conditions import holds
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.finding import Finding, Occurrence, quote
from torchdoctor.engine.frames import user_frame
from torchdoctor.engine.rank import reasons
from torchdoctor.engine.select import Chain
from torchdoctor.engine.wording import filled, first_known
from torchdoctor.model import Diagnosis, Event, Evidence, FirstFailure, Fix, Link, Transcript

MAX_EVIDENCE = 8


def answer(
    chain: Chain,
    transcript: Transcript,
    facts: TextFacts,
    rules: RuleSet,
    first: FirstFailure | None,
    own: Event | None = None,
) -> Diagnosis:
    """The diagnosis that the head of a chain is; ``first`` picks the place of the rank that failed first.

    ``own`` is what that rank failed of: a launcher may tell it, which is of no rank.
    """
    head, under = chain
    best = _best(head, first)
    rank = best.event.rank
    if rank is None and first is not None and own is not None and own.id in head.events():
        rank = first.rank
    words = rules.text(head.rule.id)
    behind = (item.event for member in (head, *under) for item in member.occurrences)
    return Diagnosis(
        rule=head.rule.id,
        family=head.rule.family,
        title=head.rule.title,
        severity=head.rule.severity,
        role=head.role,
        standing=best.standing,
        why=words.why,
        rank=rank,
        frame=user_frame(best.event, transcript, behind),
        evidence=_evidence(best, head),
        missing=best.missing,
        leads_to=tuple(_link(member) for member in under),
        fixes=_fixes(best, head, facts, rules),
        decide_with=words.decide_with,
        references=words.references,
        reasons=reasons(head, under, first),
    )


def _best(head: Finding, first: FirstFailure | None) -> Occurrence:
    """The place that is reported: the first failing rank's, of those that stand as well as the best."""
    best = head.best
    if first is None:
        return best
    on_first = (
        item for item in head.occurrences if item.event.rank == first.rank and item.standing is best.standing
    )
    return next(on_first, best)


def _evidence(best: Occurrence, head: Finding) -> tuple[Evidence, ...]:
    evidence = list(best.evidence)
    seen = {(item.file, item.line) for item in evidence}
    for item in sorted(head.occurrences, key=lambda one: one.event.id):
        extra = quote(item.event, item.snippet)
        if (extra.file, extra.line) not in seen and len(evidence) < MAX_EVIDENCE:
            seen.add((extra.file, extra.line))
            evidence.append(extra)
    return tuple(evidence)


def _link(member: Finding) -> Link:
    best = member.best
    return Link(member.rule.id, member.rule.title, quote(best.event, best.snippet), best.event.rank)


def _fixes(best: Occurrence, head: Finding, facts: TextFacts, rules: RuleSet) -> tuple[Fix, ...]:
    """The ways out that no known fact rules out, with the values of the message in them."""
    sizes = _size_holes(head.rule)
    places = _places(best, head)
    fixes: list[Fix] = []
    for conditional in rules.text(head.rule.id).fixes:
        with facts.guard(head.rule.id):
            told = [
                holds(condition, first_known(condition.fact, places, facts)) for condition in conditional.when
            ]
            if False in told:
                continue
            texts = (
                filled(conditional.fix, partial(facts.fact, event=item.event, captures=item.captures), sizes)
                for item in places
            )
            fixes.extend([fix for fix in texts if fix is not None][:1])
    return tuple(fixes)


def _places(best: Occurrence, head: Finding) -> list[Occurrence]:
    """Where the values of the fixes are read: the place that is reported, then the rule's others.

    A launcher says in one line that a child failed and in the next which one. Another rank's are left out.
    """
    rank = best.event.rank
    others = (item for item in head.occurrences if rank is None or item.event.rank in (None, rank))
    return [best, *[item for item in others if item is not best][:MAX_EVIDENCE]]


def _size_holes(rule: Rule) -> frozenset[str]:
    holes = (hole for match in rule.matches for pattern in match.patterns for hole in pattern.holes)
    return frozenset(f"match.{name}" for name, kind in holes if kind == "size")
