"""Times or rates of the same loading with other numbers of DataLoader workers: slower, or no faster."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.amounts import number, value
from torchdoctor.extract.readings.columns import Table, tables
from torchdoctor.extract.readings.figures import rates, seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "worker_timing"

FACTS: dict[str, str] = {
    "worker_timing.slower": "float: how many times longer loading takes with more workers",
    "worker_timing.no_faster": "bool: by figures or words, more workers load no faster than few",
    "worker_timing.most": "int: the largest number of workers that was tried, or that is spoken of",
}

LEAST = 1.5
EVEN = 1.15  # below that two times are the same
FLAT = 1.3  # what four times as many workers gain where they share the processors of the few

_RATE = (
    r"(?:it|its|iter|iters|iterations|samples?|images?|imgs?|pics?|tokens?|tok|batch(?:es)?|steps?|examples?"
    r"|frames?|clips?|files?|rows?|Bilder|\u5f20|\u679a|\uc7a5)\s?/\s?(?:s|sec|second|Sek|\u79d2|\ucd08)\b"
    r"|\bfps\b|it/s|\b(?:images?|imgs?|samples?|batch(?:es)?|it|steps?)[_ ]?(?:per|/|p)[_ ]?s(?:ec)?\b"
)
_TIME = (
    r"(?:ms|s|sec|secs|seconds?|min|minutes?|Sek(?:unden)?|\u0441\u0435\u043a|\u79d2|\ucd08)"
    r"(?:\s?/\s?(?:epoch|ep|it|iter|batch|step|Epoche|\u00e9poque|100 batches)\b)?(?![\w/])"
)

_PATTERNS = {
    "workers": (
        r"(?:num_workers|n_workers|workers?|\bnw)\s?(?:[=:]|is|->)?\s?(?P<after>\d{1,3})\b"
        r"|\b(?P<before>\d{1,3}) workers?\b"
    ),
    "head": (
        r"workers?\b|\bnw\b|\u30ef\u30fc\u30ab\u30fc|\u0432\u043e\u0440\u043a\u0435\u0440|\uc6cc\ucee4"
        r"|\u8fdb\u7a0b\u6570"
    ),
    "rate-head": (
        rf"{_RATE}|throughput|durchsatz|d\u00e9bit|rendimiento|\u541e\u5410"
        r"|\u30b9\u30eb\u30fc\u30d7\u30c3\u30c8|\ucc98\ub9ac\ub7c9|per second"
    ),
    "time-head": (
        rf"(?<![\w/]){_TIME}|\btime\b|zeit\b|dauer|dur\u00e9e|temps|tiempo|tempo|\u8017\u65f6|\u65f6\u95f4"
        r"|\u6642\u9593|\uc2dc\uac04"
        r"|\u0432\u0440\u0435\u043c\u044f|\bs/|\bms/|/epoch|per (?:epoch|batch)|\bsec/"
    ),
    "variable": r"workers[= ][\"']?\$\{?(?P<name>\w{1,24})\}?",
    "once": r"\b(?:first|start\w*|1st|init\w*|warm\w*|erste\w*|premi\w+|primer\w*)\b",
    "alone": r"^\D{0,24}(?P<number>\d{1,3})\D{0,16}$",
    "parts": (
        r"[,;]\s|\s(?:and|but|vs\.?|while|whereas|compared (?:to|with)|instead of|against)\s|(?<=[a-z)])\. "
    ),
    # "210 img/s with num_workers=1, 204 with 4, 187 with 8"
    "with": (
        rf"(?<![\w.,])(?P<value>\d{{1,6}}(?:[.,]\d{{1,3}})?)\s?(?P<unit>{_RATE}"
        rf"|{_TIME})?\s?(?:\([^)]{{0,20}}\))?\s?"
        r"(?:with|at|for|using|bei|mit|avec|con|com|a|\u0441|\u043f\u0440\u0438"
        r"|@)\s(?:num_workers\s?[=:]?\s?|workers\s?[=:]\s?|nw\s?=\s?)?"
        r"(?P<number>\d{1,3})(?:\s?(?:workers?|\u0432\u043e\u0440\u043a\u0435\u0440\w*))?(?![\w.%]"
        r"|\s?(?:GPUs?|s\b|img|it/))"
    ),
    # "0 -> 61 s, 2 -> 33 s", "workers=8: 48.9 s", "1 个 worker 210 张/秒, 8 个 205"
    "gives": (
        r"(?<![\w.,])(?:num_workers\s?[=:]?\s?|workers?\s?[=:]?\s?|nw\s?=\s?|with |mit |avec |con |com "
        r"|bei )?"
        r"(?P<number>\d{1,3})(?:\s?(?:workers?|\u4e2a\s?workers?|\u500b|\u4e2a|\uac1c|W)(?![A-Za-z]))?\s?"
        r"(?:->|=>|\u2192|:|=|\u2026|gives?|takes?|braucht|needs?|\u662f|\u3067|\u306f|\uff1a)\s?"
        rf"(?:~|ca\.? |about |rund |\u7d04|\u7ea6)?(?P<value>\d{{1,6}}(?:[.,]\d{{1,3}})?)\s?(?P<unit>{_RATE}"
        rf"|{_TIME})?(?![\w.%])"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a comparison of numbers of workers, by figures or in words; nothing in a manual."""
    if not passage.personal:
        return
    series = list(_comparisons(passage))
    slower = next((found for taken in series if (found := _slower(taken)) is not None), None)
    if slower is not None:
        yield slower[1].fact("worker_timing.slower", round(slower[0], 1))
    flat = next((even for taken in series if (even := _flat(taken)) is not None), None)
    shown = flat or (slower[1] if slower is not None else None) or _told(passage)
    if shown is not None:
        yield shown.fact("worker_timing.no_faster", True)
    most = max((*(workers for taken in series for workers in taken), *_named(passage)), default=0)
    if most:
        yield passage.lines[0].fact("worker_timing.most", most)


