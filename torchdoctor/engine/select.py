"""Which chains of findings are diagnoses, which is the first, and what is said of the others in a note."""

from __future__ import annotations

from torchdoctor.engine import suspect
from torchdoctor.engine.context import ended, is_context, is_repeated, went_on
from torchdoctor.engine.echo import PEER_CAUSES
from torchdoctor.engine.finding import Finding, quote
from torchdoctor.engine.rank import got_over, only_warned
from torchdoctor.model import Ending, Event, EventKind, Role, Severity, Standing, Transcript

INTERRUPTED = "interrupted"
_SERIES = 5

Chain = tuple[Finding, list[Finding]]


def select(
    found: list[Chain], transcript: Transcript, strange: list[Event], alone: int | None
) -> tuple[list[Chain], list[str]]:
    """The chains that are diagnoses, in order, and notes on those that are none.

    ``strange`` are the exceptions that no rule knows; ``alone`` is the rank that failed first, if of
    one of these.
    """
    notes: list[str] = []
    by_hand = any(head.rule.id == INTERRUPTED for head, _ in found)
    over = ended([head for head, _ in found], strange, transcript)
    beside = [_beside_the_end(chain, transcript, over, by_hand) for chain in found]
    causes = [
        chain
        for chain, why in zip(found, beside, strict=True)
        if not why and chain[0].role is Role.CAUSE and chain[0].rule.severity is Severity.FATAL
        if not by_hand or not is_context(chain[0], transcript)
    ]
    # a failure no rule knows explains consequences and warnings better than they explain it; that of the rank
    # that failed first comes before whatever others lost or failed of later
    unknown_cause = bool(strange) and (
        all(got_over(head, strange, transcript) for head, _ in causes)
        or (alone is not None and all(_is_of_others(head, alone) for head, _ in causes))
    )
    failure = suspect.has_failure(transcript)
    kept: list[Chain] = []
    for chain, aside in zip(found, beside, strict=True):
        why = aside or _why_not(chain[0], transcript, strange, bool(causes), unknown_cause, failure)
        if why:
            notes.append(note(chain[0], why))
            continue
        if is_context(chain[0], transcript):
            chain[0].doubt()  # what a process only said is never sure to be what ended it
        kept.append(chain)
    return _without_rivals(kept, notes), notes


def _is_of_others(head: Finding, rank: int) -> bool:
    """Is it the loss of a peer, or a failure on other ranks than this one alone?"""
    return head.rule.id in PEER_CAUSES or all(one.event.rank not in (None, rank) for one in head.occurrences)


def _beside_the_end(chain: Chain, transcript: Transcript, over: bool, by_hand: bool) -> str:
    """Why what was only said on the way is no cause: something else ended the run, or nothing did."""
    head, under = chain
    if head.rule.severity is not Severity.FATAL and not by_hand:
        return ""
    repeated = not is_context(head, transcript)
    if repeated and not is_repeated(head, transcript):
        return ""
    if any(not is_context(member, transcript) for member in under):
        return ""
    if over or repeated:
        return "printed on the way; it is not what ended the run"
    gone_on = any(went_on(one.event, transcript) for one in head.occurrences)
    return "the run continued after it" if gone_on else ""


def note(finding: Finding, why: str) -> str:
    """A finding that is no diagnosis, in a line."""
    evidence = quote(finding.best.event, finding.best.snippet)
    return f"{finding.rule.title} ({finding.rule.id}, line {evidence.line}): {why}"


def _why_not(
    head: Finding,
    transcript: Transcript,
    strange: list[Event],
    causes: bool,
    unknown_cause: bool,
    failure: bool,
) -> str:
    """Why a finding is no diagnosis here; empty for one that is."""
    severity = head.rule.severity
    if head.role in (Role.CONTEXT, Role.TEARDOWN) or (severity is Severity.INFO and causes):
        return "a remark, not the cause"
    if unknown_cause:
        return _beside(head, strange)
    if transcript.ending is Ending.GOOD and _only_remarks(head):
        return "a line in the log of a run that ended well"
    if severity is Severity.WARNING and transcript.ending is Ending.GOOD:
        return "a warning in a run that ended well"
    if severity is Severity.INFO and not failure and head.rule.id != INTERRUPTED:
        return "a remark, nothing failed"
    return ""


def _beside(head: Finding, strange: list[Event]) -> str:
    """What a warning or a consequence may have to do with a failure that no rule knows."""
    warns = head.role is Role.CAUSE and (head.rule.severity is Severity.WARNING or only_warned(head))
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
        stronger = [other[0] for other in kept if other is not chain and _beats(other[0], head)]
        if stronger:
            certain = stronger[0].best.standing is Standing.CONFIRMED
            why = "which facts confirm" if certain else "which is likelier"
            notes.append(note(head, f"set aside for {stronger[0].rule.id}, {why}"))
        else:
            result.append(chain)
    return result


def _beats(other: Finding, head: Finding) -> bool:
    if other.role is not head.role or not head.events() <= other.events():
        return False
    theirs, ours = other.best.standing, head.best.standing
    confirmed = theirs is Standing.CONFIRMED and ours is not Standing.CONFIRMED
    return confirmed or (ours is Standing.UNLIKELY and theirs is not Standing.UNLIKELY)


def of_last_attempt(found: list[Chain]) -> list[Chain]:
    """The chains, that of the last series first where a program prints what it caught, and tries again.

    What it printed in a row until something else took its place is of attempts that are over.
    """
    if not found or not _is_series(found[0][0]):
        return found
    over = _last(found[0][0])
    later = [chain for chain in found if _is_series(chain[0]) and chain[0].first() > over]
    if not later:
        return found
    latest = max(later, key=lambda chain: _last(chain[0]))
    return [latest, *(chain for chain in found if chain is not latest)]


def _is_series(head: Finding) -> bool:
    """Is it a failure of which only messages are printed, without stacks, one as often as _SERIES?"""
    return (
        head.role is Role.CAUSE
        and head.rule.severity is Severity.FATAL
        and sum(one.event.count for one in head.occurrences) >= _SERIES
        and all(one.event.kind is EventKind.LOG and one.event.level is None for one in head.occurrences)
    )


def _last(finding: Finding) -> int:
    return max(one.event.id for one in finding.occurrences)


def led(found: list[Chain], own: Event) -> list[Chain]:
    """The chains, that of ``own`` first: the event that the first failing rank itself failed of.

    A cause that stands there is no consequence of what only tells that others were ended.
    """
    for chain in found:
        head, under = chain
        causes = [
            one
            for one in (head, *under)
            if one.role is Role.CAUSE and one.rule.severity is Severity.FATAL and own.id in one.events()
        ]
        if not causes:
            continue
        if head.role is not Role.CAUSE:
            rest = [one for one in (head, *under) if one is not causes[0]]
            return _ahead(found, chain, (causes[0], rest), own)
        return _ahead(found, chain, chain, own)
    return found


def _ahead(found: list[Chain], old: Chain, new: Chain, own: Event) -> list[Chain]:
    """``new`` in the place of ``old``, and first unless a cause of this rank, or of none, is so already."""
    first = found[0][0]
    stays = first.role is Role.CAUSE and any(one.event.rank in (None, own.rank) for one in first.occurrences)
    rest = [chain for chain in found if chain is not old]
    if stays and found[0] is not old:
        return [new if chain is old else chain for chain in found]
    return [new, *rest]
