"""A chain of findings as a diagnosis: its evidence, its frame, its fixes with the values of the message."""

from __future__ import annotations

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.finding import Finding, Occurrence, quote
from torchdoctor.engine.fixes import Advice, restarts
from torchdoctor.engine.frames import user_frame
from torchdoctor.engine.rank import reasons
from torchdoctor.engine.select import Chain
from torchdoctor.engine.textfacts import wrapped
from torchdoctor.engine.wording import to_put_in
from torchdoctor.model import Diagnosis, Event, EventKind, Evidence, FirstFailure, Link, Severity, Transcript

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
    advice = Advice(best, head, facts)
    fixes, check = advice.fixes(words), advice.decides(words)
    code = str(facts.fact("log.code").value or "")
    # a note says how to read the command's output: without the command it says nothing
    note = "" if words.decide_with and check is None else words.decide_note or ""
    if check is not None and check in [fix.run for fix in fixes[:1]]:
        check, note = None, f"Run the first command above. {advice.numbered(note)}" if note else ""
    note += restarts(note, check or "")
    replaced = to_put_in(check, f"{note} {advice.program}", code)
    behind = (item.event for member in (head, *under) for item in member.occurrences)
    return Diagnosis(
        rule=head.rule.id,
        family=head.rule.family,
        title=head.rule.title,
        severity=_severity(head, under),
        role=head.role,
        standing=best.standing,
        why=words.why,
        more=words.more,
        rank=rank,
        frame=user_frame(best.event, transcript, behind),
        evidence=_evidence(best, head, transcript),
        missing=best.missing,
        leads_to=tuple(_link(member, best.event.id) for member in under),
        fixes=fixes,
        decide_with=check,
        decide_note=" ".join(filter(None, (note.strip(), replaced))) or None,
        references=words.references,
        reasons=reasons(head, under, first),
    )


def _severity(head: Finding, under: list[Finding]) -> Severity:
    """That of the rule; a warning whose exception ended the process is no mere warning."""
    severity = head.rule.severity
    fatal = severity is Severity.WARNING and any(
        item.event.kind is EventKind.EXCEPTION and item.event.frames and not item.event.recovered
        for member in (head, *under)
        for item in member.occurrences
    )
    return Severity.FATAL if fatal else severity


def _best(head: Finding, first: FirstFailure | None) -> Occurrence:
    """The place that is reported: the first failing rank's, of those that stand as well as the best."""
    best = head.best
    if first is None:
        return best
    on_first = (
        item
        for item in head.occurrences
        if item.event.rank == first.rank and item.standing is best.standing
        if item.event.kind is not EventKind.WARNING  # a destructor's, on the way out
    )
    return next(on_first, best)


def _evidence(best: Occurrence, head: Finding, transcript: Transcript) -> tuple[Evidence, ...]:
    """What shows the best place, the exception that it only hands on, then the other places."""
    evidence = list(best.evidence)
    if (inner := wrapped(best.event, transcript)) is not None:
        evidence.insert(1, quote(inner))
    seen = {(item.file, item.line) for item in evidence}
    for item in sorted(head.occurrences, key=lambda one: one.event.id):
        if item.event.recovered and not best.event.recovered:
            continue
        extra = quote(item.event, item.snippet)
        if (extra.file, extra.line) not in seen and len(evidence) < MAX_EVIDENCE:
            seen.add((extra.file, extra.line))
            evidence.append(extra)
    return tuple(evidence)


def _link(member: Finding, begun: int) -> Link:
    """What followed, by its best place behind the cause: before it a log may hold an older end."""
    best = next((item for item in member.occurrences if item.event.id >= begun), member.best)
    return Link(member.rule.id, member.rule.title, quote(best.event, best.snippet), best.event.rank)
