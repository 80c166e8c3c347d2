"""Who failed when, and who only echoed: one moment for each rank, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.engine.finding import quote
from torchdoctor.model import FirstFailure, Moment, Part

if TYPE_CHECKING:
    from torchdoctor.engine.first import Failure, Incident

MAX_MOMENTS = 4096


def timeline(case: Incident, first: FirstFailure | None) -> tuple[Moment, ...]:
    """The first failure of each rank, and the first echo on ranks that failed of nothing themselves.

    Empty for a text that names fewer than two ranks: there is nothing to compare.
    """
    if len(case.world) < 2:
        return ()
    firsts = set(first.tie or (first.rank,)) if first is not None else set()
    rows: list[tuple[tuple[int, float, int], Moment]] = []
    for rank in sorted(case.world | set(case.own) | set(case.echoes)):
        failure = case.own.get(rank) or case.echoes.get(rank)
        part = Part.FIRST if rank in firsts else Part.CAUSE if rank in case.own else Part.ECHO
        if failure is None:
            if rank in firsts:
                rows.append(((0, 0.0, rank), Moment(rank, case.clocks.hosts.get(rank), None, part, "")))
            continue
        also = tuple(rule for rule in case.said.get(rank, ()) if rule != failure.rule)
        rows.append((_key(case, failure, part), _moment(case, failure, part, also)))
    rows.sort(key=lambda row: row[0])
    return tuple(moment for _, moment in rows[:MAX_MOMENTS])


def _key(case: Incident, failure: Failure, part: Part) -> tuple[int, float, int]:
    span = None if failure.end is not None else case.clocks.span(failure.event)
    order = {Part.FIRST: 0, Part.CAUSE: 1, Part.ECHO: 2}[part]
    return order, span.low if span is not None else float("inf"), failure.event.id


def _moment(case: Incident, failure: Failure, part: Part, also: tuple[str, ...]) -> Moment:
    event, end = failure.event, failure.end
    proof = quote(event)
    text = failure.title if end is not None else proof.text
    return Moment(
        rank=failure.rank,
        host=(end.host if end is not None else None) or case.clocks.hosts.get(failure.rank),
        time=end.time if end is not None else event.time,
        role=part,
        text=text,
        rule=failure.rule,
        kind=event.kind,
        file=proof.file,
        line=proof.line,
        also=also,
    )
