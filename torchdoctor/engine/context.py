"""What a run said on its way, and what ended it: a warning is context, an uncaught exception is an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from torchdoctor.engine.finding import Finding
from torchdoctor.engine.frames import outers
from torchdoctor.extract import once_a_text
from torchdoctor.extract.progress import is_step, moves, steps_shown
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import BELOW_ERROR, is_failure, level
from torchdoctor.model import Event, EventKind, Role, Severity, Transcript
from torchdoctor.patterns import pattern, search

# lines of training behind a message that show that its process went on
_STEPS = 2
_LOOPS = 4  # lines of one form that show that a program works in a loop
_LOOK_BACK = 200
_SHAPE = 120  # characters that tell the form of a line
_WAY_OUT = 40  # lines
# "NCCL INFO init.cc:1799 -> 2": the files that hold what a program calls
_RETURNED = r"NCCL INFO (?:\S*/)?(?:init|group|enqueue|collectives)\.cc:\d+ -> [1-9]\b"
OWN_CODE = "own-code-error"
_LAUNCHERS = ("ChildFailedError", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError")


def is_context(finding: Finding, transcript: Transcript) -> bool:
    """Does the finding rest only on what a process warned of, logged as a remark, or printed and went on?"""
    live = [one for one in finding.occurrences if not one.event.recovered]
    return all(_is_remark(one.event, transcript) for one in live)


def is_repeated(finding: Finding, transcript: Transcript) -> bool:
    """Did the program print the same before, and go on, and another failure stands below the last of them?"""
    live = [one.event for one in finding.occurrences if not one.event.recovered]
    below = transcript.events[max((event.id for event in live), default=0) + 1 :]
    if any(event.kind is not EventKind.LOG for event in live) or not any(map(is_failure, below)):
        return False
    got_over = [event for event in live if _is_remark(event, transcript)]
    return len(got_over) < len(live) and {event.text for event in live} == {one.text for one in got_over}


def _is_remark(event: Event, transcript: Transcript) -> bool:
    if event.kind is EventKind.NCCL and handed_up(event, transcript):
        return False
    if event.kind is EventKind.WARNING or level(event) in BELOW_ERROR:
        return True
    bare = event.kind is EventKind.EXCEPTION and not event.headed and event.level is None
    if event.kind is not EventKind.LOG and not bare:
        return False
    if steps_after(event, transcript) >= _STEPS:
        return True
    return event.kind is EventKind.LOG and not is_failure(event) and _raised_after(event, transcript)


def handed_up(event: Event, transcript: Transcript) -> bool:
    """Did the call of NCCL's interface that warned return an error? It prints its way out, place by place."""
    process = event.text.split(":", 2)[:2]
    return any(
        one.kind is EventKind.NCCL
        and one.text.split(":", 2)[:2] == process
        and search(_RETURNED, one.text, " -> ") is not None
        for one in transcript.events[event.id + 1 : event.id + 1 + _WAY_OUT]
    )


def _raised_after(event: Event, transcript: Transcript) -> bool:
    """Did the process that printed a line end further below, of an exception of its own?"""
    return any(
        other.kind is EventKind.EXCEPTION and other.headed and other.stream == event.stream
        and other.line > event.end_line + 2  # else it is announced
        and not other.recovered and not other.quoted and other.type not in (None, *_LAUNCHERS)
        for other in transcript.events[event.id + 1 :]
    )  # fmt: skip


def steps_after(event: Event, transcript: Transcript) -> int:
    """How many lines of training or bars the same stream shows behind an event, _STEPS at most."""
    behind = (other for other in moving_after(event, transcript) if other.kind is EventKind.LOG)
    return sum(1 for _ in islice(behind, _STEPS))


def moving_after(event: Event, transcript: Transcript) -> Iterator[Event]:
    """What the same stream shows of training and of bars behind an event, the last first."""
    return takewhile(lambda other: other.id > event.id, reversed(_moving(transcript).get(event.stream, [])))


@once_a_text
def _moving(transcript: Transcript) -> dict[str, list[Event]]:
    """Lines of training and bars, by stream: each remark and each exception of a text asks for them."""
    found: dict[str, list[Event]] = {}
    for event in transcript.events:
        if moves(event.text):
            found.setdefault(event.stream, []).append(event)
    return found