def _told(passage: Passage) -> Line | None:
    """A sentence on workers that says that more of them bring nothing, or harm."""
    for line in passage.sentences:
        if says("no faster").search(line.text) and says("workers").search(line.text):
            return line
    return None


def _named(passage: Passage) -> Iterator[int]:
    for line in passage.lines:
        for found in _pattern("workers").finditer(line.text):
            yield int(found.group("after") or found.group("before"))


def _comparisons(passage: Passage) -> Iterator[dict[int, tuple[float, Line]]]:
    """Times by the number of workers; rates are turned round."""
    for measure, inverse in ((seconds, False), (rates, True)):
        taken: dict[int, tuple[float, Line]] = {}
        for workers, text, line in _by_number(passage):
            figures = list(measure(text))
            if len(figures) == 1 and figures[0].value:
                amount = 1 / figures[0].value if inverse else figures[0].value
                taken.setdefault(workers, (amount, line))
        if len(taken) >= 2:
            yield taken
    for table in tables(passage):
        yield from _of_table(table)
    before = ""
    for line in (*passage.sentences, *passage.of(Voice.PRINTED)):
        named, before = says("workers").search(f"{before} {line.text}"), line.text
        for name in ("with", "gives") if named is not None else ():
            taken = _of_sentence(line, name)
            if len(taken) >= 3:
                yield taken


def _slower(taken: dict[int, tuple[float, Line]]) -> tuple[float, Line] | None:
    """More workers take longer than the fewest: each of them, or the most, rising from the best number on."""
    if len(taken) < 2:
        return None
    fewest, largest = min(taken), max(taken)
    base = taken[fewest][0]
    others = [taken[workers] for workers in taken if workers != fewest]
    most, line = max(others, key=lambda item: item[0])
    if most >= LEAST * base and all(amount >= EVEN * base for amount, _ in others):
        return most / base, line
    if most == taken[largest][0] and most >= LEAST * base and _rising(taken):
        return most / min(amount for amount, _ in taken.values()), line
    return None


def _rising(taken: dict[int, tuple[float, Line]]) -> bool:
    """Does each number of workers above the best one take longer than the one before it?"""
    best = min(taken, key=lambda workers: taken[workers][0])
    above = [taken[workers][0] for workers in sorted(taken) if workers >= best]
    return len(above) >= 2 and all(after > before for before, after in pairwise(above))


def _flat(taken: dict[int, tuple[float, Line]]) -> Line | None:
    """Four times the workers, and the times are those of the few; or they rise far above the best one's.

    0 workers load in the main process, so they are no measure of what a second worker brings.
    """
    some = sorted(workers for workers in taken if workers)
    if len(some) < 2 or some[-1] < 4 * some[0]:
        return None
    base, last = taken[some[0]][0], taken[some[-1]]
    if any(taken[workers][0] * FLAT < base for workers in some):
        best = min(taken[workers][0] for workers in some)
        return last[1] if _rising(taken) and last[0] >= LEAST * best else None
    return last[1]


