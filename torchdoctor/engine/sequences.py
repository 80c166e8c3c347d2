"""Which rank is missing, behind or astray, by the numbers of the collectives that the ranks report."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from torchdoctor.extract import flight
from torchdoctor.extract.nccl_ranks import GIVE_UP, picture, timeouts_in
from torchdoctor.model import Transcript
from torchdoctor.number import elements
from torchdoctor.patterns import pattern

# "Last enqueued NCCL work: 7, last completed NCCL work: 6" from torch 2.4, "last enqueued work" from 2.6 on
_STATUS = (
    r"(?:Rank (?P<rank>\d{1,6})\][^\n]{0,300}?)?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,15})"
    r"(?:, last (?:started work: -?\d{1,15}, last )?completed (?:NCCL )?work: (?P<completed>-?\d{1,15}))?"
)
# torch 1.11 on, with TORCH_DISTRIBUTED_DEBUG=DETAIL
_FINGERPRINT = (
    r"[Rr]ank (?P<rank>\d{1,6}) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<seq>\d{1,15}), ?)?"
    r"OpType=(?P<op>\w{1,40})(?:, ?TensorShape=\[(?P<shape>[\d, ]{0,80})\])?"
)
_GROUP = r"\[PG (?:ID )?\w+(?: PG GUID (?P<guid>\w+))?(?: ?\((?P<name>[^)]{0,60})\))?"


class Position:
    """Where a rank stands: the collective it waits in, and how far its queue is."""

    __slots__ = ("completed", "enqueued", "group", "late", "numel", "op", "rank", "seq", "timed_out")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.seq: int | None = None
        self.op: str | None = None
        self.numel: int | None = None
        self.enqueued: int | None = None
        self.completed: int | None = None
        self.timed_out = False  # it gave up itself, was not only told to
        self.group = ""
        self.late = False  # it gave up long after the others


class Stray(NamedTuple):
    """The ranks that are unlike the others, and in which way; more than one cannot be told apart."""

    ranks: tuple[int, ...]
    why: str


def positions(transcript: Transcript) -> dict[int, Position]:
    """What watchdog lines, fingerprints and flight records say of each rank."""
    found: dict[int, Position] = {}

    def at(rank: int) -> Position:
        return found.setdefault(rank, Position(rank))

    for event in transcript.events:
        text = event.text
        if event.quoted or event.recovered:
            continue
        if any(mark in text for mark in GIVE_UP[:5]):
            if event.rank is not None:
                at(event.rank).timed_out = True
            for timeout in timeouts_in(event):
                if timeout.rank is None:
                    continue
                place = at(timeout.rank)
                place.timed_out = True
                if place.seq is None:
                    place.seq, place.op, place.numel = timeout.seq, timeout.op, timeout.numel_in
                    group = pattern(_GROUP).search(text)
                    place.group = (group["name"] or group["guid"] or "") if group else ""
        if "enqueued" in text:
            for one in pattern(_STATUS).finditer(text):
                rank = event.rank if event.rank is not None else int(one["rank"]) if one["rank"] else None
                if rank is not None and (place := at(rank)).enqueued is None:
                    place.enqueued = int(one["enqueued"])
                    place.completed = int(one["completed"]) if one["completed"] else None
        if "is running collective" in text:
            for one in pattern(_FINGERPRINT).finditer(text):
                place = at(int(one["rank"]))
                place.seq = int(one["seq"]) if one["seq"] else place.seq
                place.op = one["op"]
                if one["shape"] is not None:
                    place.numel = elements(one["shape"])
    for rank in picture(transcript).late:
        at(rank).late = True
    for record in flight.latest(transcript):
        if record.rank is None:
            continue
        place = at(record.rank)
        place.enqueued, place.completed = record.enqueued, record.completed
        if record.pending:
            place.seq, place.op, place.numel = record.seq, record.op, record.numel
    return found


def behind(found: dict[int, Position], world: set[int]) -> Stray | None:
    """The ranks that never called the collective in which others wait. ``world`` holds all ranks."""
    known = _one_group(found)
    target = max((place.seq for place in known.values() if place.seq is not None), default=None)
    late = [
        rank
        for rank, place in known.items()
        if target is not None
        and place.enqueued is not None
        and 0 <= place.enqueued < target
        and not place.timed_out
        and place.seq is None  # a rank that waits itself is astray, not late
    ]
    if not late or len(late) >= len(world | set(known)):
        return None
    lowest = min(known[rank].enqueued or 0 for rank in late)
    last = tuple(sorted(rank for rank in late if known[rank].enqueued == lowest))
    return Stray(last, f"it never called collective {lowest + 1}, in which others waited")


def stray(found: dict[int, Position], world: set[int], silent: set[int]) -> Stray | None:
    """The ranks whose numbers differ from the others'. None where nothing is told.

    ``world`` holds all ranks that the text names, ``silent`` those that print nothing about a failure.
    """
    known = _one_group(found)
    late = tuple(sorted(rank for rank, place in known.items() if place.late))
    if late:
        return Stray(late, "it came to the collective when the others had given up")
    waiting = {rank: place for rank, place in known.items() if place.seq is not None}
    gave_up = {rank for rank, place in known.items() if place.timed_out}
    others = (world | set(known)) - gave_up
    odd = _odd_one(waiting)
    if gave_up and others and len(others) < len(gave_up) and (odd is None or len(odd.ranks) > len(others)):
        return Stray(tuple(sorted(others)), "the others waited for it in a collective and gave up")
    if odd is not None:
        return odd
    if gave_up and len(others) == 1 and others <= silent:
        # a rank that waits as well gives up at the same time, or loses the connection, and says so
        return Stray(tuple(others), "the other one waited for it in a collective and gave up")
    if len(gave_up) == 1 and len(others) == 1:
        return Stray(
            tuple(sorted(gave_up | others)), "one gave up waiting; the log lacks the numbers of both"
        )
    if len(gave_up) > 1 and not others:
        return Stray(tuple(sorted(gave_up)), "all ranks wait in the same collective")
    return None


def _one_group(found: dict[int, Position]) -> dict[int, Position]:
    """Positions in the process group that most ranks wait in; numbers of two groups do not compare."""
    groups: dict[str, int] = Counter(place.group for place in found.values() if place.group)
    if len(groups) < 2:
        return found
    largest = max(groups, key=lambda name: groups[name])
    return {rank: place for rank, place in found.items() if place.group in ("", largest)}


def _odd_one(waiting: dict[int, Position]) -> Stray | None:
    for name, attribute in (
        ("kinds of collectives", "op"),
        ("sequence numbers", "seq"),
        ("sizes of the collective", "numel"),
    ):
        votes: dict[object, list[int]] = defaultdict(list)
        for rank, place in waiting.items():
            value = getattr(place, attribute)
            if value is not None:
                votes[value].append(rank)
        if len(votes) < 2:
            continue
        fewest = min(len(ranks) for ranks in votes.values())
        small = sorted(rank for ranks in votes.values() if len(ranks) == fewest for rank in ranks)
        return Stray(tuple(small), f"the ranks' {name} differ")
    return None
