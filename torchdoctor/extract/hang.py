"""Where the main thread of each process stands, out of stack dumps, watchdog stacks and flight records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchdoctor.extract import Found, flight, once_a_text
from torchdoctor.extract.nccl_stacks import averages, is_main, wait_of
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.records import Record, record

FACTS: dict[str, str] = {
    "hang.in_own_code": "bool: this main thread stands in the user's own code, outside of torch",
    "hang.outside": "bool: this main thread is outside of any collective while other ranks wait in one",
    "hang.left_training": "bool: this thread waits in a collective of its own, most others average gradients",
}

# Functions of torch in which a rank waits for others without a frame of distributed_c10d.py: the gradients of
# DDP are averaged inside backward, and a CUDA stream waits for NCCL's kernels when it is synchronised.
_WAITS_IN = (
    ("torch/autograd/graph.py", "_engine_run_backward"),
    ("torch/autograd/__init__.py", "backward"),
    ("torch/cuda/__init__.py", "synchronize"),
    ("torch/cuda/streams.py", "synchronize"),
    ("torch/nn/parallel/distributed.py", ""),
    ("torch/distributed/fsdp/", ""),
    ("torch/distributed/utils.py", ""),
    ("torch/distributed/rendezvous.py", ""),
    ("torch/distributed/distributed_c10d.py", ""),
)
# of native frames: gdb, py-spy --native
_NATIVE_WAITS = (
    "ncclGroupEnd", "ncclAllReduce", "cudaStreamSynchronize", "cudaEventSynchronize",
    "cuStreamSynchronize", "gloo::", "ProcessGroupNCCL", "ProcessGroupGloo", "TCPStore",
)  # fmt: skip
_STACK_OF_COLLECTIVE = "Stack trace of the failed collective"


@record(frozen=True, slots=True)
class Stand(Record):
    """The main thread of one process. ``call`` is None for one that waits for nobody."""

    event: Event
    rank: int | None
    call: str | None
    place: str
    own_code: bool


@once_a_text
def stands(transcript: Transcript) -> list[Stand]:
    """The last known stand of each rank, and of each process without one."""
    ranked: dict[int, Stand] = {}
    others: list[Stand] = []
    # a stack says more than a record of the same rank, which comes first to be replaced
    for event in sorted(transcript.events, key=lambda event: not event.flight_record):
        stand = stand_of(event)
        if stand is None:
            continue
        if stand.rank is None:
            others.append(stand)
        else:  # a later dump of the same process replaces an earlier one
            ranked[stand.rank] = stand
    return [*ranked.values(), *others]


def stand_of(event: Event) -> Stand | None:
    """Where the thread of an event stands; None for other threads than the main one, and for other events."""
    record = flight.call_of(event) if event.flight_record else None
    if event.quoted or not (event.frames or record):
        return None
    if event.kind is EventKind.WATCHDOG:
        if _STACK_OF_COLLECTIVE not in event.text:
            return None
    elif event.kind is not EventKind.STACK or not is_main(event):
        return None
    if record is not None:
        call: str | None = record.op if record.state != "completed" else None
    else:
        wait = wait_of(event)
        call = wait.call if wait is not None else _waits_in(event.frames)
    own = [frame for frame in event.frames if not frame.package]
    place = f"{own[-1].place()} {own[-1].function}" if own else ""
    in_own = call is None and record is None and _outside_of_torch(event.frames)
    return Stand(event, event.rank, call, place, in_own)


def _outside_of_torch(frames: tuple[Frame, ...]) -> bool:
    """Did the user's own code ask for what the thread does, and not torch? It may be in another library."""
    for frame in reversed(frames):
        if frame.package == "torch" or not frame.package:
            return not frame.package
    return False


def _waits_in(frames: tuple[Frame, ...]) -> str | None:
    for frame in reversed(frames):
        file = frame.file.replace("\\", "/")
        for path, function in _WAITS_IN:
            if path in file and function in ("", frame.function):
                return frame.function
        if any(name in frame.function for name in _NATIVE_WAITS):
            return frame.function
        if not frame.package:
            return None
    return None


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    stand = stand_of(event)
    if stand is None:
        return
    yield "in_own_code", stand.own_code
    found = stands(transcript)
    if len(found) < 2:
        return
    waiting = any(one.call is not None for one in found)
    outside = waiting and stand.call is None and any(one.event is event for one in found)
    yield "outside", outside
    others = [one for one in found if one.event is not event]
    training = 2 * sum(averages(one.event) for one in others) > len(others)
    yield "left_training", training and wait_of(event) is not None


def strays(transcript: Transcript) -> tuple[tuple[int, ...], str] | None:
    """The ranks whose stacks stand elsewhere than those of the others, with the reason in words.

    Where all that is known are flight records, those say more by their numbers.
    """
    found = [stand for stand in stands(transcript) if stand.rank is not None]
    if all(stand.event.flight_record for stand in found):
        return None
    if len(found) < 2:
        return None
    waiting = [stand for stand in found if stand.call is not None]
    outside = [stand for stand in found if stand.call is None]
    if waiting and outside:
        return _ranks(outside), "its stack stands outside of the collective in which others wait"
    votes = Counter((stand.call, stand.place) for stand in found)
    if len(votes) < 2:
        return None
    fewest = min(votes.values())
    small = [stand for stand in found if votes[stand.call, stand.place] == fewest]
    what = "wait in different calls" if waiting else "stand at different lines"
    return _ranks(small), f"the ranks' stacks {what}"


def _ranks(group: list[Stand]) -> tuple[int, ...]:
    return tuple(sorted(stand.rank for stand in group if stand.rank is not None))
