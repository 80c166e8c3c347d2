"""Failures counted: by cause, node, GPU, rank and frame, and by week."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final

from torchdoctor import json_text
from torchdoctor.fleet.failure import Failure, failures
from torchdoctor.intake import IntakeError
from torchdoctor.intake.source import open_binary
from torchdoctor.model import Record, TorchdoctorError, counted
from torchdoctor.records import record

LINE_BYTES: Final = 16 << 20
NAMES: Final = 20_000  # of each kind; memory is bounded by them
CHANCE: Final = 0.001  # that any node fails so often without a reason
_LEAST: Final = 3
_UNDATED: Final = -1


class StatsError(TorchdoctorError):
    """Reports that cannot be read."""


@record(frozen=True, slots=True)
class Count(Record):
    """How often one name occurred; ``weeks`` are (week, count) in order, undated ones left out.

    ``expected`` of a node: how often it would have failed, were all alike; ``odd``: it failed more often than
    chance explains. ``new``: not seen before the last week.
    """

    name: str
    count: int
    weeks: tuple[tuple[int, int], ...] = ()
    title: str = ""
    new: bool = False
    expected: float | None = None
    odd: bool = False


@record(frozen=True, slots=True)
class Stats(Record):
    """``outcomes`` counts reports; the others count failures, the most frequent first."""

    outcomes: tuple[tuple[str, int], ...]
    weeks: tuple[tuple[int, int], ...]  # failures
    causes: tuple[Count, ...] = ()
    nodes: tuple[Count, ...] = ()
    gpus: tuple[Count, ...] = ()
    ranks: tuple[Count, ...] = ()
    frames: tuple[Count, ...] = ()
    undated: int = 0
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        return sum(count.count for count in self.causes)


class _Names:
    """How often each name occurred in each week; beyond ``NAMES`` of them, further ones are only counted."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[int, int]] = {}
        self.others = 0

    def add(self, name: str, week: int) -> None:
        weeks = self.counts.get(name)
        if weeks is None:
            if len(self.counts) >= NAMES:
                self.others += 1
                return
            weeks = self.counts[name] = {}
        weeks[week] = weeks.get(week, 0) + 1

    def table(self, last: int, titles: dict[str, str]) -> tuple[Count, ...]:
        rows = []
        for name, weeks in self.counts.items():
            dated = tuple(sorted((week, count) for week, count in weeks.items() if week != _UNDATED))
            new = bool(dated) and dated[0][0] == last and _UNDATED not in weeks
            rows.append(Count(name, sum(weeks.values()), dated, titles.get(name, ""), new))
        return tuple(sorted(rows, key=lambda row: (-row.count, row.name)))


class Tally:
    """Takes failures one by one; ``stats`` is what they come to."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._weeks: Counter[int] = Counter()
        self._kinds = {kind: _Names() for kind in ("causes", "nodes", "gpus", "ranks", "frames")}
        self._titles: dict[str, str] = {}

    def add(self, one: Failure) -> None:
        self._outcomes[one.outcome] += 1
        if one.cause is None:
            return
        week = _UNDATED if one.week is None else one.week
        self._weeks[week] += 1
        kinds = self._kinds
        kinds["causes"].add(one.cause, week)
        if one.title and len(self._titles) < NAMES:
            self._titles[one.cause] = one.title
        if one.node:
            kinds["nodes"].add(one.node, week)
        for gpu in one.gpus:
            kinds["gpus"].add(f"{one.node} {gpu}" if one.node else gpu, week)
        if one.rank is not None:
            kinds["ranks"].add(str(one.rank), week)
        if one.frame:
            kinds["frames"].add(one.frame, week)

    def stats(self, notes: Sequence[str] = ()) -> Stats:
        undated = self._weeks.get(_UNDATED, 0)
        weeks = tuple(sorted((week, count) for week, count in self._weeks.items() if week != _UNDATED))
        # where there is one week only, everything is as old as the other
        last = weeks[-1][0] if len(weeks) > 1 else _UNDATED - 1
        tables = {kind: names.table(last, self._titles) for kind, names in self._kinds.items()}
        tables["nodes"] = _against_chance(tables["nodes"])
        more = [
            f"further {kind}, beyond the first {NAMES:,}, are not listed: {counted(names.others, 'failure')}"
            for kind, names in self._kinds.items() if names.others
        ]  # fmt: skip
        return Stats(
            tuple(self._outcomes.most_common()), weeks, undated=undated, notes=(*notes, *more), **tables
        )


def _against_chance(nodes: tuple[Count, ...]) -> tuple[Count, ...]:
    """Which nodes fail more often than if each failure met any of them alike? A bound of Chernoff says."""
    total = sum(node.count for node in nodes)
    if len(nodes) < 2:
        return nodes
    share = 1 / len(nodes)
    return tuple(
        Count(
            node.name, node.count, node.weeks, new=node.new, expected=total * share,
            odd=node.count >= _LEAST and _chance(node.count, total, share) * len(nodes) < CHANCE,
        )
        for node in nodes
    )  # fmt: skip


def _chance(count: int, total: int, share: float) -> float:
    """At most so likely are ``count`` or more of ``total``, where each has this probability."""
    part = count / total
    if part <= share:
        return 1.0
    rest = (1 - part) * math.log((1 - part) / (1 - share)) if part < 1 else 0.0
    return math.exp(-total * (part * math.log(part / share) + rest))


def of_files(paths: Sequence[str], stdin: BinaryIO | None = None) -> Stats:
    """The statistics of files with one report a line. Raises StatsError when one cannot be read, or none
    holds a report."""
    tally = Tally()
    notes: list[str] = []
    read = 0
    for path in paths:
        try:
            file = open_binary(path, stdin)
        except IntakeError as error:
            raise StatsError(str(error)) from None
        try:
            good, bad = _count(file, path, tally)
        except OSError as error:
            raise StatsError(f"{path}: cannot be read: {error.strerror or error}") from None
        finally:
            if path != "-":
                file.close()
        read += good
        if bad:
            notes.append(bad)
    if not read:
        told = notes[0] if notes else f"{paths[0]}: empty"
        raise StatsError(f"{told}; expected the output of torchdoctor explain --each --format jsonl")
    return tally.stats(notes)


def _count(file: BinaryIO, path: str, tally: Tally) -> tuple[int, str]:
    """How many reports a file holds; then what must be said about lines that hold none."""
    good = bad = 0
    first = ""
    for number, line in enumerate(_lines(file), 1):
        try:
            report = _parsed(line)
        except ValueError as error:
            if line.strip():
                bad += 1
                first = first or f"line {number:,}: {error}"
            continue
        good += 1
        for one in report:
            tally.add(one)
    more = f", and {bad - 1:,} more lines" if bad > 1 else ""
    return good, f"{path}: {first}{more}" if bad else ""


def _lines(file: BinaryIO) -> Iterable[bytes]:
    while line := file.readline(LINE_BYTES):
        yield line


def _parsed(line: bytes) -> list[Failure]:
    """The failures of one line. Raises ValueError when it is no report."""
    if len(line) > 1 << 16:
        value = json_text.parse(line)
    else:
        try:
            value = json.loads(line)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("no report of torchdoctor")
    return list(failures(value))
