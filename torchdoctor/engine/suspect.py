"""Failures that no rule knows: which exception looks most like the cause, and did anything fail at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchdoctor.engine.finding import quote
from torchdoctor.engine.textfacts import related
from torchdoctor.intake.draft import pattern
from torchdoctor.model import Ending, Event, EventKind, Form, Frame, RelationKind, Suspect, Transcript

# exceptions that report the end of something else
_REPORTERS = frozenset(
    {
        "ChildFailedError",
        "CalledProcessError",
        "SystemExit",
        "ProcessExitedException",
        "ProcessRaisedException",
        "KeyboardInterrupt",
        "SignalException",
        "SubprocessFailed",
        "BrokenPipeError",
        "EOFError",
        "ConnectionResetError",
        "RayTaskError",
        "StopIteration",
        "GeneratorExit",
    }
)

_FAILURES = frozenset(
    {EventKind.EXCEPTION, EventKind.CRASH, EventKind.DEVICE_ASSERT, EventKind.SCHEDULER, EventKind.WATCHDOG}
)


# a wrapper stands near what it wraps; other ranks may print this many events between them
NEAR = 512

# nobody's code: what other packages wrap their functions in
_PLUMBING = frozenset({"torch", "python", "typing_extensions", "decorator", "attrs", "wrapt"})


def own_frame(event: Event, transcript: Transcript) -> Frame | None:
    """The innermost frame of a file of the user's in the event or in what stands behind it."""
    if event.kind is EventKind.STACK:
        event = _waited_for(event, transcript)
    members = list(related(event, transcript))
    if event.kind is not EventKind.EXCEPTION:
        below = _stack_below(event, transcript)
        if below and below[0].line == event.end_line + 1 and not event.text.rstrip().endswith(":"):
            # a message with its stack right under it: VS Code's debugger, which prints the innermost first
            return next((frame for frame in below[0].frames if not frame.package), None)
        members += below
    handled = _handled(members)
    for member in (*reversed([one for one in members if one.id not in handled]), *reversed(members)):
        for frame in reversed(member.frames):
            if not frame.package and frame.file != "<string>":  # python -c, exec
                return frame
    return None


def _handled(members: list[Event]) -> set[int]:
    """The ids of those during whose handling the first one, or what it wraps, was raised."""
    if not any(one.kind is RelationKind.CONTEXT for member in members for one in member.relations):
        return set()
    inside = {member.id: member for member in members}
    waiting, reached = [members[0].id], set[int]()
    while waiting:
        number = waiting.pop()
        if number in inside and number not in reached:
            reached.add(number)
            relations = inside[number].relations
            waiting.extend(one.event for one in relations if one.kind is not RelationKind.CONTEXT)
    return inside.keys() - reached


# where a parent waits for its children, and where a child begins
_PARENT = (
    "torch/utils/data/dataloader.py", "multiprocessing/pool.py", "multiprocessing/queues.py",
    "multiprocessing/connection.py", "multiprocessing/process.py", "multiprocessing/popen_fork.py",
    "concurrent/futures/_base.py", "concurrent/futures/process.py",
)  # fmt: skip
_CHILD = (
    "torch/utils/data/_utils/worker.py", "multiprocessing/pool.py", "multiprocessing/process.py",
    "concurrent/futures/process.py",
)  # fmt: skip


def _waited_for(stack: Event, transcript: Transcript) -> Event:
    """The stack of a child that this process waits for, where the text shows one in the user's code."""
    if not _stands_in(reversed(stack.frames), _PARENT) or _stands_in(stack.frames, _CHILD):
        return stack
    for other in transcript.events:
        if other.kind is EventKind.STACK and not other.quoted and _stands_in(other.frames, _CHILD):
            return other
    return stack


def _stands_in(frames: Iterable[Frame], files: tuple[str, ...]) -> bool:
    """Does one of the frames up to the user's own code, which must be there, stand in one of the files?"""
    found = False
    for frame in frames:
        if not frame.package:
            return found
        found = found or frame.file.replace("\\", "/").endswith(files)
    return False


def _stack_below(event: Event, transcript: Transcript) -> list[Event]:
    """The stack that a record prints under itself, as Dynamo's "User stack trace:"."""
    for other in transcript.events[event.id + 1 : event.id + 6]:
        if other.kind is EventKind.EXCEPTION and other.stream == event.stream:
            return [other] if other.type is None and other.frames else []
    return []


def user_frame(event: Event, transcript: Transcript) -> Frame | None:
    """The innermost frame of the user's own code; without one, the outermost of a third-party package.

    It is looked for in the event and what stands behind it, then in the exceptions that wrap or follow it: a
    worker, a compiler or a thread of torch knows nothing of the line that started it.
    """
    found = own_frame(event, transcript)
    if found is not None:
        return found
    members = list(related(event, transcript))
    around = list(outers(members, transcript))
    for written in (False, True):
        for member in (*reversed(members), *around) if written else around:
            for frame in reversed(member.frames):
                if not frame.package and (written or frame.file != "<string>"):
                    return frame
    for member in (*reversed(around), *members):
        for frame in member.frames:
            if frame.package not in _PLUMBING:
                return frame
    return None


