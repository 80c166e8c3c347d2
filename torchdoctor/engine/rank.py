"""The order of findings, and the reasons for it in words."""

from __future__ import annotations

from torchdoctor.engine.finding import Finding
from torchdoctor.extract.progress import is_step
from torchdoctor.model import Event, EventKind, FirstFailure, Role, Severity, Standing, Transcript

_ROLES = {Role.CAUSE: 0, Role.CONTEXT: 1, Role.CONSEQUENCE: 2, Role.TEARDOWN: 3}
_SEVERITIES = {Severity.FATAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
_STANDINGS = {Standing.CONFIRMED: 0, Standing.POSSIBLE: 1, Standing.UNLIKELY: 2}

SortKey = tuple[bool, bool, int, int, bool, int, int, int, int, int, str]


def sort_key(finding: Finding) -> SortKey:
    """Severity, role, failed or shown or warned, place, standing, specificity, id; the cause is the least."""
    best = finding.best
    return (
        finding.recovered,
        _beside(finding),
        _SEVERITIES[finding.rule.severity],
        _ROLES[finding.role],
        best.standing is Standing.UNLIKELY,
        only_warned(finding),
        _place(finding),
        _STANDINGS[best.standing],
        -best.confirmed_by,
        -best.weight,
        finding.rule.id,
    )


def _beside(finding: Finding) -> bool:
    """Only warnings of libraries, or what launchers say of their children: less than what a program raised.

    A run gets over such a warning, so where an exception only follows from something that the text does not
    show, the exception still says more.
    """
    kinds = {item.event.kind for item in finding.occurrences}
    if finding.rule.severity is Severity.FATAL:
        return False
    launched = finding.role in (Role.CONSEQUENCE, Role.TEARDOWN) and kinds <= {
        EventKind.LAUNCHER,
        EventKind.LOG,
    }
    return launched or kinds == {EventKind.WARNING}


def only_warned(finding: Finding) -> bool:
    """Do only warnings and lines of a log say it? A run gets over what it writes, and may fail otherwise."""
    return all(
        item.event.kind is EventKind.WARNING
        or (item.event.kind is EventKind.LOG and item.event.level not in ("ERROR", "CRITICAL", "FATAL"))
        for item in finding.occurrences
    )


def got_over(finding: Finding, strange: list[Event], transcript: Transcript) -> bool:
    """Did the run go on after the warnings that alone say it, before what no rule knows (``strange``)?

    It did where records of its own say it, at a level below an error; else its steps show it.
    """
    first = min((event.id for event in strange), default=0)
    last = max(item.event.id for item in finding.occurrences)
    if last >= first or not only_warned(finding):
        return False
    if all(item.event.kind is EventKind.LOG and item.event.level for item in finding.occurrences):
        return True
    between = (event for event in transcript.events[last + 1 : first] if event.kind is EventKind.LOG)
    return sum(is_step(event.text) for event in between) >= 2


def _place(finding: Finding) -> int:
    """Where it stands first. A kernel's assertion is printed when the queue is flushed, so it comes first."""
    if any(occurrence.event.kind is EventKind.DEVICE_ASSERT for occurrence in finding.occurrences):
        return -1
    return finding.first()


def reasons(finding: Finding, under: list[Finding], first: FirstFailure | None) -> tuple[str, ...]:
    """Why this finding is the head of its chain."""
    found: list[str] = []
    best = finding.best
    if best.standing is Standing.CONFIRMED:
        if best.confirmed_by:
            found.append("the message matches and facts confirm it")
        else:
            found.append("the message belongs only to this cause")
    elif best.standing is Standing.POSSIBLE:
        found.append(
            "the message fits, but other causes print it too"
            if not best.missing
            else "the message fits, but a fact is missing"
        )
    else:
        found.append("the message fits, but a fact is evidence against it")
    if under:
        found.append(
            f"{len(under)} later finding{'s' if len(under) > 1 else ''} in this text can follow from it"
        )
    if any(occurrence.event.kind is EventKind.DEVICE_ASSERT for occurrence in finding.occurrences):
        found.append("a kernel assertion comes before the error that CUDA reports later")
    if first and first.rank is not None and any(o.event.rank == first.rank for o in finding.occurrences):
        found.append(f"it stands on rank {first.rank}, which failed first ({first.decided_by})")
    return tuple(found)