def went_on(event: Event, transcript: Transcript) -> bool:
    """Did the process of a remark go on: by a step, or by a record of its own log that is stamped later?"""
    if steps_after(event, transcript) or _repeats_after(event, transcript):
        return True
    return event.time is not None and any(
        other.stream == event.stream and other.time is not None and other.time > event.time
        for other in transcript.events[event.id + 1 :]
        if other.kind is EventKind.LOG and not other.quoted
    )


def _repeats_after(event: Event, transcript: Transcript) -> bool:
    """Does the same stream print lines of one form behind an event, other numbers in them, as a loop does?"""
    return _loops(event, transcript.events[event.id + 1 : event.id + 1 + _LOOK_BACK])


def _loops(event: Event, beside: Sequence[Event]) -> bool:
    shapes = Counter(
        pattern(r"\d+").sub("0", other.text[:_SHAPE])
        for other in beside
        if other.kind is EventKind.LOG and other.stream == event.stream and not is_failure(other)
    )
    return max(shapes.values(), default=0) >= _LOOPS


def ended(live: list[Finding], strange: list[Event], transcript: Transcript) -> bool:
    """Does the text show how some process ended badly: by what a rule knows, or by a strange exception?"""
    return bool(strange) or any(
        finding.rule.severity is not Severity.WARNING
        and finding.role is not Role.CONTEXT
        and not is_context(finding, transcript)
        for finding in live
    )


def without_past(live: list[Finding], strange: list[Event], transcript: Transcript) -> list[Finding]:
    """The findings, less errors that a process printed and took steps after, where another one ended it."""
    if not ended(live, strange, transcript):
        return live
    return [one for one in live if not all(_passed(item.event, transcript) for item in one.occurrences)]


def _passed(event: Event, transcript: Transcript) -> bool:
    printed = event.kind is EventKind.LOG and event.level is None and rows.TROUBLE.search(event.text[:400])
    return bool(printed) and not is_step(event.text) and steps_after(event, transcript) >= _STEPS


def waited_by_chance(finding: Finding, transcript: Transcript) -> bool:
    """Was a run that moved stopped by hand, so that where its stack stood is a moment of it and no hang?"""
    return all(_stopped(one.event) and _moved(one.event, transcript) for one in finding.occurrences)


def _stopped(event: Event) -> bool:
    return event.kind is EventKind.EXCEPTION and (event.type or "").endswith("KeyboardInterrupt")


def _moved(event: Event, transcript: Transcript) -> bool:
    before = transcript.events[max(0, event.id - _LOOK_BACK) : event.id]
    return sum(steps_shown(one.text) for one in before) >= _STEPS or _loops(event, before)


def without_own_code(live: list[Finding], transcript: Transcript) -> list[Finding]:
    """The findings, less that the user's own code raised what another rule of the same process tells better.

    Whatever wraps such an exception (a DataLoader, spawn, a compiler) tells it, too; a launcher is another
    process, and says only that a child ended. A program that raises another's error again in words of its own
    tells that one: a rule knows the message that it quotes.
    """
    own = next((finding for finding in live if finding.rule.id == OWN_CODE), None)
    if own is None:
        return live
    ranks = {
        one.event.rank
        for finding in live
        if finding is not own and finding.rule.severity is Severity.FATAL and finding.role is Role.CAUSE
        if not is_context(finding, transcript)
        for one in finding.occurrences
    }
    told = {one.event.id for finding in live if finding is not own for one in finding.occurrences}
    again = {
        one.event.id
        for finding in live
        if finding is not own and finding.rule.severity is Severity.FATAL
        for one in finding.occurrences
    }
    left = [
        one
        for one in own.occurrences
        if one.event.rank not in ranks
        and one.event.id not in again
        and not any(
            outer.id in told
            for outer in outers([one.event], transcript)
            if outer.kind is not EventKind.LAUNCHER and outer.type not in _LAUNCHERS
        )
    ]
    if len(left) == len(own.occurrences):
        return live
    rest = [finding for finding in live if finding is not own]
    return [*rest, Finding(own.rule, left)] if left else rest
