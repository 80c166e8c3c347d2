"""A GPU at work whose clock is far below what it could be, below its peers', or below what it began with."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import seconds
from torchdoctor.extract.readings.gpu_state import Busy, busy_rows
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "gpu_clocks"

FACTS: dict[str, str] = {
    "gpu_clocks.held_down": "str: what shows that the clock of a busy GPU is held down, in words",
    "gpu_clocks.slow": "bool: somebody says or shows that work on it is slow",
}

REASON_SHARE = 0.85  # of the highest clock, where a reason is given
CAP_SHARE = 0.6  # the power cap takes some of the clock from any card at full load
PEER_SHARE = 0.75
PAIR_SHARE = 0.65
HOT_C = 85
OWN_SHARE = 0.55
FALLS_TO = 0.7
LONGER = 1.4
COOL_C = 78

_PATTERNS = {
    "mhz": r"(?<![\w.,])(?P<mhz>\d{3,4})\s?MHz\b",
    "heat": r"(?<![\w.])(?P<heat>\d{2,3})\s?(?:\u00b0\s?C?|C\b|\u2103|deg\b|degrees)",
    # a card that waits for data lowers its clock, too
    "waits": (
        r"no (?:clocks?[_ ])?(?:throttl\w*|event) reason|waiting for data"
        r"|util\w*[^.\n]{0,12}(?<!\d)[0-6]?\d ?%"
        r"|(?<!\d)[0-6]?\d ?% (?:gpu|util\w*)|-pl \d"
    ),
    # "HW Power Brake Slowdown : Active", in a sentence
    "reason": (
        r"\b[HS]W (?:thermal |power brake )?slowdown\W{0,3}(?:[:=]|is|are|ist|est|es|\u00e8|shows?|says"
        r"|reports)?\W{0,4}active"
        r"|(?:thermal|power brake) (?:slowdown|throttling) (?:is )?active"
    ),
    "not-active": r"not active",
    "locked": r"(?:-lgc|--lock-gpu-clocks|-ac |--applications-clocks)\s?=?\s?\d|clocks? (?:are )?locked",
    "memory-clock": r"\bmem\w*\b|HBM|GDDR",
    "rate": (
        r"(?<![\w.])\d{1,7}(?:[.,]\d{1,3})?\s?(?:k\s)?(?:it|its|img|imgs|images|samples|tok|tokens"
        r"|steps|seq)/s"
    ),
    "power": (
        r"\bthrottl|heat|hot\b|heiß|warm|temp|power|watt|\d ?W\b|fan|cool|\u6e29\u5ea6|\u964d\u9891"
        r"|\u6e29\u5ea6"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a clock that is held down; nothing where nobody asks, or somebody holds it on purpose."""
    if not passage.personal:
        return
    slow = _slow(passage)
    found = _reasons(passage) if slow is not None else None
    if found is None or slow is None:
        return
    line, what = found
    yield line.fact("gpu_clocks.held_down", what)
    yield slow.fact("gpu_clocks.slow", True)


def _slow(passage: Passage) -> Line | None:
    said = next((line for line in passage.sentences if says("slow").search(line.text)), None)
    said = said or next((line for line in passage.sentences if _longer(line.text)), None)
    return said or passage.first(_pattern("rate")) or passage.first(says("slow"))


def _longer(text: str) -> bool:
    """Does a sentence name two times that are far apart?"""
    times = [figure.value for figure in seconds(text)]
    return len(times) >= 2 and max(times[:2]) >= LONGER * min(times[:2]) > 0


