"""In which collective the stacks of several processes wait, and whether they wait in the same one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.model import EventKind

if TYPE_CHECKING:
    from torchdoctor.model import Event, Transcript

# functions of distributed_c10d.py that only dress up another call
_DRESS = ("wrapper", "wait", "_wait", "get_world_size", "get_rank")


@dataclass(frozen=True, slots=True)
class Wait:
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
            place = f"{file.rpartition('/')[2]}:{frame.line}"
    return Wait(event.id, call, place) if call else None


def stacks_differ(transcript: Transcript) -> bool | None:
    """Do the main threads of different processes wait in different collectives, or at different lines?

    None with fewer than two processes in a collective. A process outside of one is slow, not astray.
    """
    waits = [
        wait
        for event in transcript.events
        if event.kind is EventKind.STACK and not event.quoted and _is_main(event)
        if (wait := wait_of(event)) is not None
    ]
    if len(waits) < 2:
        return None
    return len({(wait.call, wait.place) for wait in waits}) > 1


def _is_main(event: Event) -> bool:
    return "MainThread" in event.text or any(frame.function == "<module>" for frame in event.frames)
