"""Rank, local rank and host of every event, from its file's name and from what the file's own lines say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.intake.file_names import Place, Ranks

_SPOKEN = (
    r"(?i)(?<![\w.])(?P<before>[a-z]+[ _-])?(?:global[_ ]?)?rank[ _]?(?:[:=]|is)? ?[\[(]?(?P<rank>\d{1,6})\b"
)
_OF_OTHERS = frozenset(
    ("from", "on", "to", "by", "with", "of", "local", "for", "node", "between", "peer", "remote", "waiting",
     "at", "than", "tp", "pp", "dp", "ep", "group", "and", "lora")
)  # fmt: skip
_LISTENED = 600
_STREAMS = 4096
# their lines speak of other processes than the one that writes the file
_OF_OTHERS_KINDS = (EventKind.LAUNCHER, EventKind.KERNEL_LOG, EventKind.SCHEDULER)


def spoken(events: Sequence[Event]) -> Ranks:
    """The rank that speaks in a file, by its prefixes, else by lines that name the rank they come from."""
    from torchdoctor.intake.file_names import Ranks

    tagged = {event.rank for event in events if event.rank is not None}
    if len(tagged) > 1:
        return Ranks(None, True)
    if tagged:
        return Ranks(tagged.pop())
    counts: dict[int, int] = {}
    for event in events[:_LISTENED]:
        if event.kind is EventKind.LAUNCHER or ("ank" not in event.text and "RANK" not in event.text):
            continue
        for found in pattern(_SPOKEN).finditer(event.text[:400]):
            before = (found["before"] or "").rstrip(" _-").lower()
            if before not in _OF_OTHERS:
                rank = int(found["rank"])
                counts[rank] = counts.get(rank, 0) + 1
    if not counts:
        return Ranks()
    best = max(counts, key=lambda rank: counts[rank])
    return Ranks(best) if counts[best] * 10 >= sum(counts.values()) * 9 else Ranks()


def placed(parts: list[Transcript]) -> list[Transcript]:
    """The transcripts with the places of their files filled in where their events name none."""
    parts = [_by_streams(part) for part in parts]
    sources = [(part.sources[0] if part.sources else "") for part in parts]
    locals_ = [ranks_of_locals(part.events) for part in parts]
    if not any(char.isdecimal() for name in sources for char in name) and not any(locals_):
        return parts
    from torchdoctor.intake.file_names import Place, Ranks, places

    speech = [
        Ranks(None, True) if len(known) > 1 else spoken(part.events)
        for part, known in zip(parts, locals_, strict=True)
    ]
    found = places(sources, speech)
    for index, (place, said) in enumerate(zip(found, speech, strict=True)):
        if len(locals_[index]) < 2 and (place.rank is not None or said.rank is not None):
            locals_[index] = {}  # one process, whose rank is known
    if not any(place.rank is not None for place in found):
        _by_order(sources, locals_)
    result: list[Transcript] = []
    for part, place, said, known in zip(parts, found, speech, locals_, strict=True):
        if said.several:
            place = Place(None, None, place.host)
        result.append(_filled(part, place, known) if place != Place() or known else part)
    return result


def of_nodes(part: Transcript) -> Transcript:
    """Without the ranks of ``srun -l`` where its tasks are launchers: other ranks stand behind them."""
    labelled = [event for event in part.events if event.stream[:1].isdecimal()]
    told: dict[str, set[tuple[int | None, int | None]]] = {}
    for event in labelled:
        label, _, tag = event.stream.partition("/")
        if tag and label.isdecimal():
            told.setdefault(label, set()).add((event.rank, event.local_rank))
    if all(
        len(places) == 1 and {int(label)} == {rank for rank, _ in places} for label, places in told.items()
    ):
        return part
    wrong = {event.id for event in labelled if "/rank" not in event.stream}
    events = (replace(event, rank=None) if event.id in wrong else event for event in part.events)
    return replace(part, events=tuple(events))


def ranks_of_locals(events: Sequence[Event]) -> dict[int, int | None]:
    """The rank of each local rank that speaks in a file, by its own words, else by those of its neighbours.

    The processes of one machine have ranks in a row, so that one that is known tells all others.
    """
    streams: dict[int, list[Event]] = {}
    told: dict[int, set[int]] = {}
    for event in events:
        if event.kind is EventKind.LAUNCHER:
            for box in pattern(r"rank *: (\d{1,6}) \(local_rank: (\d{1,6})\)").finditer(event.text):
                told.setdefault(int(box[2]), set()).add(int(box[1]))
        elif event.local_rank is not None:
            streams.setdefault(event.local_rank, []).append(event)
    for local, own in streams.items():
        rank = spoken(own).rank
        if rank is not None:
            told.setdefault(local, set()).add(rank)
    known: dict[int, int | None] = dict.fromkeys(streams)
    bases = {rank - local for local, ranks in told.items() if len(ranks) == 1 for rank in ranks}
    if len(bases) == 1:
        base = bases.pop()
        return {local: base + local for local in streams}
    for local in streams:
        ranks = told.get(local, set())
        known[local] = next(iter(ranks)) if len(ranks) == 1 else None
    return known


def _by_order(sources: list[str], locals_: list[dict[int, int | None]]) -> None:
    """Where no file says a rank, machines count in the order of their names."""
    speaking = [index for index, known in enumerate(locals_) if known]
    if any(rank is not None for known in locals_ for rank in known.values()) or not speaking:
        return
    if len(speaking) == 1 and len(locals_[speaking[0]]) == 1:
        return  # one process of one machine: of which machine is not told
    width = max(local for index in speaking for local in locals_[index]) + 1
    from torchdoctor.intake.file_names import natural

    speaking.sort(
        key=lambda index: [natural(int(t) if t.isdecimal() else t) for t in _tokens(sources[index])]
    )
    for place, index in enumerate(speaking):
        for local in locals_[index]:
            locals_[index][local] = place * width + local


def _by_streams(part: Transcript) -> Transcript:
    """Ranks by how the prefixes of the lines differ, as files are told apart by their names.

    For a file in which no prefix names a rank; what a prefix counts from zero on, once for each, are ranks.
    """
    names = {event.stream: None for event in part.events if event.stream}
    if len(names) < 2 or any(event.rank is not None or event.local_rank is not None for event in part.events):
        return part
    if not any(char.isdecimal() for name in names for char in name):
        return part
    from torchdoctor.intake.file_names import Place, Ranks, places

    told = [name for name in names if pattern(r"\d").search(name)][:_STREAMS]
    found = dict(zip(told, places(told, [Ranks()] * len(told)), strict=True))
    ranks = [place.rank for place in found.values() if place.rank is not None]
    if len(ranks) < 2 or len(set(ranks)) < len(ranks) or min(ranks) > 1:
        return part
    events = []
    for event in part.events:
        place = found.get(event.stream, Place())
        if place.rank is not None and event.kind not in _OF_OTHERS_KINDS:
            event = replace(event, rank=place.rank, local_rank=place.local_rank)
        events.append(event)
    return replace(part, events=tuple(events))


def _tokens(name: str) -> list[str]:
    return [token for token in pattern(r"(\d+)").split(name) if token]


def _filled(part: Transcript, place: Place, known: dict[int, int | None]) -> Transcript:
    events: list[Event] = []
    for event in part.events:
        rank, local = event.rank, event.local_rank
        host = event.host or place.host
        if event.kind not in _OF_OTHERS_KINDS and not (event.type or "").endswith("ChildFailedError"):
            if rank is None and local is not None:
                rank = known.get(local)
            rank = rank if rank is not None else place.rank
            local = local if local is not None else place.local_rank
        if (rank, local, host) != (event.rank, event.local_rank, event.host):
            event = replace(event, rank=rank, local_rank=local, host=host)
        events.append(event)
    return replace(part, events=tuple(events))
