"""Which files tell of one incident: those that share ranks, a host, a job, a launcher, a time or a process.

What nothing joins is an incident of its own. Two jobs, and times that lie days apart, are never one, whatever
else they share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchdoctor.extract.progress import is_step
from torchdoctor.intake.runs import JOB
from torchdoctor.model import Ending, Event, EventKind, Form, Transcript, counted, moment_of
from torchdoctor.patterns import pattern

_APART_S = 86_400.0  # clocks in other zones differ by less
_CLOSE_S = 2.0  # clocks of two machines may differ by this much
_LISTENED = 600  # events at either end of a file in which a job or a process is looked for
_NEAR = 64  # groups among which other ranks of the same job are looked for
_HEAD = 400  # characters of them
_PROCESS = r"(?i)\b(?:pid|process)\b[ :=#]{1,3}(\d{3,10})\b|^[\w.-]+:(\d{3,10}):\d+ \[\d+\] NCCL "
_JOB_IN_NAME = r"(?i)(?:^|[/_.-])(?:slurm|job)[_-]?(\d{3,12})(?!\d)"
_STREAMS = r"(?i)(?<![a-z])(?:stdout|stderr|output|error|out|err)(?![a-z])"
# of those who watch processes: launchers, the scheduler, the machine, who takes stacks
_WATCHERS = (EventKind.LAUNCHER, EventKind.SCHEDULER, EventKind.KERNEL_LOG, EventKind.STACK)


class _Group:
    """Files that are one incident, what they name, and in words what joined them."""

    def __init__(self, number: int, part: Transcript) -> None:
        events = part.events
        self.members = [number]
        self.why: dict[str, None] = {}
        self.path = part.sources[0].replace("\\", "/") if part.sources else ""
        self.ranks = {event.rank for event in events if event.rank is not None}
        self.locals = {event.local_rank for event in events if event.local_rank is not None}
        self.hosts = {event.host for event in events if event.host}
        ends = events if len(events) <= 2 * _LISTENED else events[:_LISTENED] + events[-_LISTENED:]
        self.jobs = {found[1] for found in pattern(_JOB_IN_NAME).finditer(self.path)}
        self.jobs |= set(_named(ends, ("ob", "OB"), JOB))
        self.processes = set(_named(ends, ("pid", "PID", "rocess", "NCCL"), _PROCESS))
        stamps = [event.time for event in events if event.time and event.time[2:3] != ":"]
        self.years = {time[:4] for time in stamps if time[:1] != "-"}
        days = [time[2:] if time[:1] == "-" else time[5:] for time in stamps]
        self.low, self.high = (_seconds(min(days)), _seconds(max(days))) if days else (None, None)
        self.companion = _is_companion(part)
        self.stacks = self.companion and any(event.kind is EventKind.STACK for event in events)

    def may_join(self, other: _Group) -> bool:
        """Does nothing speak against it: another job, another year, times too far apart?"""
        pairs = ((self.jobs, other.jobs), (self.years, other.years))
        apart = self.apart(other)
        return all(not one or not two or one & two for one, two in pairs) and (apart or 0.0) <= _APART_S

    def apart(self, other: _Group) -> float | None:
        """Seconds between the times of the two, negative where they overlap; None where one has none."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return None
        return max(self.low, other.low) - min(self.high, other.high)

    def take(self, other: _Group) -> None:
        self.members += other.members
        self.why |= other.why
        for name in ("ranks", "locals", "hosts", "jobs", "processes", "years"):
            getattr(self, name).update(getattr(other, name))
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        self.low, self.high = min(lows, default=None), max(highs, default=None)
        self.companion = self.companion and other.companion


def _named(events: Sequence[Event], words: tuple[str, ...], expression: str) -> Iterator[str]:
    """The numbers that a pattern finds in events that hold one of the words."""
    for event in events:
        head = event.text[:_HEAD]
        if any(word in head for word in words):
            for one in pattern(expression).finditer(head):
                yield next(filter(None, one.groups()))


def _seconds(day: str) -> float | None:
    """Seconds of a time without its year, "03-09T14:00:00", in one year for all."""
    moment = moment_of(f"2000-{day}")
    return None if moment is None else moment.replace(tzinfo=None).timestamp()


def _is_companion(part: Transcript) -> bool:
    """Does no run speak in the file itself: a launcher's or a machine's log, a tool's table, a stack dump?"""
    own = [
        event
        for event in part.events
        if event.kind not in _WATCHERS and not (event.type or "").endswith("ChildFailedError")
    ]
    if part.form is not Form.LOG or not own:
        return True
    if any(event.kind is not EventKind.LOG or event.level or is_step(event.text) for event in own):
        return False
    return len(own) < len(part.events) or part.ending is Ending.UNKNOWN


