"""Flight records: the calls that each rank made in each process group, out of the events that hold them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torchdoctor.extract import once_a_text
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.number import count, elements
from torchdoctor.patterns import pattern
from torchdoctor.records import Record as Frozen
from torchdoctor.records import record as frozen

MAX_MEMBERS = 1 << 16

_STATUS = (
    r"flight record, group (?P<group>.{1,124}?), ranks (?P<ranks>[\d ?-]{1,8000}): "
    r"last enqueued (?P<enqueued>-?\d+), last completed (?P<completed>-?\d+)"
)
_CALL = (
    r"flight record, group (?P<group>.{1,124}?): (?P<kind>collective|p2p) (?P<seq>-?\d+) (?P<op>\S{1,80}) "
    r"is (?P<state>\S{1,20}), (?P<input>.{0,2000}?) -> (?P<output>.{0,2000}), timeout (?P<timeout>-?\d+) ms"
    r"(?:, at (?P<place>\S.{0,1020}))?"
)

_HISTORY = (
    r"flight record, group (?P<group>.{1,124}?): calls (?P<low>-?\d+) to (?P<high>-?\d+): (?P<calls>.*)"
)
_PLACED = r"(?P<op>\S{1,80}) at (?P<place>[^;]{1,1020}) \d+ times? to -?\d+(?:; |$)"


@frozen(frozen=True, slots=True)
class Call(Frozen):
    """One collective of a record."""

    event: Event
    group: str
    seq: int
    op: str
    state: str
    input: str
    output: str
    place: str  # the user's own innermost line


@frozen(frozen=True, slots=True)
class Record(Frozen):
    """A rank's record of one process group.

    ``calls`` are those that did not finish, or the last one where all did; ``done`` those before them;
    ``places`` the kinds of calls that the record holds, each with the user's line that made it.
    """

    rank: int | None
    group: str
    members: tuple[int, ...]
    enqueued: int
    completed: int
    calls: tuple[Call, ...]
    done: tuple[Call, ...] = ()
    places: frozenset[tuple[str, str]] = frozenset()

    @property
    def pending(self) -> bool:
        return any(call.state != "completed" for call in self.calls)

    @property
    def seq(self) -> int | None:
        return self.calls[0].seq if self.calls else None

    @property
    def op(self) -> str | None:
        return self.calls[0].op.upper() if self.calls else None

    @property
    def numel(self) -> int | None:
        shape = re.search(r"\[([\d, ]*)\]", self.calls[0].input) if self.calls else None
        return elements(shape[1]) if shape else None


@once_a_text
def records(transcript: Transcript) -> list[Record]:
    """All records of a text, one for each rank and process group."""
    return list(_read(transcript))


def latest(transcript: Transcript) -> list[Record]:
    """The records of the process group in which most ranks wait, one a rank."""
    groups: dict[str, dict[int | None, Record]] = defaultdict(dict)
    for record in records(transcript):
        groups[record.group].setdefault(record.rank, record)
    if not groups:
        return []
    waiting = max(groups.values(), key=lambda one: (sum(r.pending for r in one.values()), len(one)))
    return list(waiting.values())


def _read(transcript: Transcript) -> Iterator[Record]:
    heads: list[tuple[Event, re.Match[str]]] = []
    places: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
    calls: dict[tuple[str, str, EventKind], list[Call]] = defaultdict(list)
    for event in transcript.events:
        if not event.flight_record:
            continue
        status = pattern(_STATUS).match(event.text)
        if status:
            heads.append((event, status))
            continue
        history = pattern(_HISTORY).match(event.text)
        if history:
            placed = pattern(_PLACED).finditer(history["calls"])
            places[event.source, history["group"]] = frozenset((one["op"], one["place"]) for one in placed)
            continue
        call = call_of(event)
        if call is not None:
            calls[event.source, call.group, event.kind].append(call)
    for event, status in heads:
        yield Record(
            event.rank,
            status["group"],
            _members(status["ranks"]),
            int(status["enqueued"]),
            int(status["completed"]),
            tuple(calls[event.source, status["group"], EventKind.STACK]),
            tuple(calls[event.source, status["group"], EventKind.LOG]),
            places.get((event.source, status["group"]), frozenset()),
        )


@lru_cache(maxsize=64)
def _members(text: str) -> tuple[int, ...]:
    """``0-3 8`` as 0, 1, 2, 3, 8."""
    found: list[int] = []
    for part in text.split():
        low, _, high = part.partition("-")
        first = count(low, 7)
        if first is not None and len(found) < MAX_MEMBERS:
            last = count(high, 7)
            found.extend(range(first, min(first if last is None else last, first + MAX_MEMBERS) + 1))
    return tuple(found[:MAX_MEMBERS])


def call_of(event: Event) -> Call | None:
    """The collective that an event of a flight record stands for."""
    found = pattern(_CALL).match(event.text)
    if not found:
        return None
    own = [frame for frame in event.frames if not frame.package]
    place = own[-1].place() if own else found["place"] or ""
    return Call(
        event, found["group"], int(found["seq"]), found["op"], found["state"], found["input"],
        found["output"], place,
    )  # fmt: skip


def waited_at(seq: int, group: Sequence[Record]) -> list[Call]:
    """The ranks' calls of one number; none where no rank waits in it."""
    if not any(one.seq == seq and one.state != "completed" for record in group for one in record.calls):
        return []
    return [one for record in group for one in (*record.calls, *record.done) if one.seq == seq]


def sizes_differ(same: Sequence[Call]) -> bool:
    """One kind of call, with tensors of different sizes."""
    return len({one.op for one in same}) == 1 and len({one.input for one in same}) > 1