def outers(members: list[Event], transcript: Transcript) -> Iterator[Event]:
    """The events that refer to these, the nearest first."""
    inside = {member.id for member in members}
    waiting = [member.id for member in members]
    pointing: dict[int, list[Event]] = {}
    low, high = min(waiting), max(waiting)
    for event in transcript.events[max(0, low - NEAR) : high + NEAR]:
        for relation in event.relations:
            pointing.setdefault(relation.event, []).append(event)
    while waiting:
        for outer in pointing.get(waiting.pop(0), ()):
            if outer.id not in inside:
                inside.add(outer.id)
                waiting.append(outer.id)
                yield outer


def struck_frame(warning: Event, transcript: Transcript) -> Frame | None:
    """The user's frame of the exception that a warning foretold: the first one behind it in the same code.

    The same package of others, or, as a warning of torch says little of the rest of it, the same file.
    """
    files = {frame.file for frame in warning.frames}
    packages = {frame.package for frame in warning.frames} - {"", "torch", "python"}
    for other in transcript.events[warning.id + 1 : warning.id + NEAR]:
        if other.kind is not EventKind.EXCEPTION or other.quoted or other.recovered:
            continue
        if warning.rank is not None and other.rank not in (None, warning.rank):
            continue
        behind = [frame for member in related(other, transcript) for frame in member.frames]
        if any(frame.file in files or frame.package in packages for frame in behind):
            return own_frame(other, transcript)
    return None


def shown_frame(
    transcript: Transcript, kinds: tuple[EventKind, ...] = (EventKind.STACK, EventKind.WARNING)
) -> Frame | None:
    """The user's frame of the first stack of a process, or the first warning, that shows one."""
    shown = (event for event in transcript.events if event.kind in kinds and not event.quoted)
    return next((frame for event in shown if (frame := own_frame(event, transcript)) is not None), None)


def nearby_frame(event: Event, transcript: Transcript) -> Frame | None:
    """The user's frame of the event, else of the next exception on the same rank, else of the one before.

    Asserts, native ends and lines of a driver have no frames, and the stack of a helper thread holds none of
    the user's.
    """
    frame = user_frame(event, transcript)
    if frame is not None:
        return frame
    foreign: Frame | None = None
    after = transcript.events[event.id + 1 : event.id + NEAR]
    before = transcript.events[max(0, event.id - NEAR) : event.id]
    for other in (*after, *reversed(before)):
        if (
            (other.kind is EventKind.EXCEPTION or "Error detected in " in other.text)  # by anomaly detection
            and other.frames
            and not other.quoted
            and not other.recovered
            and (event.rank is None or other.rank in (None, event.rank))
        ):
            found = user_frame(other, transcript)
            if found is not None and not found.package:
                return found
            foreign = foreign or found
    return foreign if event.kind is not EventKind.EXCEPTION else None


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
    return Suspect(event.type, event.text, event.rank, user_frame(event, transcript), quote(event))


def fallback(transcript: Transcript) -> Suspect | None:
    """Where no exception is left: the last line that says something failed."""
    for event in reversed(transcript.events):
        if event.quoted or event.recovered:
            continue
        if (
            event.kind in _FAILURES
            or event.kind is EventKind.BUILD
            or event.level in ("ERROR", "CRITICAL", "FATAL")
        ):
            return Suspect(event.type, event.text, event.rank, nearby_frame(event, transcript), quote(event))
    return None


def has_failure(transcript: Transcript) -> bool:
    """Does the text hold a failure that the run did not get over?"""
    if transcript.form in (Form.SOURCE_CODE, Form.BINARY, Form.EMPTY):
        return any(event.headed and not event.quoted and not event.recovered for event in transcript.events)
    return (
        transcript.ending is Ending.BAD
        or prints_failure(transcript)
        or any(_compares(event) for event in transcript.events if not event.quoted and not event.recovered)
    )


def prints_failure(transcript: Transcript, timeouts: bool = True) -> bool:
    """Does a program print a failure in the text? What people say of how it ended does not count.

    ``timeouts``: a watchdog's line counts. It says that ranks waited, and what for is told elsewhere.
    """
    ended_well = transcript.ending is Ending.GOOD
    return any(
        _failed(event, ended_well)
        for event in transcript.events
        if not event.quoted and not event.recovered and (timeouts or event.kind is not EventKind.WATCHDOG)
    )


# multiprocessing, selectors, threading, queue, subprocess
_WAITS = frozenset(
    ("_poll", "poll", "select", "wait", "acquire", "waitpid", "_wait_for_tstate_lock", "join", "recv")
)

# torch.testing, torch.allclose in an assertion, NumPy
_COMPARED = ("are not close!", "Mismatched elements: ", "Not equal to tolerance", "allclose(")


def _compares(event: Event) -> bool:
    """Does a test say that numbers differ? That is measured, as figures in a question are: no call failed."""
    return (
        event.kind is EventKind.EXCEPTION
        and event.type in ("AssertionError", None)
        and (
            any(words in event.text or words in _last_code(event) for words in _COMPARED)
            # pytest, of an assertion that compares two values
            or (event.text.startswith("assert ") and " == " in event.text.partition("\n")[0])
        )
    )


def _interrupted(event: Event) -> bool:
    """Was a run ended by hand? A Ctrl-C, by its name or the last frames of a wait where that was cut off."""
    if event.kind is not EventKind.EXCEPTION:
        return False
    cut_off = event.type is None and bool(event.frames) and event.frames[-1].function in _WAITS
    return event.type == "KeyboardInterrupt" or cut_off


def _last_code(event: Event) -> str:
    return event.frames[-1].code if event.frames else ""


def _failed(event: Event, ended_well: bool) -> bool:
    if _compares(event) or _interrupted(event):
        return False
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
    return event.kind in _FAILURES
