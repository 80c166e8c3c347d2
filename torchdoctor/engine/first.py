"""Which rank failed first: what each rank failed of, then clocks, then the numbers of the collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.engine.clocks import Clocks, Span
from torchdoctor.engine.echo import PEER_CAUSES, STORE_LOST
from torchdoctor.engine.ends import ABORT, CRASH_SIGNALS, OWN_SIGNALS, SENT_SIGNALS, End, ends
from torchdoctor.engine.frames import SPAWNED, outers
from torchdoctor.engine.select import INTERRUPTED
from torchdoctor.extract.given import machine
from torchdoctor.extract.nccl_ranks import GIVE_UP
from torchdoctor.model import ONLY_RANK, Event, EventKind, FirstFailure, Role, Transcript
from torchdoctor.number import count
from torchdoctor.records import Record, record

# what compares ranks is imported only for texts that name several (start-up budget)
if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.engine.finding import Finding
    from torchdoctor.engine.sequences import Position

_LOST = frozenset((STORE_LOST, "gloo-peer-lost", "nccl-remote-error"))
# what a rank itself prints, as opposed to its launcher, its scheduler or its machine
_OF_A_RANK = (EventKind.EXCEPTION, EventKind.DEVICE_ASSERT, EventKind.CRASH)


@record(frozen=True, slots=True)
class Failure(Record):
    """What a rank failed of. ``rule`` is None for an exception that no rule knows, or a process's end."""

    rank: int
    event: Event
    rule: str | None = None
    title: str = ""
    end: End | None = None


@record(frozen=True, slots=True)
class Incident(Record):
    """All failures of a text by rank: those of a rank's own, and those that answer another rank's."""

    own: dict[int, Failure]
    echoes: dict[int, Failure]
    said: dict[int, dict[str, None]]  # rules by rank
    world: set[int]
    clocks: Clocks
    positions: dict[int, Position]
    ends: dict[int, End]
    ended_by: Event | None = None  # a scheduler that ended all ranks
    stopped: Event | None = None  # somebody ended the run by hand
    nobodys: Event | None = None  # a failure whose rank the text does not name
    spawned: int | None = None  # the process that it came from, as torch.multiprocessing.spawn counts
    stacks: tuple[tuple[int, ...], str] | None = None  # ranks whose stacks stand elsewhere, and where
    left: frozenset[int] = frozenset()  # ranks whose process ended by itself before the others gave up
    recorded: tuple[tuple[int, ...], str, bool] | None = None  # what flight records say, and whether surely


def incident(transcript: Transcript, findings: Sequence[Finding], unexplained: Sequence[Event]) -> Incident:
    """The failures of a text by rank."""
    own: dict[int, Failure] = {}
    soft: dict[int, Failure] = {}
    echoes: dict[int, Failure] = {}
    ended_by: Event | None = None
    stopped: Event | None = None
    nobodys: Event | None = None
    said: dict[int, dict[str, None]] = {}

    def note(kept: dict[int, Failure], event: Event, rule: str | None, title: str) -> None:
        nonlocal nobodys
        if event.rank is None and kept is own and not event.recovered and event.kind in _OF_A_RANK:
            nobodys = nobodys or event
        if event.rank is not None and not event.recovered:
            known = kept.get(event.rank)
            if known is None or event.id < known.event.id:
                kept[event.rank] = Failure(event.rank, event, rule, title)

    for finding in findings:
        rule = finding.rule
        for occurrence in finding.occurrences:
            event = occurrence.event
            if event.rank is not None and not event.recovered:
                said.setdefault(event.rank, {})[rule.id] = None
            if rule.id == INTERRUPTED:
                stopped = stopped or event
            elif finding.role is not Role.CAUSE:
                note(echoes, event, rule.id, rule.title)
            elif waits(event) or rule.id in PEER_CAUSES or event.flight_record:
                note(soft, event, rule.id, rule.title)
            elif rule.severity.value == "fatal" or event.kind in _OF_A_RANK:
                note(own, event, rule.id, rule.title)
                if event.rank is None and rule.family == "scheduler" and not event.recovered:
                    ended_by = ended_by or event
    for event in unexplained:
        note(soft if waits(event) else own, event, None, event.type or "")
    if nobodys is not None:  # what a destructor warns of on the way out is no failure of its own
        own = {rank: one for rank, one in own.items() if not _warned_after(one.event, nobodys)}
    found = ends(transcript)
    crashed = {rank: end for rank, end in found.items() if end.code in CRASH_SIGNALS and rank not in own}
    own.update(_as_failures(crashed))
    for rank, failure in soft.items():
        echoes[rank] = min((failure, echoes.get(rank, failure)), key=lambda item: item.event.id)
    printed = {event.rank for event in transcript.events if event.rank is not None}
    if not own and nobodys is None:
        own = _by_ends(found, echoes, printed)
    world = printed | set(found)
    clocks = Clocks(transcript)
    for rank, end in found.items():
        if end.host:
            clocks.hosts.setdefault(rank, end.host)
    # a launcher that lists how processes ended, and not this one, saw it end well
    left = frozenset(world - set(found)) if _listed(found) else frozenset()
    places: dict[int, Position] = {}
    stacks = told = None
    recorded = any(event.flight_record for event in transcript.events)
    if len(world) > 1 or recorded:
        from torchdoctor.engine.sequences import positions
        from torchdoctor.extract.flight_hang import whom
        from torchdoctor.extract.hang import strays

        places, stacks, told = positions(transcript), strays(transcript), whom(transcript)
    # on another machine than the first, what it spawned has other numbers as ranks
    spawned = _spawned(nobodys, transcript) if nobodys is not None and not machine(transcript) else None
    return Incident(
        own,
        echoes,
        said,
        world,
        clocks,
        places,
        found,
        ended_by,
        stopped,
        nobodys,
        spawned,
        stacks,
        left,
        told,
    )


