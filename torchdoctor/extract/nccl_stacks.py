"""In which collective the stacks of several processes wait, and whether they wait in the same one."""

from __future__ import annotations

from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.records import Record, record

# functions of distributed_c10d.py that only dress up another call
_DRESS = ("wrapper", "wait", "_wait", "get_world_size", "get_rank")


@record(frozen=True, slots=True)
class Wait(Record):
    """A thread that waits in a collective: the collective, and the user's own line that asked for it."""

    event: int
    call: str
    place: str


def wait_of(event: Event) -> Wait | None:
    """The collective in which a stack's thread is, or None. Frames stand outermost first."""
    call = place = ""
    for frame in event.frames:
        file = frame.file.replace("\\", "/")
        if not call and file.endswith("distributed/distributed_c10d.py") and frame.function not in _DRESS:
            call = frame.function
        elif not call and not frame.package:
            place = frame.place()
    return Wait(event.id, call, place) if call else None


def is_main(event: Event) -> bool:
    """True for the thread that runs the program: py-spy names it, else its outermost frame is the module."""
    if "MainThread" in event.text or event.flight_record:
        return True
    return any(frame.function == "<module>" for frame in event.frames[:4])


def stacks_differ(transcript: Transcript) -> bool | None:
    """Do the main threads of different processes wait in different collectives, or at different lines?

    None with fewer than two processes in a collective. A process outside of one is slow, not astray. One in
    backward, which averages gradients, is in another collective than one that asks for a barrier.
    """
    calls: set[tuple[str, str]] = set()
    waiting = 0
    for event in transcript.events:
        if event.kind is not EventKind.STACK or event.quoted or not is_main(event):
            continue
        wait = wait_of(event)
        if wait is not None:
            calls.add((wait.call, wait.place))
            waiting += 1
        elif averages(event):
            calls.add(("backward", ""))
            waiting += 1
    return len(calls) > 1 if waiting > 1 else None


def averages(event: Event) -> bool:
    """Is a thread in backward, where gradients are averaged, and in no collective of its own?"""
    return any(
        frame.function == "_engine_run_backward" or frame.file.endswith("torch/autograd/__init__.py")
        for frame in event.frames
    )