class _Groups:
    """The groups of all files; what is joined becomes one."""

    def __init__(self, parts: Sequence[Transcript]) -> None:
        self._of = [_Group(number, part) for number, part in enumerate(parts)]

    def all(self) -> list[_Group]:
        return list(dict.fromkeys(self._of))

    def join(self, one: _Group, other: _Group, why: str) -> _Group:
        """One group of two, unless something speaks against it."""
        if one is other or not one.may_join(other):
            return one
        first, second = sorted((one, other), key=lambda group: group.members[0])
        for member in second.members:
            self._of[member] = first
        first.take(second)
        first.why[why] = None
        return first

    def by_ranks(self) -> None:
        """Files of other ranks than those that are joined so far; of the same ranks it may be another job."""
        whole: list[_Group] = []
        for group in self.all():
            if group.ranks or group.locals:
                known = next(
                    (one for one in whole[-_NEAR:] if _is_of_others(one, group) and one.may_join(group)), None
                )
                if known is None:
                    whole.append(group)
                else:
                    whole[whole.index(known)] = self.join(known, group, "they hold different ranks")

    def by_name(self, attribute: str, word: str) -> None:
        """Files that name the same job, host or process."""
        first: dict[str, int] = {}
        for number in range(len(self._of)):
            for name in sorted(getattr(self._of[number], attribute)):
                before = self._of[first.setdefault(name, number)]
                self.join(before, self._of[number], f"they name the same {word}, {name}")

    def by_kind(self) -> None:
        """Stacks in one folder, and files whose names differ only in the stream of a program."""
        first: dict[str, int] = {}
        for group in self.all():
            name, why = pattern(_STREAMS).sub("*", group.path), "they are two streams of one program"
            if group.stacks:
                name, why = f"{group.path.rpartition('/')[0]}/*", "they are stacks that lie together"
            if "*" in name:
                before = self._of[first.setdefault(name, group.members[0])]
                self.join(before, group, why)

    def by_time(self) -> None:
        """Files whose times overlap."""
        dated = sorted((group.low, group.members[0]) for group in self.all() if group.low is not None)
        last: _Group | None = None
        for _, number in dated:
            group = self._of[number]
            if last is not None and (last.apart(group) or 0.0) <= _CLOSE_S:
                group = self.join(last, group, "their times overlap")
            last = group

    def by_watcher(self) -> None:
        """What a launcher, a scheduler or a tool wrote, with the run that lies nearest among the files."""
        groups = self.all()
        runs = [one for one in groups if not one.companion] or [one for one in groups if len(one.members) > 1]
        below: dict[str, list[int]] = {}
        for run in runs:
            for folder in _folders(run.path):
                below.setdefault(folder, []).append(run.members[0])
        for group in groups:
            near = next((below[folder] for folder in _folders(group.path) if folder in below), [])
            if group.companion and len(near) == 1:
                self.join(self._of[near[0]], group, "only one of them is the log of a run")


def _folders(path: str) -> list[str]:
    """The folders that a path lies in, from the innermost to the root, which is empty."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)]


def _is_of_others(one: _Group, other: _Group) -> bool:
    """Do they hold different ranks, or is one file that of a rank which one beside it holds with others?"""
    if not one.ranks or not other.ranks:
        return not (one.ranks or other.ranks) and one.locals != other.locals
    less, more = sorted((one, other), key=lambda group: len(group.ranks))
    beside = one.path.rpartition("/")[0] == other.path.rpartition("/")[0]
    held = beside and len(more.members) == 1 == len(less.ranks) < len(more.ranks)
    return not one.ranks & other.ranks or held


def joined(parts: Sequence[Transcript]) -> tuple[list[list[int]], str]:
    """The numbers of the files of each incident, in order, and in words why they are taken so.

    The ranks of ``parts`` are those that their lines and the names of the files tell.
    """
    groups = _Groups(parts)
    groups.by_ranks()
    groups.by_name("jobs", "job")
    groups.by_name("hosts", "host")
    groups.by_name("processes", "process")
    groups.by_kind()
    groups.by_time()
    groups.by_watcher()
    found = groups.all()
    files = counted(len(parts), "file")
    if len(found) == 1:
        why = " and ".join(list(found[0].why)[:2])
        return [list(range(len(parts)))], f"{files}, taken as one incident because {why}"
    why = "no rank, host, job, launcher, time or process joins them"
    return [
        sorted(group.members) for group in found
    ], f"{files}, taken as {counted(len(found), 'incident')}: {why}"