def _warned_after(event: Event, failure: Event) -> bool:
    return event.kind is EventKind.WARNING and event.id > failure.id


def _spawned(event: Event, transcript: Transcript) -> int | None:
    """The number of the spawned process that an exception comes from."""
    for outer in (event, *outers([event], transcript)):
        if outer.text.startswith(SPAWNED):
            return count(outer.text[len(SPAWNED) :].split(" ", 1)[0])
    return None


def waits(event: Event) -> bool:
    """Does the event say that its rank waits for others, or gave up waiting?"""
    if event.kind is EventKind.STACK:
        from torchdoctor.extract.hang import stand_of

        stand = stand_of(event)
        return stand is not None and stand.call is not None
    return any(mark in event.text for mark in GIVE_UP)


def _by_ends(found: dict[int, End], echoes: dict[int, Failure], printed: set[int]) -> dict[int, Failure]:
    """Processes that were killed by a signal of their own; an abort counts where nothing else was printed."""
    killed = {rank: end for rank, end in found.items() if end.code in OWN_SIGNALS}
    # launchers of ranks leave with an exit code: a task that aborted is a rank itself, and so are all
    are_ranks = any(
        found[rank].of_a_task and found[rank].code in ABORT for rank in found.keys() & echoes.keys()
    )
    if not killed:
        killed = {
            rank: end
            for rank, end in found.items()
            if rank not in echoes
            and end.code not in SENT_SIGNALS
            and (end.code in ABORT or end.code > 0)
            and not (
                printed and rank not in printed and end.of_a_task and 0 < end.code < 128 and not are_ranks
            )
        }
    if len(killed) > 1 and len({end.event.id for end in killed.values()}) == 1:
        roots = {rank: end for rank, end in killed.items() if end.root}
        times = {end.time for end in killed.values()}
        if roots and len(times) > 1:  # the launcher's own clock tells them apart
            killed = {rank: end for rank, end in killed.items() if end.time == min(filter(None, times))}
    return _as_failures(killed)


def _listed(found: dict[int, End]) -> bool:
    """Does a launcher tell how every process ended that did not end well?"""
    return any(not end.alone for end in found.values())


def _as_failures(killed: dict[int, End]) -> dict[int, Failure]:
    return {rank: Failure(rank, end.event, None, _ended(end.code), end) for rank, end in killed.items()}


def _ended(code: int) -> str:
    import signal

    number = -code if code < 0 else code - 128
    try:
        return f"ended by {signal.Signals(number).name}" if code < 0 or code > 128 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"


