"""What a flight record says as facts: its call, its ranks, who is behind, and how the ranks' calls differ."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.extract.flight import Call, Record, call_of, sizes_differ, waited_at
from torchdoctor.extract.flight_hang import together
from torchdoctor.model import Event, EventKind, Transcript

FACTS: dict[str, str] = {
    "flight.state": "str: how far the operation came; scheduled, started or completed",
    "flight.someone_behind": "bool: a rank never called the collective in which others wait",
    "flight.last_of_the_late": "bool: this is the last call of such a rank",
    "flight.late_in_p2p": "bool: the last that such a rank printed is that it sends or receives, unbatched",
    "flight.calls_differ": "bool: at the same number the ranks are in different kinds of collectives",
    "flight.sizes_differ": "bool: at the same call the ranks pass tensors of different size or type",
    "flight.waits_elsewhere": "bool: this rank waits in another call, or group, than the others of its group",
    "flight.left_training": "bool: the others wait in a call of training and this rank is not in it",
    "flight.circle": "bool: ranks wait for each other in different process groups, in a circle",
    "flight.pending": "bool: a collective did not finish on some rank",
}

# torch 2.9 to 2.13, ProcessGroupNCCL.cpp
_UNBATCHED = "An unbatched P2P op (send/recv) was called on this ProcessGroup"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    call = call_of(event)
    if call is None or event.kind is not EventKind.STACK:
        return
    yield "state", call.state
    group = together(transcript).groups.get(call.group, [])
    yield "pending", any(record.pending for record in group)
    if len(group) < 2:
        return
    yield from _compared(event, call, group, transcript)


def _compared(event: Event, call: Call, group: list[Record], transcript: Transcript) -> Iterator[Found]:
    """What the records of several ranks of the call's group say."""
    seen = together(transcript)
    waited = max((r.calls[0].seq for r in group if r.pending), default=None)
    yield "circle", bool(seen.circle)
    if waited is not None:
        late = [r for r in group if r.enqueued < waited and not r.pending]  # one that waits itself is astray
        behind = {r.rank for r in late if r.rank is not None}
        yield "someone_behind", bool(behind)
        last = event.rank in behind and event.rank in seen.roots
        yield "last_of_the_late", last
        yield "late_in_p2p", last and _in_p2p(event, transcript)
    mine = seen.astray.get((call.group, event.rank))
    if mine is not None and mine.call is not None and mine.call.group != call.group and seen.roots:
        mine = None  # what it waits for elsewhere is a rank that is late
    yield "left_training", mine is not None and mine.training
    yield "waits_elsewhere", mine is not None and mine.call is not None
    same = waited_at(call.seq, group)
    if len(same) < 2:
        return
    yield "calls_differ", len({one.op for one in same}) > 1
    yield "sizes_differ", sizes_differ(same)


def _in_p2p(event: Event, transcript: Transcript) -> bool:
    """torch says so once a group, before it sets up the communicator; a rank that went on prints more."""
    own = [one for one in transcript.events if one.rank == event.rank]
    told = next((one for one in own if _UNBATCHED in one.text), None)
    return told is not None and not any(
        one.kind is EventKind.LOG and one.source == told.source and one.id > told.id for one in own
    )
