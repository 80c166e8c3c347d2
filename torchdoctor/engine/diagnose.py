"""From a transcript to a report: match, judge, link, rank."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import Rule
from torchdoctor.engine import suspect
from torchdoctor.engine.conditions import holds
from torchdoctor.engine.echo import PEER_CAUSES, mark_echoes
from torchdoctor.engine.factbook import FactBook, TextFacts
from torchdoctor.engine.finding import Finding, Occurrence, quote
from torchdoctor.engine.judge import judge
from torchdoctor.engine.link import chains
from torchdoctor.engine.match import occurrences
from torchdoctor.engine.rank import got_over, only_warned, reasons, sort_key
from torchdoctor.engine.wording import filled, first_known
from torchdoctor.model import (
    Diagnosis,
    Ending,
    Event,
    EventKind,
    FirstFailure,
    Fix,
    Form,
    Frame,
    Link,
    Outcome,
    Report,
    Role,
    Severity,
    Standing,
    Transcript,
)

if TYPE_CHECKING:
    from torchdoctor.model import Moment

MAX_EVIDENCE = 8
# what tells of ranks without being printed by one
_OF_MANY = (EventKind.LAUNCHER, EventKind.SCHEDULER, EventKind.STACK, EventKind.NCCL, EventKind.WATCHDOG)
Chain = tuple[Finding, list[Finding]]

# a log that was written without its standard error is what a person has who wonders
_NOTHING = (
    "Not one line of text is in it. Python writes its errors to standard error: train.py > train.log 2>&1"
)


def diagnose(transcript: Transcript, facts: FactBook, rules: RuleSet) -> Report:
    """The report on one transcript. Never raises for anything that stands in the transcript.

    Asks ``facts`` only for what the conditions of matching rules name.
    """
    kernel = any(event.kind is EventKind.KERNEL_LOG for event in transcript.events)
    transcript, foreign = _with_kernel_log(transcript) if kernel else (transcript, ())
    text_facts = TextFacts(transcript, facts)
    findings = judge(occurrences(transcript, rules, text_facts), rules, text_facts)
    live = [finding for finding in findings if not finding.recovered]
    if rules.whole and not suspect.prints_failure(transcript, timeouts=not transcript.speech.person):
        live = _with_readings(live, transcript, rules, text_facts)
    notes = [*transcript.notes, *foreign, *text_facts.notes]
    if transcript.form is Form.EMPTY and not notes:
        notes.append(_NOTHING)
    notes.extend(_note(finding, "the run went on after it") for finding in findings if finding.recovered)
    explained = {number for finding in live for number in finding.events()}
    strange = suspect.unexplained(transcript, explained)
    if kernel:
        notes.extend(_kernel_remarks(transcript, {number for item in findings for number in item.events()}))
    mark_echoes(live, strange)
    first, moments, alone = _ranks(transcript, live, strange)
    found = chains(live, rules, transcript, sort_key)
    kept, set_aside = _select(found, transcript, strange, alone)
    notes.extend(set_aside)
    diagnoses = tuple(_diagnosis(chain, transcript, text_facts, rules, first) for chain in kept)
    outcome = Outcome.DIAGNOSED
    who = None
    if not diagnoses:
        if transcript.form is Form.BINARY:
            outcome = Outcome.UNREADABLE
        elif strange or suspect.has_failure(transcript):
            outcome = Outcome.UNRECOGNISED
            who = suspect.choose(strange, transcript, first.rank if first else None) or suspect.fallback(
                transcript
            )
        else:
            outcome = Outcome.NO_FAILURE
    failed = outcome in (Outcome.DIAGNOSED, Outcome.UNRECOGNISED)
    return Report(
        outcome=outcome,
        source=transcript.sources,
        diagnoses=diagnoses,
        suspect=who,
        first_failure=first if failed else None,
        timeline=moments if failed else (),
        notes=tuple(dict.fromkeys(notes)),
        facts=(*text_facts.environment(), *facts.asked()),
        faults=tuple(text_facts.faults),
    )


def _ranks(
    transcript: Transcript, live: list[Finding], strange: list[Event]
) -> tuple[FirstFailure | None, tuple[Moment, ...], bool]:
    """Who failed first, the timeline, and whether the first one failed of something that no rule knows.

    What works this out is not even imported for a text of one process.
    """
    if not any(
        event.rank is not None or event.local_rank is not None or event.kind in _OF_MANY
        for event in transcript.events
    ):
        return None, (), False
    from torchdoctor.engine.first import first_failure, incident
    from torchdoctor.engine.timeline import timeline

    case = incident(transcript, live, strange)
    first = first_failure(case)
    alone = first is not None and first.rank in case.own and any(e.rank == first.rank for e in strange)
    return first, timeline(case, first), alone


def _with_kernel_log(transcript: Transcript) -> tuple[Transcript, tuple[str, ...]]:
    from torchdoctor.engine.kernel_log import joined

    return joined(transcript)


def _kernel_remarks(transcript: Transcript, explained: set[int]) -> list[str]:
    from torchdoctor.engine.kernel_log import remarks

    return remarks(transcript, explained)


def _with_readings(
    live: list[Finding], transcript: Transcript, rules: RuleSet, facts: TextFacts
) -> list[Finding]:
    from torchdoctor.engine.readings import with_readings

    return with_readings(live, transcript, rules, facts)


def _note(finding: Finding, why: str) -> str:
    evidence = quote(finding.best.event, finding.best.snippet)
    return f"{finding.rule.title} ({finding.rule.id}, line {evidence.line}): {why}"


def _select(
    found: list[Chain], transcript: Transcript, strange: list[Event], alone: bool
) -> tuple[list[Chain], list[str]]:
    """Which chains are diagnoses, and what is said of the others in a note."""
    notes: list[str] = []
    causes = [
        chain for chain in found if chain[0].role is Role.CAUSE and chain[0].rule.severity is Severity.FATAL
    ]
    # a failure no rule knows explains consequences and warnings better than they explain it; that of a rank
    # alone explains the loss of a peer on others, too
    unknown_cause = bool(strange) and (
        all(got_over(head, strange, transcript) for head, _ in causes)
        or (alone and all(chain[0].rule.id in PEER_CAUSES for chain in causes))
    )
    kept: list[Chain] = []
    for chain in found:
        head, _ = chain
        if head.shown:
            kept.append(chain)
        elif head.role in (Role.CONTEXT, Role.TEARDOWN) or (head.rule.severity is Severity.INFO and causes):
            notes.append(_note(head, "a remark, not the cause"))
        elif unknown_cause:
            notes.append(_note(head, _beside(head, strange)))
        elif transcript.ending is Ending.GOOD and _only_remarks(head):
            notes.append(_note(head, "a line of the log of a run that ended well"))
        elif head.rule.severity is Severity.WARNING and transcript.ending is Ending.GOOD:
            notes.append(_note(head, "a warning in a run that ended well"))
        elif head.rule.severity is Severity.INFO and not suspect.has_failure(transcript):
            notes.append(_note(head, "a remark, nothing failed"))
        else:
            kept.append(chain)
    return _without_rivals(kept, notes), notes


def _beside(head: Finding, strange: list[Event]) -> str:
    """What a warning or a consequence may have to do with a failure that no rule knows."""
    warns = head.rule.severity is Severity.WARNING or only_warned(head)
    if warns and head.best.event.id < min(event.id for event in strange):
        return "a warning before the failure that no rule knows; it may be the reason"
    return "may follow from the failure that no rule knows"


def _only_remarks(head: Finding) -> bool:
    return all(item.event.kind in (EventKind.LOG, EventKind.WARNING) for item in head.occurrences)


def _without_rivals(kept: list[Chain], notes: list[str]) -> list[Chain]:
    """Drops alternatives on the same event that are weaker than a confirmed one, and the unlikely ones."""
    result: list[Chain] = []
    for chain in kept:
        head = chain[0]
        stronger = [
            other[0]
            for other in kept
            if other is not chain
            and other[0].role is head.role
            and head.events() <= other[0].events()
            and (
                (
                    other[0].best.standing is Standing.CONFIRMED
                    and head.best.standing is not Standing.CONFIRMED
                )
                or (
                    head.best.standing is Standing.UNLIKELY
                    and other[0].best.standing is not Standing.UNLIKELY
                )
            )
        ]
        if stronger:
            notes.append(_note(head, f"set aside for {stronger[0].rule.id}, which facts confirm"))
        else:
            result.append(chain)
    return result


def _diagnosis(
    chain: Chain, transcript: Transcript, facts: TextFacts, rules: RuleSet, first: FirstFailure | None
) -> Diagnosis:
    head, under = chain
    best = head.best
    if first is not None:
        on_first = [
            item
            for item in head.occurrences
            if item.event.rank == first.rank and item.standing is best.standing
        ]
        best = on_first[0] if on_first else best
    words = rules.text(head.rule.id)
    evidence = list(best.evidence)
    seen = {(item.file, item.line) for item in evidence}
    for item in sorted(head.occurrences, key=lambda one: one.event.id):
        extra = quote(item.event, item.snippet)
        if (extra.file, extra.line) not in seen and len(evidence) < MAX_EVIDENCE:
            seen.add((extra.file, extra.line))
            evidence.append(extra)
    sizes = _size_holes(head.rule)
    readings = _readings(best, head)
    fixes: list[Fix] = []
    for conditional in words.fixes:
        told: list[bool | None] = []
        with facts.guard(head.rule.id):
            for condition in conditional.when:
                told.append(holds(condition, first_known(condition.fact, readings, facts)))
            if False not in told:
                texts = (
                    filled(
                        conditional.fix, partial(facts.fact, event=item.event, captures=item.captures), sizes
                    )
                    for item in readings
                )
                fixes.extend([fix for fix in texts if fix is not None][:1])
    return Diagnosis(
        rule=head.rule.id,
        family=head.rule.family,
        title=head.rule.title,
        severity=head.rule.severity,
        role=head.role,
        standing=best.standing,
        why=words.why,
        rank=best.event.rank,
        frame=_frame(best.event, chain, transcript),
        evidence=tuple(evidence),
        missing=best.missing,
        leads_to=tuple(
            Link(
                member.rule.id,
                member.rule.title,
                quote(member.best.event, member.best.snippet),
                member.best.event.rank,
            )
            for member in under
        ),
        fixes=tuple(fixes),
        decide_with=words.decide_with,
        references=words.references,
        reasons=reasons(head, under, first),
    )


def _readings(best: Occurrence, head: Finding) -> list[Occurrence]:
    """Where the values of the fixes are read: the place that is reported, then the rule's others.

    A launcher says in one line that a child failed and in the next which one. Another rank's are left out.
    """
    rank = best.event.rank
    others = (item for item in head.occurrences if rank is None or item.event.rank in (None, rank))
    return [best, *[item for item in others if item is not best][:MAX_EVIDENCE]]


def _size_holes(rule: Rule) -> frozenset[str]:
    holes = (hole for match in rule.matches for pattern in match.patterns for hole in pattern.holes)
    return frozenset(f"match.{name}" for name, kind in holes if kind == "size")


def _frame(event: Event, chain: Chain, transcript: Transcript) -> Frame | None:
    """The user's frame where the answer stands, else at its other occurrences and what followed from them."""
    head, under = chain
    events = [event, *(item.event for member in (head, *under) for item in member.occurrences)]
    for other in events:
        frame = suspect.own_frame(other, transcript)
        # where a module calls warnings.warn is where it speaks, not where something went wrong
        if other.kind is EventKind.WARNING and (frame is None or "warnings.warn(" in frame.code):
            frame = suspect.struck_frame(other, transcript) or frame
        if frame is not None:
            return frame
    shown = [suspect.user_frame(other, transcript) for other in events[:MAX_EVIDENCE]]
    own = next((frame for frame in shown if frame is not None and not frame.package), shown[0])
    own = own or suspect.nearby_frame(event, transcript)
    if own is None and head.shown:  # what people show of a process that hangs, of a model that was traced
        from torchdoctor.engine.listed_frames import listed_frame

        own = suspect.shown_frame(transcript) or listed_frame(head.best.evidence, transcript)
    elif own is None and event.kind is not EventKind.EXCEPTION:
        own = suspect.shown_frame(transcript, (EventKind.STACK,))
    if own is not None and not own.package:
        return own
    from torchdoctor.engine.told_frames import told_frame

    return told_frame(transcript, head.shown) or own