def first_failure(case: Incident) -> FirstFailure | None:
    """The rank whose own failure came first; None when the text names no rank."""
    if case.own:
        if len(case.own) == 1:
            ((rank, failure),) = case.own.items()
            by = (
                "the end of its process"
                if failure.end is not None
                else "the only rank with a failure of its own"
            )
            return _answer(case, [rank], by)
        return _narrow(case)
    if case.nobodys is not None:
        return _of_nobody(case, case.nobodys)
    if case.ended_by is not None:
        event = case.ended_by
        ranks = tuple(sorted(case.world)) if len(case.world) > 1 else ()
        if not case.world:
            return None
        return FirstFailure(None, event.host, event.time, "the scheduler ended all ranks at once", ranks)
    if case.stacks is not None or case.positions:
        from torchdoctor.engine.sequences import Stray, behind, stray

        by_records = Stray(*case.recorded[:2]) if case.recorded is not None else None
        strays = by_records if case.recorded is not None and case.recorded[2] else None
        strays = strays or behind(case.positions, case.world)
        if strays is None and case.stacks is not None:
            strays = Stray(*case.stacks)
        strays = strays or by_records
        if strays is None:
            strays = stray(case.positions, case.world, case.world - set(case.echoes) - case.left)
        if strays is not None:
            return _answer(case, list(strays.ranks), strays.why)
    if not case.echoes:
        if case.stopped is None or not case.world:
            return None
        return FirstFailure(None, case.stopped.host, case.stopped.time, "no rank: somebody stopped the run")
    silent = case.world - set(case.echoes)
    # ranks of which no line is known are as silent
    unseen = set() if _listed(case.ends) or not silent else set(range(max(case.world))) - case.world
    if 0 in case.echoes and not silent and all(one.rule == STORE_LOST for one in case.echoes.values()):
        event = case.echoes[0].event
        return FirstFailure(None, event.host, event.time, "no rank: what hosts the store of all has ended")
    if silent and len(silent | unseen) < len(case.echoes):
        return _answer(case, sorted(silent | unseen), "only this rank does not report another rank's failure")
    if len(case.echoes) == 1:
        return _answer(case, list(case.echoes), "the only rank with a message about the failure")
    return _narrow(case, case.echoes, "; all of them may be echoes")


def _of_nobody(case: Incident, event: Event) -> FirstFailure | None:
    """A failure is printed without its rank: it is of a rank that reports no failure of another one."""
    if case.spawned is not None and not case.world:  # no process says its rank: the number is all there is
        return FirstFailure(case.spawned, event.host, event.time, "the spawned process that ended first")
    world = case.world
    if world and not case.ends:  # ranks of which no line is known may have printed it as well
        world = set(range(max(world) + 1))
    left = world - set(case.echoes)
    left -= {rank for rank, end in case.ends.items() if end.code in SENT_SIGNALS}
    if not left:
        return None
    if len(left) > 1 and all(rank in case.ends and case.ends[rank].of_a_task for rank in left):
        return None  # numbers of srun's tasks, which need not be ranks, are all that is known
    if case.spawned in left and left <= set(range(len(case.world))):  # one node: its processes are the ranks
        return FirstFailure(case.spawned, event.host, event.time, "the spawned process that ended first")
    ranks = sorted(left)
    host = case.clocks.hosts.get(ranks[0]) if len(ranks) == 1 else event.host
    by = "the only rank that does not report another's failure"
    if not case.echoes and ranks[0] in case.ends and case.ends[ranks[0]].code > 0:
        by = f"the only rank that ended by itself, with exit code {case.ends[ranks[0]].code}"
    if len(world) == 1:
        by = ONLY_RANK
    elif len(ranks) > 1:
        by = "the failure is printed without its rank, and these report no other one's"
    return FirstFailure(ranks[0], host, event.time, by, tuple(ranks) if len(ranks) > 1 else ())


def _answer(case: Incident, ranks: list[int], by: str) -> FirstFailure:
    """One rank, or a tie of several, with the host and the time that the text gives."""
    rank = ranks[0]
    failure = case.own.get(rank) or case.echoes.get(rank)
    event = failure.event if failure is not None else None
    end = failure.end if failure is not None else None
    host = (end.host if end is not None else None) or case.clocks.hosts.get(rank)
    time = end.time if end is not None else event.time if event is not None else None
    return FirstFailure(rank, host, time, by, tuple(sorted(ranks)) if len(ranks) > 1 else ())


