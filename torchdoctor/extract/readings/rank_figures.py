"""Figures that stand a rank or a GPU each: in a table, in lines of the same shape, in one line.

``| rank | batches |`` over rows; ``rank 0: 412 batches`` and ``[rank1] 413 batches``; ``rank 0 412, rank 1
413``; ``batches per rank: [412, 413, 412]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage

MOST = 1024  # ranks
LABEL = 40  # characters around a figure that may name it

_HEAD = (
    r"(?:rank|rang|gpu|device|proc(?:ess)?|card|worker|node|karte|carte|placa|tarjeta|scheda"
    r"|\u0440\u0430\u043d\u0433"
    r"|\u5361|\u8fdb\u7a0b|\u30e9\u30f3\u30af|\ub7ad\ud06c|\u8282\u70b9)"
)
_NUMBER = r"(?:\d{1,3}(?:[ ,.\u202f\u00a0'](?=\d{3}(?!\d))\d{3})+|\d+(?:[.,]\d+)?)"
_PATTERNS = {
    "head": rf"(?i)^[\W_]*{_HEAD}s?\b(?: ?(?:id|index|#|no\.?))?[\W_]*$",
    "number": rf"(?<![\w.,:/-]){_NUMBER}(?![A-Za-z0-9_:/]|[.,]\d)",
    "value": rf"^\W*(?P<value>{_NUMBER})(?:\s*[A-Za-z%/]{{1,12}})?\W*$",
    "hash": r"^\W*(?P<value>[0-9a-f]{6,64})\W*$",
    # the rank that a line is of
    "rank": (
        rf"(?i)(?<![^\W\d_])(?P<word>{_HEAD})s?(?!::)[\s_:=#-]{{0,3}}(?P<rank>\d{{1,4}})(?:/\d{{1,4}}(?!\d))?(?!"
        r"[\d.]|,\d|\s?%)"
        # "r0: ", "[r3] ", "R1 | "
        r"|^\s*\[?[rR](?P<short>\d{1,3})(?=\]|\s?[:|>])"
        r"|(?<![\d.])(?P<first>\d{1,3}) ?(?P<after>\u53f7\u5361|\u5361|\ubc88 ?(?:GPU|\ub7ad\ud06c)?|\u756a)"
        # cuda:0
        r"|\bcuda:(?P<cuda>\d{1,2})\b"
    ),
    # "ranks 1-3: 687 lots", "rangs 1, 2, 3 : …", "the other three: 15.3"
    "several": (
        rf"(?i)(?<![^\W\d_])(?:{_HEAD})s?[\s_:=#]{{0,2}}(?P<list>\d{{1,3}}"
        r"(?:(?:\s*[,&]\s*|\s+(?:and|und|et|y|e|i)\s+)\d{1,3})+)(?!\d)"
    ),
    "range": (
        rf"(?i)(?<![^\W\d_])(?:{_HEAD})s?[\s_:=#]{{0,2}}(?P<from>\d{{1,3}})\s?"
        r"(?:-|\u2013|\.\.|to|bis|\u00e0|a|~|\u5230)\s?(?P<to>\d{1,3})(?!\d)"
    ),
    "listed": rf"[\[({{]\s*(?P<values>{_NUMBER}(?:\s*,\s+{_NUMBER}){{1,127}})\s*,?\s*[\])}}]",
    "slashed": rf"(?<![\w./]){_NUMBER}(?:\s?/\s?{_NUMBER}){{1,15}}(?![\w/])",
    "per-rank": rf"(?i)(?:(?:per|by|each|every|pro|par|por|per|all) {_HEAD}|{_HEAD}s\b|\bper[-_]rank"
    rf"|(?:\u6bcf|\u5404|\uac01)[\u4e2a\u5f20]? ?{_HEAD}|{_HEAD} ?(?:\u3054\u3068|\ubcc4))",
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Series:
    """The same figure of several ranks. ``label``: the words around it, or its column's head."""

    label: str
    values: dict[int, float]
    line: Line  # of the first rank

    @property
    def differ(self) -> bool:
        return len(set(self.values.values())) > 1


def number(text: str) -> float:
    """A figure as people write it: ``21 983``, ``3,912``, ``35,9``, ``0.5``."""
    grouped = re.fullmatch(r"\d{1,3}(?:[ ,.\u202f\u00a0']\d{3})+", text)
    if grouped is not None and not text.startswith("0"):
        return float(re.sub(r"\D", "", text))
    return float(text.replace(",", "."))


def series(passage: Passage) -> Iterator[Series]:
    """All that is told rank by rank, tables first."""
    yield from _tables(passage)
    yield from _lines(passage)
    yield from _listed(passage)


def cells(text: str) -> list[str]:
    """The cells of a row: between bars, tabs, wide blanks or commas; else its words."""
    stripped = text.strip()
    if "|" in stripped:
        return [cell.strip() for cell in stripped.strip("|").split("|")]
    if "\t" in stripped:
        return [cell.strip() for cell in stripped.split("\t")]
    if re.search(r"\s{2,}", stripped):
        return re.split(r"\s{2,}", stripped)
    if re.search(r"\w,\s?\w", stripped) and not re.search(r"[.?!]\s", stripped):
        return [cell.strip() for cell in stripped.split(",")]
    return stripped.split()