def _of_table(table: Table) -> Iterator[dict[int, tuple[float, Line]]]:
    own = table.column(_pattern("head"))
    if own is None:
        return
    heads = table.head.cells
    if own == 0 and all(_pattern("alone").match(head) for head in heads[1:]):
        yield from _across(table)
        return
    for name in ("rate-head", "time-head"):
        at = next((at for at, head in enumerate(heads) if at != own and _pattern(name).search(head)), None)
        if at is None:
            continue
        taken: dict[int, tuple[float, Line]] = {}
        for row in table.rows:
            workers, amount = _pattern("alone").match(row.cells[own]), _measured(row.cells[at])
            if workers is not None and amount:
                taken.setdefault(
                    int(workers.group("number")), (1 / amount if name == "rate-head" else amount, row.line)
                )
        yield taken
        return
    at = _timed(table, own)
    if at is not None:
        numbers = [_pattern("alone").match(row.cells[own]) for row in table.rows]
        yield {
            int(workers.group("number")): (amount, row.line)
            for workers, row in zip(numbers, table.rows, strict=True)
            if workers is not None and (amount := _measured(row.cells[at]))
        }


def _timed(table: Table, own: int) -> int | None:
    """The last column of times by its cells: "whole epoch" over "8.6 s"; what starts once is none."""
    if any(next(seconds(cell), None) is not None for cell in table.head.cells):
        return None  # the first of the rows: nothing stands above them
    for at in range(len(table.head.cells) - 1, -1, -1):
        if at == own or _pattern("once").search(table.head.cells[at]):
            continue
        if all(next(seconds(row.cells[at]), None) is not None for row in table.rows):
            return at
    return None


def _across(table: Table) -> Iterator[dict[int, tuple[float, Line]]]:
    """A table with the numbers of workers in its head."""
    found = [_pattern("alone").match(head) for head in table.head.cells[1:]]
    numbers = [int(one.group("number")) for one in found if one is not None]
    for row in table.rows:
        name = next(
            (name for name in ("rate-head", "time-head") if _pattern(name).search(row.cells[0])), None
        )
        if name is None:
            continue
        taken: dict[int, tuple[float, Line]] = {}
        for workers, cell in zip(numbers, row.cells[1:], strict=True):
            if amount := _measured(cell):
                taken.setdefault(workers, (1 / amount if name == "rate-head" else amount, row.line))
        yield taken


def _measured(cell: str) -> float | None:
    figures = list(seconds(cell)) or list(rates(cell))
    return figures[0].value if figures else number(cell)


def _of_sentence(line: Line, name: str) -> dict[int, tuple[float, Line]]:
    """Pairs of a sentence; the unit may stand at the first or the last of them only."""
    taken: dict[int, tuple[float, Line]] = {}
    unit = ""
    for found in _pattern(name).finditer(line.text):
        amount = value(found.group("value"))
        workers = int(found.group("number"))
        if amount and workers <= 128:
            taken.setdefault(workers, (amount, line))
            unit = unit or found.group("unit") or ""
    if not unit:
        return {}
    if re.fullmatch(_RATE, unit, re.IGNORECASE):
        return {workers: (1 / amount, line) for workers, (amount, line) in taken.items()}
    return taken


def _by_number(passage: Passage) -> Iterator[tuple[int, str, Line]]:
    """Each number of workers, with the text that belongs to it: a line or a part of one."""
    # "--workers $W" in the script, and "W=16 -> 93 img/s" of its runs
    if (named := _pattern("variable").search(passage.text)) is not None:
        head = re.compile(rf"^\W{{0,4}}{named.group('name')}\s?=\s?(\d{{1,3}})\b(?!\.)")
        for line in passage.lines:
            if (run := head.match(line.text)) is not None:
                yield int(run.group(1)), line.text[run.end() :], line
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        if line.text.lstrip()[:1] == "|":
            continue
        for part in _pattern("parts").split(line.text):
            found = list(_pattern("workers").finditer(part))
            if len(found) == 1:
                yield int(found[0].group("after") or found[0].group("before")), part, line