def _narrow(case: Incident, failures: dict[int, Failure] | None = None, remark: str = "") -> FirstFailure:
    """Of several failures the first, by clocks, by training steps, by collectives, by order of lines."""
    failures = failures or case.own
    ranks = sorted(failures, key=lambda rank: failures[rank].event.id)
    why: list[str] = []
    left, by = _by_time(case, failures, ranks)
    if len(left) == 1:
        return _answer(case, left, by + remark)
    if len(left) < len(ranks):
        why.append(by)
    for narrow in (_by_steps, _by_numbers, _by_waits, _by_mpi, _by_lines):
        fewer, how = narrow(case, failures, left)
        if len(fewer) == 1:
            return _answer(case, fewer, how + remark)
        left = fewer
    if by and by not in why:
        why.append(by)
    return _answer(case, left, "; ".join(why) + remark)


def _by_time(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    spans = {rank: span for rank in ranks if (span := _span(case, failures[rank])) is not None}
    if len(spans) < len(ranks):
        return ranks, "no time stamps separate the ranks"
    lead = min(spans, key=lambda rank: (spans[rank].high - case.clocks.apart(ranks[0], rank)[0], rank))
    close = [lead]
    widest = 0.0
    for other in ranks:
        if other == lead:
            continue
        ahead, unsure = case.clocks.apart(lead, other)
        if spans[other].low - ahead - spans[lead].high <= unsure:
            close.append(other)
            widest = max(widest, unsure)
    if len(close) == 1:
        return close, "time stamps"
    close.sort(key=lambda rank: (spans[rank].low - case.clocks.apart(lead, rank)[0], failures[rank].event.id))
    bound = f"{widest:.1f}".rstrip("0").rstrip(".")
    by = f"times within {bound} s of each other" if widest else "equal times, as far as the time stamps show"
    return close, by


def _span(case: Incident, failure: Failure) -> Span | None:
    if failure.end is not None:
        at = case.clocks.seconds(failure.end.time)
        return Span(at, at + 1.0) if at is not None else None
    return case.clocks.span(failure.event)


def _by_steps(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    if len(ranks) < 2 or not case.clocks.comparable(ranks):
        return ranks, ""
    reached = {rank: case.clocks.last_step(failures[rank].event) for rank in ranks}
    if any(step is None for step in reached.values()):
        return ranks, ""
    lowest = min(step for step in reached.values() if step is not None)
    fewer = [rank for rank in ranks if reached[rank] == lowest]
    return fewer, "the training steps that each rank reached"


def _by_numbers(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    """A rank whose queue of collectives ends earlier stopped earlier."""
    told = {
        rank: place.enqueued
        for rank in ranks
        if (place := case.positions.get(rank)) is not None and place.enqueued is not None
    }
    if len(told) < len(ranks):
        return ranks, ""
    lowest = min(told.values())
    return [rank for rank in ranks if told[rank] == lowest], "sequence numbers of collectives"


def _by_waits(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    """A rank that gave up waiting ended itself; a connection is lost when the process behind it has ended."""
    lost = [rank for rank in ranks if _LOST & case.said.get(rank, {}).keys()]
    gave_up = [rank for rank in ranks if rank not in lost and waits(failures[rank].event)]
    if not gave_up or len(gave_up) + len(lost) < len(ranks):
        return ranks, ""
    return gave_up, "the others lost their connection when it gave up waiting"


def _by_mpi(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    """The rank whose process mpirun saw end first."""
    fewer = [rank for rank in ranks if rank in case.ends and case.ends[rank].alone]
    return (fewer, "mpirun saw its process end first") if len(fewer) == 1 else (ranks, "")


def _by_lines(case: Incident, failures: dict[int, Failure], ranks: list[int]) -> tuple[list[int], str]:
    """In one file a failure stands before another one when they differ or the run went on between them."""
    events = [failures[rank].event for rank in ranks]
    if len({event.source for event in events}) > 1 or any(failures[rank].end for rank in ranks):
        return ranks, ""
    order = sorted(ranks, key=lambda rank: failures[rank].event.id)
    first, second = failures[order[0]].event, failures[order[1]].event
    unlike = first.type != second.type and first.kind is not EventKind.WATCHDOG
    if unlike or case.clocks.went_on_between(first, second):
        return order[:1], "order of lines in one file"
    return order, ""
