"""Facts out of flight records: in which collective each rank waits, who is behind, who called another one."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from torchdoctor.model import EventKind, Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Event, Transcript

NAMESPACE = "flight"

FACTS: dict[str, str] = {
    "flight.call": "str: the collective of a flight record's stack, as all_reduce",
    "flight.seq": "int: its sequence number in its process group",
    "flight.state": "str: scheduled, started or completed",
    "flight.ranks": "list: ranks whose records are there",
    "flight.missing": "list: ranks of the process group whose record is not there",
    "flight.behind": "list: ranks that never called the collective in which others wait; empty when none is",
    "flight.someone_behind": "bool: a rank never called the collective in which others wait",
    "flight.last_of_the_late": "bool: this is the last call of such a rank",
    "flight.calls_differ": "bool: at the same number the ranks are in different kinds of collectives",
    "flight.sizes_differ": "bool: at the same call the ranks pass tensors of different size or type",
    "flight.lines_differ": "bool: at the same number the ranks' own code stands at different lines",
    "flight.pending": "bool: a collective did not finish on some rank",
}

_STATUS = (
    r"flight record, group (?P<group>.{1,124}?), ranks (?P<ranks>[\d ?]{1,8000}): "
    r"last enqueued (?P<enqueued>-?\d+), last completed (?P<completed>-?\d+)"
)
_CALL = (
    r"flight record, group (?P<group>.{1,124}?): (?P<kind>collective|p2p) (?P<seq>-?\d+) (?P<op>\S{1,80}) "
    r"is (?P<state>\S{1,20}), (?P<input>.{0,2000}?) -> (?P<output>.{0,2000}), timeout (?P<timeout>-?\d+) ms"
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call:
    """One collective of a record."""

    event: Event
    group: str
    seq: int
    op: str
    state: str
    input: str
    output: str
    place: str  # the user's own innermost line


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Record:
    """A rank's record of one process group.

    ``calls`` are those that did not finish, or the last one where all did; ``done`` those before them.
    """

    rank: int | None
    group: str
    members: tuple[int, ...]
    enqueued: int
    completed: int
    calls: tuple[Call, ...]
    done: tuple[Call, ...] = ()

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
        return prod(int(one) for one in shape[1].split(",") if one.strip()) if shape else None


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


_last: list[tuple[Transcript, list[Record]]] = []


def records(transcript: Transcript) -> list[Record]:
    """All records of a text, one for each rank and process group; kept for the transcript asked last."""
    if not _last or _last[0][0] is not transcript:
        _last[:] = [(transcript, list(_read(transcript)))]
    return _last[0][1]


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
    calls: dict[tuple[str, str, EventKind], list[Call]] = defaultdict(list)
    for event in transcript.events:
        if not event.text.startswith("flight record, group "):
            continue
        status = _pattern(_STATUS).match(event.text)
        if status:
            heads.append((event, status))
            continue
        call = call_of(event)
        if call is not None:
            calls[event.source, call.group, event.kind].append(call)
    for event, status in heads:
        members = tuple(int(one[:9]) for one in status["ranks"].split() if one.isdecimal())
        yield Record(
            event.rank,
            status["group"],
            members,
            int(status["enqueued"]),
            int(status["completed"]),
            tuple(calls[event.source, status["group"], EventKind.STACK]),
            tuple(calls[event.source, status["group"], EventKind.LOG]),
        )


def call_of(event: Event) -> Call | None:
    """The collective that an event of a flight record stands for."""
    found = _pattern(_CALL).match(event.text)
    if not found:
        return None
    own = [frame for frame in event.frames if not frame.package]
    place = f"{own[-1].file.replace(chr(92), '/').rpartition('/')[2]}:{own[-1].line}" if own else ""
    return Call(
        event, found["group"], int(found["seq"]), found["op"], found["state"], found["input"],
        found["output"], place,
    )  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    call = call_of(event)
    if call is None or event.kind is not EventKind.STACK:
        return
    source = f"text:{event.source}:{event.line}"
    yield Fact.known("flight.call", call.op, source)
    yield Fact.known("flight.seq", call.seq, source)
    yield Fact.known("flight.state", call.state, source)
    group = [record for record in records(transcript) if record.group == call.group]
    ranks = tuple(sorted({record.rank for record in group if record.rank is not None}))
    yield Fact.known("flight.ranks", ranks, source)
    yield Fact.known("flight.pending", any(record.pending for record in group), source)
    members = {member for record in group for member in record.members}
    if members and ranks:
        yield Fact.known("flight.missing", tuple(sorted(members - set(ranks))), source)
    if len(group) < 2:
        return
    waited = max((r.calls[0].seq for r in group if r.pending), default=None)
    if waited is not None:
        late = [r for r in group if r.enqueued < waited and not r.pending]  # one that waits itself is astray
        behind = tuple(sorted(r.rank for r in late if r.rank is not None))
        yield Fact.known("flight.behind", behind, source)
        yield Fact.known("flight.someone_behind", bool(behind), source)
        yield Fact.known("flight.last_of_the_late", event.rank in behind, source)
    waits_here = any(one.seq == call.seq and one.state != "completed" for r in group for one in r.calls)
    same = [one for r in group for one in (*r.calls, *r.done) if one.seq == call.seq and waits_here]
    if len(same) < 2:
        return
    differ = len({one.op for one in same}) > 1
    yield Fact.known("flight.calls_differ", differ, source)
    yield Fact.known("flight.sizes_differ", not differ and len({one.input for one in same}) > 1, source)
    places = {one.place for one in same if one.place}
    yield Fact.known("flight.lines_differ", len(places) > 1, source)