def _reasons(passage: Passage) -> tuple[Line, str] | None:
    rows = list(busy_rows(passage))
    for row in rows:
        if row.hard and (row.sm is None or row.sm <= REASON_SHARE * _could(row, rows)):
            return row.line, "a slowdown for heat or power is active"
        if row.capped and row.sm is not None and row.sm <= CAP_SHARE * _could(row, rows):
            return row.line, f"the power limit holds the clock at {row.sm:.0f} MHz"
    if (told := passage.first(_pattern("reason"))) is not None and not _pattern("not-active").search(
        told.text
    ):
        return told, "a slowdown for heat or power is active"
    if _pattern("locked").search(passage.text):
        return None
    for row in rows:
        if row.sm is None:
            continue
        if row.sure and row.highest and row.sm <= OWN_SHARE * row.highest:
            return row.line, f"{row.sm:.0f} of {row.highest:.0f} MHz while it works"
        others = _peers(row, rows)
        if len(others) >= 2 and row.sm <= PEER_SHARE * median(others) and _works(row):
            return row.line, f"{row.sm:.0f} MHz, the others {median(others):.0f} MHz"
        hot = row.heat is not None and row.heat >= HOT_C
        if len(others) == 1 and _works(row) and row.sm <= (PEER_SHARE if hot else PAIR_SHARE) * others[0]:
            return row.line, f"{row.sm:.0f} MHz, the other {others[0]:.0f} MHz"
    return _limits(rows) or _falls(rows) or _series(passage) or _told(passage)


def _could(row: Busy, rows: list[Busy]) -> float:
    """The clock that a card of its kind reaches: its highest one, else what its peers show."""
    return row.highest or max([other.sm for other in rows if other.sm] or [0.0])


def _peers(row: Busy, rows: list[Busy]) -> list[float]:
    return [
        other.sm
        for other in rows
        if other.sm and other.who != row.who and other.name == row.name and other.highest == row.highest
    ]


def _works(row: Busy) -> bool:
    return row.sure or row.busy_unknown


def _limits(rows: list[Busy]) -> tuple[Line, str] | None:
    for row in rows:
        others = [one.limit for one in rows if one.who != row.who and one.name == row.name and one.limit]
        if (
            row.limit
            and row.watts
            and others
            and row.limit <= 0.8 * min(others)
            and row.watts >= 0.9 * row.limit
        ):
            return row.line, f"a power limit of {row.limit:.0f} W, the others {min(others):.0f} W"
    return None


def _falls(rows: list[Busy]) -> tuple[Line, str] | None:
    """The same card, row after row: its clock falls while it works on."""
    series: dict[tuple[str, int | None], list[Busy]] = {}
    for row in rows:
        if row.sm is not None:
            series.setdefault(row.who, []).append(row)
    for run in series.values():
        first, last = run[0], run[-1]
        if len(run) < 3 or first.sm is None or last.sm is None or last.sm > FALLS_TO * first.sm:
            continue
        if last.sure or (last.heat is not None and last.heat >= COOL_C):
            return last.line, f"{first.sm:.0f} MHz at first, {last.sm:.0f} MHz later"
    return None


def _series(passage: Passage) -> tuple[Line, str] | None:
    """Clocks in lines of a log, with the rate or the heat beside them."""
    run: list[tuple[float, Line]] = []
    for line in passage.of(Voice.PRINTED):
        clocks = list(_pattern("mhz").finditer(line.text))
        beside = _pattern("rate").search(line.text) or _heat(line.text) >= COOL_C
        if len(clocks) == 1 and beside and not _pattern("memory-clock").search(line.text):
            run.append((float(clocks[0].group("mhz")), line))
    if len(run) >= 2 and run[-1][0] <= FALLS_TO * max(mhz for mhz, _ in run):
        return run[-1][1], f"{max(mhz for mhz, _ in run):.0f} MHz at first, {run[-1][0]:.0f} MHz later"
    return None


def _told(passage: Passage) -> tuple[Line, str] | None:
    """A sentence with two clocks far apart, and heat or power in it or beside it."""
    said = passage.sentences
    for at, line in enumerate(said):
        clocks = [float(found.group("mhz")) for found in _pattern("mhz").finditer(line.text)]
        near = " ".join(one.text for one in said[max(0, at - 1) : at + 2])
        if len(clocks) < 2 or _pattern("memory-clock").search(line.text) or says("idle").search(near):
            continue
        if _pattern("waits").search(line.text):
            continue
        if 300 <= min(clocks) <= FALLS_TO * max(clocks) and _pattern("power").search(near):
            return line, f"{min(clocks):.0f} MHz instead of {max(clocks):.0f} MHz"
    return None


def _heat(text: str) -> int:
    return max((int(found.group("heat")) for found in _pattern("heat").finditer(text)), default=0)
