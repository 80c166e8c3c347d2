"""When something happened on which clock, and how far the clocks of the machines differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from torchdoctor.model import Event, EventKind, Transcript, moment_of

# clocks of two machines may differ by this much when nothing common to both tells the difference
CLOCK_SKEW_S = 2.0
# so many steps that both machines report make an estimate of the difference
COMMON_STEPS = 3
_STEP = (
    r"(?i)\b(?P<word>global[ _]step|step|iter(?:ation)?s?|batch|epoch|update)\b[\"']?"
    r"[ \t]{0,2}[=:#\[(]{0,2}[ \t]{0,4}(?P<number>\d{1,9})(?![\d.])"
)
FOREVER = float("inf")


class Span(NamedTuple):
    """Between which two moments, in seconds of its own clock, an event lies."""

    low: float
    high: float


@cache
def _step_pattern() -> re.Pattern[str]:
    return re.compile(_STEP)


def steps_in(text: str) -> tuple[tuple[str, int], ...]:
    """The counters of a training step that a line prints, as ``(("epoch", 1), ("step", 20))``."""
    low = text[:300]
    if "e" not in low and "E" not in low and "t" not in low:
        return ()
    return tuple((m["word"].lower().rstrip("s"), int(m["number"])) for m in _step_pattern().finditer(low))


def clock_of(rank: int | None, host: str | None) -> str:
    """The clock that stamps a rank's lines: that of its host; of unknown hosts each rank has its own."""
    return host if host else f"rank {rank}"


class Clocks:
    """Times of events in seconds, as far as the text tells them."""

    def __init__(self, transcript: Transcript) -> None:
        self._year, self._day = _calendar(transcript.events)
        self._stamps: dict[tuple[str, int | None], list[tuple[int, float]]] = defaultdict(list)
        self._steps: dict[str, dict[tuple[tuple[str, int], ...], float]] = defaultdict(dict)
        self._alive: dict[int, list[float]] = defaultdict(list)
        self.progress: dict[int, list[tuple[int, tuple[tuple[str, int], ...]]]] = defaultdict(list)
        # lines that report progress, by file
        self._marks: dict[str, list[tuple[int, tuple[tuple[str, int], ...]]]] = defaultdict(list)
        self._sources: dict[int, str] = {}  # of the file in which a rank reports its steps
        self.hosts: dict[int, str] = {}
        one_machine = _one_machine(transcript.events)
        for event in transcript.events:
            if event.rank is not None and event.host and event.rank not in self.hosts:
                self.hosts[event.rank] = event.host
        for event in transcript.events:
            at = self.seconds(event.time)
            if at is not None:
                self._stamps[event.source, event.rank].append((event.id, at))
            if event.kind is EventKind.LOG and event.rank is not None:
                if at is not None:
                    self._alive[event.rank].append(at)
                steps = steps_in(event.text)
                if steps:
                    self.progress[event.rank].append((event.id, steps))
                    self._marks[event.source].append((event.line, steps))
                    self._sources[event.rank] = event.source
                    if at is not None:
                        clock = self.clock(event.rank)
                        known = self._steps[clock].get(steps)
                        if known is None or at < known:
                            self._steps[clock][steps] = at
        self._one = one_machine

    def clock(self, rank: int) -> str:
        return clock_of(rank, self.hosts.get(rank))

    def seconds(self, time: str | None) -> float | None:
        """Seconds since the epoch; a missing year or day is that of the other lines. None without a time."""
        if not time:
            return None
        if time.startswith("--"):
            time = f"{self._year}-{time[2:]}"
        elif time[2:3] == ":":
            time = f"{self._day}T{time}"
        return seconds(time)

    def span(self, event: Event) -> Span | None:
        """When an event happened: its own stamp, else between those of the lines around it.

        A process that logs at a steady pace and falls silent has failed within about that pace.
        """
        at = self.seconds(event.time)
        if at is not None:
            return Span(at, at if event.time and "." in event.time else at + 1.0)
        stamps = self._stamps.get((event.source, event.rank), [])
        before = [time for number, time in stamps if number < event.id]
        after = [time for number, time in stamps if number > event.id]
        if (
            not before and event.rank is not None
        ):  # its plain lines went to a file of their own: signs of life
            before = self._alive.get(event.rank, [])
        if not before:
            return None
        high = min(after, default=FOREVER)
        if len(before) >= 3:
            pace = max(b - a for a, b in pairwise(before))
            high = min(high, before[-1] + 2 * max(pace, 0.5))
        return Span(before[-1], max(high, before[-1]))

    def apart(self, rank: int, other: int) -> tuple[float, float]:
        """(how far the clock of ``other`` is ahead of that of ``rank``, how unsure that is), in seconds."""
        mine, theirs = self.clock(rank), self.clock(other)
        if mine == theirs or self._one:
            return 0.0, 0.0
        here, there = self._steps.get(mine, {}), self._steps.get(theirs, {})
        differences = sorted(there[key] - here[key] for key in here.keys() & there.keys())
        if len(differences) < COMMON_STEPS:
            return 0.0, CLOCK_SKEW_S
        middle = differences[len(differences) // 2]
        spread = max(middle - differences[0], differences[-1] - middle)
        return middle, min(spread, CLOCK_SKEW_S) if abs(middle) <= 3600 else CLOCK_SKEW_S

    def went_on_between(self, first: Event, second: Event) -> bool:
        """Does the file of both report progress after the last line of the one and before the other?

        A step that the first one's rank had reported is none: launchers print the lines of each rank when
        they get to them.
        """
        reached = {steps for _, steps in self.progress.get(first.rank if first.rank is not None else -1, ())}
        return any(
            first.end_line < line < second.line and steps not in reached
            for line, steps in self._marks.get(first.source, ())
        )

    def last_step(self, event: Event) -> tuple[int, ...] | None:
        """The last training step that the rank of an event reported before it."""
        if event.rank is None:
            return None
        apart = self._sources.get(event.rank) != event.source  # its steps are in a file of their own
        steps = [found for number, found in self.progress.get(event.rank, ()) if apart or number < event.id]
        return tuple(number for _, number in steps[-1]) if steps else None

    def comparable(self, ranks: Iterable[int]) -> bool:
        """Do the ranks report the same steps, in the same words, so that the numbers can be compared?"""
        common: set[tuple[tuple[str, int], ...]] | None = None
        for rank in ranks:
            own = {steps for _, steps in self.progress.get(rank, ())}
            common = own if common is None else common & own
        return bool(common) and len(common or ()) >= COMMON_STEPS


def seconds(time: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 time; None when it is missing or no date."""
    found = moment_of(time)
    return None if found is None else found.timestamp()


def _calendar(events: tuple[Event, ...]) -> tuple[str, str]:
    """The year and the day that most times name, for those that name none."""
    days = Counter(event.time[:10] for event in events if event.time and event.time[:4].isdecimal())
    if days:
        day = days.most_common(1)[0][0]
        return day[:4], day
    partly = Counter(event.time[2:7] for event in events if event.time and event.time.startswith("--"))
    return "2000", f"2000-{partly.most_common(1)[0][0]}" if partly else "2000-01-01"


def _one_machine(events: tuple[Event, ...]) -> bool:
    """True for one file in which no second host is named: its lines share one clock as far as one can see."""
    sources = {event.source for event in events}
    hosts = {event.host for event in events if event.host}
    return len(sources) == 1 and len(hosts) == 1