def _tables(passage: Passage) -> Iterator[Series]:
    heads: list[str] = []
    ranks = 0
    rows: list[tuple[int, list[str], Line]] = []
    for line in passage.lines:
        own = cells(line.text)
        if heads and set(line.text) <= set("|-:+= \t"):
            continue  # the rule below the head
        row = own if len(own) == len(heads) else line.text.replace("|", " ").split()
        rank = _pattern("value").match(row[ranks]) if heads and len(row) == len(heads) else None
        if rank is not None and rank.group("value").isdecimal() and int(rank.group("value")) < MOST:
            rows.append((int(rank.group("value")), row, line))
            continue
        yield from _blocks(heads, ranks, rows)
        rows, heads = [], []
        if len(own) >= 2:
            at = next((at for at, cell in enumerate(own) if _pattern("head").match(cell)), None)
            if at is not None:
                heads, ranks = own, at
    yield from _blocks(heads, ranks, rows)


def _blocks(heads: list[str], ranks: int, rows: list[tuple[int, list[str], Line]]) -> Iterator[Series]:
    """The columns of a table; one that begins again with the first rank holds several steps."""
    block: list[tuple[int, list[str], Line]] = []
    for row in rows:
        if any(row[0] == rank for rank, _, _ in block):
            yield from _columns(heads, ranks, block)
            block = []
        block.append(row)
    yield from _columns(heads, ranks, block)


def _columns(heads: list[str], ranks: int, rows: list[tuple[int, list[str], Line]]) -> Iterator[Series]:
    for at, head in enumerate(heads):
        if at == ranks or len(rows) < 2:
            continue
        values: dict[int, float] = {}
        for rank, row, _ in rows:
            if (found := _pattern("value").match(row[at])) is not None:
                values[rank] = number(found.group("value"))
            elif (found := _pattern("hash").match(row[at])) is not None:
                values[rank] = float(int(found.group("value")[:12], 16))  # to tell it from others
        if len(values) == len(rows):
            yield Series(head, values, rows[0][2])


def ranks_of(line: Line) -> tuple[list[int], str]:
    """The ranks that a line is of, and the line without their names; ([], text) where it names none."""
    text = line.text
    for name in ("range", "several"):
        if (found := _pattern(name).search(text)) is not None:
            if name == "range":
                first, last = int(found.group("from")), int(found.group("to"))
                ranks = list(range(first, last + 1)) if first < last < first + MOST else []
            else:
                ranks = [int(one) for one in re.findall(r"\d+", found.group("list"))]
            return ranks, f"{text[: found.start()]} {text[found.end() :]}"
    found = _pattern("rank").search(text)
    if found is not None:
        told = found.group("rank") or found.group("first") or found.group("cuda") or found.group("short")
        return [int(told)], f"{text[: found.start()]} {text[found.end() :]}"
    return ([line.rank], text) if line.rank is not None else ([], text)


def _lines(passage: Passage) -> Iterator[Series]:
    groups: dict[tuple[str, int], tuple[str, dict[int, float], Line]] = {}
    last: list[int] = []
    for line in passage.lines:
        named = list(_pattern("rank").finditer(line.text))
        if len(named) > 1 and not _pattern("several").search(line.text):
            yield from _in_line(line, named)
            continue
        ranks, rest = ranks_of(line)
        if not ranks:
            continue
        shape = " ".join(re.sub(r"[\d.,]+", "#", rest).split())[:160]
        for at, hit in enumerate(_pattern("number").finditer(rest)):
            label = (
                f"{rest[max(0, hit.start() - LABEL) : hit.start()]} # {rest[hit.end() : hit.end() + LABEL]}"
            )
            key = shape, at
            if key in groups and ranks[0] in groups[key][1] and ranks == last:
                continue  # the next step of the same rank
            _, values, _ = groups.setdefault(key, (label, {}, line))
            for rank in ranks:
                values.setdefault(rank, number(hit.group()))
        last = ranks
    for label, values, line in groups.values():
        if len(values) >= 2:
            yield Series(" ".join(label.split()), values, line)


def _in_line(line: Line, named: list[re.Match[str]]) -> Iterator[Series]:
    """``rank 0 has 412 batches, rank 1 413``: the first figure behind each rank, or right before it."""
    values: dict[int, float] = {}
    label = ""
    for one, two in zip(named, [*named[1:], None], strict=True):
        part = line.text[one.end() : two.start() if two is not None else one.end() + 60]
        found = _pattern("number").search(part)
        if found is None:
            return
        rank = int(next(number for number in one.group("rank", "first", "cuda", "short") if number))
        values.setdefault(rank, number(found.group()))
        label += f" {part[: found.start()]} # {part[found.end() : found.end() + LABEL]}"
    if len(values) >= 2:
        before = line.text[max(0, named[0].start() - LABEL) : named[0].start()]
        yield Series(" ".join(f"{before}{label}".split())[:200], values, line)


def _listed(passage: Passage) -> Iterator[Series]:
    """Values of all ranks one after the other, where words around them say that they are of ranks."""
    for line in passage.lines:
        if not _pattern("per-rank").search(line.text):
            continue
        for name in ("listed", "slashed"):
            for hit in _pattern(name).finditer(line.text):
                text = hit.group("values") if name == "listed" else hit.group()
                parts = re.split(r",\s+" if name == "listed" else r"\s?/\s?", text.strip())
                before = line.text[max(0, hit.start() - 2 * LABEL) : hit.start()]
                around = f"{before} # {line.text[hit.end() : hit.end() + 2 * LABEL]}"
                yield Series(around, {rank: number(part) for rank, part in enumerate(parts)}, line)
