"""Failures that no rule knows: which exception looks most like the cause, and did anything fail at all."""

from __future__ import annotations

from torchdoctor.engine.context import went_on
from torchdoctor.engine.finding import quote
from torchdoctor.engine.frames import user_frame
from torchdoctor.engine.textfacts import related
from torchdoctor.intake.ending.event import is_failure, names_error, tells_failure
from torchdoctor.model import Ending, Event, EventKind, Quoted, RelationKind, Suspect, Transcript
from torchdoctor.patterns import pattern

# exceptions that report the end of something else
_REPORTERS = frozenset((
    "ChildFailedError", "CalledProcessError", "SystemExit", "ProcessExitedException",
    "ProcessRaisedException", "KeyboardInterrupt", "SignalException", "SubprocessFailed", "BrokenPipeError",
    "EOFError", "ConnectionResetError", "RayTaskError", "StopIteration", "GeneratorExit",
))  # fmt: skip


def _is_reporter(event: Event) -> bool:
    # torch.multiprocessing.spawn had no class of its own for it until 1.6
    spawned = event.type == "Exception" and event.text.lstrip().startswith("-- Process ")
    return spawned or (event.type or "").rpartition(".")[2] in _REPORTERS


def unexplained(transcript: Transcript, explained: set[int]) -> list[Event]:
    """Exceptions that no finding stands on or behind, and that are not reports of another's end.

    ``explained`` holds the ids of events with a finding. The innermost of a chain stands for it. That a
    launcher reports the end of a child explains no exception of the child.
    """
    explained = {
        number
        for number in explained
        if transcript.events[number].kind is not EventKind.LAUNCHER
        and not _is_reporter(transcript.events[number])
    }
    covered: set[int] = set()
    inner: set[int] = set()
    for event in transcript.events:
        chain = {member.id for member in related(event, transcript)}
        if chain & explained:
            covered |= chain
        inner.update(relation.event for relation in event.relations)
    found: list[Event] = []
    for event in transcript.events:
        if event.kind is EventKind.LOG and not event.quoted and event.id not in explained:
            # argparse ends a script so, and what follows under a launcher is its echo
            if ".py: error: " in event.text[:120] and not event.recovered:
                found.append(event)
            continue
        if event.kind is not EventKind.EXCEPTION or event.quoted or event.recovered or event.id in covered:
            continue
        if not event.type or _is_reporter(event) or event.type.endswith("Warning"):
            continue
        if event.headed or event.id in inner:
            found.append(event)
    return found


def choose(candidates: list[Event], transcript: Transcript, first_rank: int | None) -> Suspect | None:
    """The candidate that looks most like the cause.

    In order: on the first failing rank, no wrapper of another, raised under the user's own code, the inner
    one of a chain, the first in the text.
    """
    if not candidates:
        return None

    def key(event: Event) -> tuple[bool, bool, bool, bool, int]:
        return (
            first_rank is not None and event.rank != first_rank,
            any(relation.kind is RelationKind.WRAPS for relation in event.relations),
            all(frame.package for frame in event.frames),
            bool(event.relations),
            event.id,
        )

    event = min(candidates, key=key)
    return _suspect(event, transcript)


def _suspect(event: Event, transcript: Transcript) -> Suspect:
    from torchdoctor.engine.reading import read

    frame = user_frame(event, transcript)
    return Suspect(event.type, event.text, event.rank, frame, quote(event), reading=read(event, transcript))


def fallback(transcript: Transcript) -> Suspect | None:
    """Where no exception is left: the last line that says something failed."""
    for event in reversed(transcript.events):
        serious = event.kind is EventKind.SCHEDULER or event.level in ("ERROR", "CRITICAL", "FATAL")
        if is_failure(event) or (serious and not event.quoted and not event.recovered):
            return _suspect(event, transcript)
    return None


_RETURNED = r"NCCL INFO \S+:\d+ -> [1-9]"  # NCCL gives up, and shows through which of its functions
_REMARKS = ("INFO", "DEBUG", "TRACE", "NOTICE")


def named(transcript: Transcript) -> Suspect | None:
    """Of the lines that programs printed, the first that names an error and behind which nothing went on."""
    if transcript.ending is Ending.GOOD:
        return None
    for event in transcript.events:
        if event.quoted or event.recovered or event.level in _REMARKS:
            continue
        if tells_failure(event.text[:2_000]) and not _went_on(event, transcript):
            return _suspect(event, transcript)
    return None


def _went_on(event: Event, transcript: Transcript) -> bool:
    """Did the process go on? NCCL does, unless it returns from its functions behind a warning."""
    if event.kind is not EventKind.NCCL:
        return went_on(event, transcript)
    behind = [one.text for one in transcript.events[event.id + 1 :] if one.kind is EventKind.NCCL]
    return bool(behind) and not any(pattern(_RETURNED).search(text) for text in behind)


def written(transcript: Transcript) -> Suspect | None:
    """Of the lines that were written and not printed, the first that names an error."""
    for event in transcript.events:
        if event.quoted is not Quoted.WRITTEN or event.recovered:
            continue
        if names_error(event.text[:2_000]):
            return Suspect(event.type, event.text, event.rank, None, quote(event))
    return None


def has_failure(transcript: Transcript) -> bool:
    """Does the text hold a failure that the run did not get over?"""
    ended_well = transcript.ending is Ending.GOOD
    return transcript.ending is Ending.BAD or any(
        _failed(event, ended_well) for event in transcript.events if not event.quoted and not event.recovered
    )


def all_cut_off(transcript: Transcript) -> bool:
    """Are the only exceptions of the text stacks without a class and a message?"""
    raised = [one for one in transcript.events if one.kind is EventKind.EXCEPTION and not one.quoted]
    return bool(raised) and all(one.type is None and one.frames for one in raised)


def _failed(event: Event, ended_well: bool) -> bool:
    if event.kind is EventKind.EXCEPTION:
        # a class and a message without frames may be a remark of a run that went on
        return event.headed or (
            event.type is not None and not ended_well and not event.type.endswith("Warning")
        )
    if event.kind is EventKind.SCHEDULER:
        return any(
            word in event.text for word in ("error", "CANCELLED", "OOM", "Failed", "Killed", "Evicted")
        )
    if event.kind is EventKind.LAUNCHER:  # the box that torchrun draws; its head may be cut off
        return not ended_well and pattern(r"(?m)^\s*exitcode *: ?-?[1-9]").search(event.text) is not None
    return event.kind in (EventKind.CRASH, EventKind.DEVICE_ASSERT, EventKind.WATCHDOG)
