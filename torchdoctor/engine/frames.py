"""Which frame is the user's: one function, and an ordered list of places where it is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torchdoctor.engine.textfacts import related
from torchdoctor.intake.frames import COMMAND_LINES, cloned, package_of
from torchdoctor.intake.interleave import MARKED
from torchdoctor.model import Event, EventKind, Frame, RelationKind, Transcript
from torchdoctor.records import replace

# a wrapper stands near what it wraps; other ranks may print this many events between them
NEAR = 512
# of what followed from an answer so many events are looked at for a frame
MOST_EVENTS = 8

# as torch.multiprocessing.spawn counts its processes: "-- Process 1 terminated with the following error:"
SPAWNED = "-- Process "
# nobody's code: what other packages wrap their functions in, are called by, or are installed by
_PLUMBING = COMMAND_LINES | frozenset(
    {
        "torch",
        "python",
        "typing_extensions",
        "decorator",
        "attrs",
        "wrapt",
        "pip",
        "setuptools",
        "pyproject_hooks",
    }
)


def user_frame(event: Event, transcript: Transcript, others: Iterable[Event] = ()) -> Frame | None:
    """The user's frame of a failure and its further events ``others``: of the sources the first that has one.

    A frame of a third-party package stands for it where nothing shows the user's own.
    """
    events = [event, *(one for one in others if one is not event and not _of_another(event, one))]
    for source in _SOURCES:
        frame = source(events, transcript)
        if frame is not None:
            name = "" if frame.package else cloned(frame.file)
            return replace(frame, package=name) if name else frame
    return None


def _of_another(event: Event, other: Event) -> bool:
    """Does another process show the other event, whose stack says nothing of where the first was raised?"""
    return bool(event.frames) and event.stream != other.stream and event.rank == other.rank


Source = Callable[[list[Event], Transcript], Frame | None]


def _raised(events: list[Event], transcript: Transcript) -> Frame | None:
    """The innermost frame of the user's own file in the events, or in what stands behind them."""
    of_clone: Frame | None = None
    for event in events:
        frame = own_frame(event, transcript)
        # where a module calls warnings.warn is where it speaks, not where something went wrong
        if event.kind is EventKind.WARNING and (frame is None or "warnings.warn(" in frame.code):
            frame = _struck(event, transcript) or frame
        if frame is not None and not cloned(frame.file):
            return frame
        of_clone = of_clone or frame
    return of_clone


def _scripted(events: list[Event], transcript: Transcript) -> Frame | None:
    """The innermost place of the user's own among those that TorchScript shows of what it refused."""
    for event in events:
        if MARKED not in event.text:
            continue
        from torchdoctor.extract.torchscript import places

        for place in places(event):
            if place.file[:1] != "<" and not (package_of(place.file) or cloned(place.file)):
                return place
    return None


def _around(events: list[Event], transcript: Transcript) -> Frame | None:
    """That of an exception that wraps or follows one of the events.

    A worker, a compiler or a thread of torch knows nothing of the line that started it.
    """
    for event in events[:MOST_EVENTS]:
        members = list(related(event, transcript))
        around = list(outers(members, transcript))
        for written in (False, True):
            for member in (*reversed(members), *around) if written else around:
                for frame in reversed(member.frames):
                    if not frame.package and (written or frame.file != "<string>"):
                        return frame
    return None


def _nearby(events: list[Event], transcript: Transcript) -> Frame | None:
    """That of the next exception on the same rank, else of the one before, for an event without frames.

    Asserts, native ends and lines of a driver have no frames, and the stack of a helper thread holds none of
    the user's.
    """
    event = events[0]
    if _package(events, transcript) is not None or _of_installer(event):
        return None
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
            found = own_frame(other, transcript) or _around([other], transcript)
            if found is not None:
                return found
    return None


def _shown(events: list[Event], transcript: Transcript) -> Frame | None:
    """That of the first stack of a process, for a failure that is no exception."""
    if events[0].kind is EventKind.EXCEPTION or _package(events, transcript) is not None:
        return None
    stacks = (one for one in transcript.events if one.kind is EventKind.STACK and not one.quoted)
    return next((frame for stack in stacks if (frame := own_frame(stack, transcript)) is not None), None)


def _of_installer(event: Event) -> bool:
    """Is it a line of pip's or uv's own? Most events are exceptions, and need not ask."""
    if event.kind is EventKind.EXCEPTION:
        return False
    from torchdoctor.engine.build_reading import is_of_installer

    return is_of_installer(event)


def _package(events: list[Event], transcript: Transcript) -> Frame | None:
    """Of the outermost third-party package the innermost frame: the line that called what failed.

    In the process that it happened in: another one that hands the exception on only raises it once more.
    """
    members = list(related(events[0], transcript))
    around = list(outers(members, transcript))
    inside = of_process(around, {member.id for member in members})
    beyond = [event for event in around if event not in inside]
    for member in (*reversed(inside), *members, *reversed(beyond)):
        outermost = next((frame for frame in member.frames if frame.package not in _PLUMBING), None)
        if outermost is not None:
            # what it was handed on by, or raised while it was handled, calls from another line
            called = (frame for one in (*members, member) for frame in reversed(one.frames))
            return next(frame for frame in called if frame.package == outermost.package)
    return None


_SOURCES: tuple[Source, ...] = (_scripted, _raised, _around, _nearby, _shown, _package)


def of_process(around: list[Event], inside: set[int]) -> list[Event]:
    """Of the events that refer to those ``inside``, the nearest first, those that wrap no other process's."""
    kept: list[Event] = []
    for event in around:
        if any(one.event in inside and one.kind is not RelationKind.WRAPS for one in event.relations):
            kept.append(event)
            inside = inside | {event.id}
    return kept


def own_frame(event: Event, transcript: Transcript) -> Frame | None:
    """The innermost frame of a file of the user's in the event or in what stands behind it."""
    if event.kind is EventKind.STACK:
        event = _waited_for(_since(event, transcript), transcript)
    members = list(related(event, transcript))
    if event.kind is not EventKind.EXCEPTION:
        below = _stack_below(event, transcript)
        if below and below[0].line == event.end_line + 1 and not event.text.rstrip().endswith(":"):
            # a message with its stack right under it: VS Code's debugger, which prints the innermost first
            return next((frame for frame in below[0].frames if not frame.package), None)
        members += below
    handled = _handled(members)
    of_clone: Frame | None = None
    for member in (*reversed([one for one in members if one.id not in handled]), *reversed(members)):
        for frame in reversed(member.frames):
            if not frame.package and frame.file != "<string>":  # python -c, exec
                if not cloned(frame.file):
                    return frame
                of_clone = of_clone or frame
    return of_clone


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


def _since(stack: Event, transcript: Transcript) -> Event:
    """For the record of a call that has completed: where a dump shows the rank's main thread, if one does."""
    if not stack.flight_record or " is completed" not in stack.text or stack.rank is None:
        return stack
    dumps = (
        one
        for one in transcript.events
        if one.kind is EventKind.STACK and one.rank == stack.rank and not one.flight_record
    )
    return next((one for one in dumps if one.frames and one.frames[0].function == "<module>"), stack)


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


def _struck(warning: Event, transcript: Transcript) -> Frame | None:
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
