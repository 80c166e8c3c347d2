"""Which rank failed first."""

from __future__ import annotations

from datetime import datetime

from torchdoctor.engine.finding import Finding
from torchdoctor.model import Event, FirstFailure, Role

# clocks of two nodes may differ by this much; within it no order is claimed
CLOCK_SKEW_S = 2.0


def seconds(time: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 time; None when it is missing or no date."""
    if not time:
        return None
    try:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def first_failure(findings: list[Finding], unexplained: list[Event]) -> FirstFailure | None:
    """The rank whose own failure came first; None when the text names no rank.

    Own failures are findings in the role of a cause and exceptions that no rule knows; where there are
    none, the consequences count. Order: a rank alone in having one, then times, then order in one file.
    """
    own = [
        o.event for f in findings if f.role is Role.CAUSE for o in f.occurrences if not o.event.recovered
    ]
    own.extend(unexplained)
    by = "failure of its own"
    if not any(event.rank is not None for event in own):
        own = [o.event for f in findings for o in f.occurrences if not o.event.recovered]
        by = "first message"
    earliest: dict[int, Event] = {}
    for event in sorted(own, key=lambda item: item.id):
        if event.rank is not None:
            earliest.setdefault(event.rank, event)
    if not earliest:
        return None
    if len(earliest) == 1:
        ((rank, event),) = earliest.items()
        return FirstFailure(rank, event.host, event.time, f"the only rank with a {by}")
    times = {rank: seconds(event.time) for rank, event in earliest.items()}
    told = {rank: time for rank, time in times.items() if time is not None}
    if len(told) == len(earliest):
        return _by_time(earliest, told)
    sources = {event.source for event in earliest.values()}
    ranks = sorted(earliest, key=lambda rank: earliest[rank].id)
    first = earliest[ranks[0]]
    if len(sources) == 1 and by != "first message" and first.type != earliest[ranks[1]].type:
        return FirstFailure(ranks[0], first.host, first.time, "order of lines in one file")
    return FirstFailure(
        ranks[0],
        first.host,
        first.time,
        "order of lines only; no times tell the ranks apart",
        tuple(sorted(ranks)),
    )


def _by_time(earliest: dict[int, Event], told: dict[int, float]) -> FirstFailure:
    rank = min(told, key=lambda item: (told[item], earliest[item].id))
    event = earliest[rank]
    hosts = {item.host for item in earliest.values()}
    bound = CLOCK_SKEW_S if len(hosts) > 1 or None in hosts else 0.0
    close = sorted(other for other, time in told.items() if time - told[rank] <= bound)
    if len(close) > 1:
        return FirstFailure(
            rank, event.host, event.time, f"times within {bound:g} s of each other", tuple(close)
        )
    return FirstFailure(rank, event.host, event.time, "time stamps")
