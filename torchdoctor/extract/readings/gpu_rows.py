"""What rows of nvidia-smi show side by side: memory, power limits, heat.

The table has two lines a GPU, ``|  0  NAME  On | BUS ID Off | ECC |`` and
``| 30%  36C  P8  22W / 450W |  4MiB / 24564MiB |  0%  Default |``; ``--query-gpu … --format=csv`` names its
columns above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract import process_table
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "gpu_rows"

FACTS: dict[str, str] = {
    "gpu_rows.first_heavier": "float: memory in use on GPU 0 over that of the others, which agree",
    "gpu_rows.symmetric": "bool: the ranks of the text should use equal memory (DDP, torchrun)",
    "gpu_rows.low_limit": "int: GPU whose power limit is far below that of equal cards, and reached",
    "gpu_rows.strays": "int: processes with some memory on the first GPU of the table, and more on another",
    "gpu_rows.strays_told": "bool: somebody says that processes of other GPUs hold memory on the first",
    "gpu_rows.held": "bool: a GPU is idle with much memory in use, and somebody asks about the table",
    "gpu_rows.narrow": "int: GPU that has fewer PCIe lanes than it could, in a table of --query-gpu",
    "gpu_rows.hot": "int: GPU that is hot, busy, and far below its power limit or its highest clock",
}

HEAVIER = 1.15
HOT_C = 85
HELD_MIB = 1024
STRAY_SHARE = 0.6

_PATTERNS = {
    "name": (
        r"^\|\s{1,4}(?P<index>\d{1,2})\s{1,4}(?P<name>\S[^|]{2,60}?)\s{1,40}(?:On|Off"
        r"|N/A)\s*\|\s*[0-9A-F]{4,8}:"
    ),
    "state": (
        r"^\|\s*(?:\d{1,3}%|N/A|ERR!)\s+(?P<heat>\d{1,3}|N/A)C?\s+P\d{1,2}\s+(?P<watts>\d{1,4}"
        r"|N/A)W?\s*/\s*(?P<limit>\d{1,4}|N/A)W?"
        r"\s*\|\s*(?P<used>\d{1,7})MiB\s*/\s*(?P<total>\d{1,7})MiB\s*\|\s*(?P<busy>\d{1,3}|N/A)%?"
    ),
    "query-gpu": r"--query-gpu=(?P<columns>[a-z_.,]{5,400})",
    "gpustat": (
        r"^\s*\[(?P<index>\d{1,2})\]\s+(?P<name>[^|]{2,60}?)\s*\|\s*(?P<heat>\d{1,3})'?C,\s*(?P<busy>\d{1,3}"
        r") %\s*\|\s*(?P<used>\d{1,7}) /"
    ),
    "csv": r"^\s*(?P<index>\d{1,2})\s*,\s*(?P<mib>\d{1,7}) MiB\s*$",
    "csv-head": r"^\s*index\s*,\s*memory\.used \[MiB\]\s*$",
    "ranks": (
        r"DistributedDataParallel|\bDDP\b|torchrun|nproc[_-]per[_-]node|torch\.distributed|each rank"
        r"|every rank|per rank"
    ),
    "several": r"\bDDP\b|DistributedDataParallel|torchrun|distributed|multi-?process|processes|\branks?\b",
    "strays": (
        r"(?i:(?:processes|ranks|(?:every|each|other)[^.\n]{0,24}\b(?:process"
        r"|rank))\b[^.\n]{0,140}?(?:memory|\d+ ?[MG]i?B?\b|\bspace\b"
        r"|allocat)[^.\n]{0,80}(?:on|in|of|at) (?:the )?"
        r"(?:gpu ?[-:]?0\b|cuda:0|first gpu|gpu number 0|'cuda:0'))"
    ),
    "held": (
        r"(?i:\bfree\b|release|clear|\bkill|zombie|no (?:running )?process|without (?:a |any )?process"
        r"|in use|occupied"
        r"|still (?:used|allocated|full|taken)|reboot)"
    ),
    "container": r"(?i:docker|container|kubernetes|\bpod\b)",  # processes of others are never shown in one
    # unless somebody found who has the device open
    "left-over": (
        r"(?i:\borphan|\bfuser\b[^\n]{0,60}(?:list|show|find|python|pid)|parent (?:is|pid) 1\b|ppid 1\b)"
    ),
    "unequal": r"device_map|pipeline|DataParallel\(|nn\.DataParallel|tensor.parallel|FSDP|\bvLLM\b",
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Row:
    """One GPU of the table. Temperatures in degrees Celsius, power in watts, memory in MiB."""

    index: int
    name: str
    line: Line
    heat: int | None
    watts: int | None
    limit: int | None
    used_mib: int
    busy_percent: int | None
    clock_mhz: int | None = None
    highest_mhz: int | None = None
    lanes: int | None = None
    most_lanes: int | None = None


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a table in a question; nothing where nobody asks."""
    if not passage.personal:
        return
    rows = [*_rows(passage), *_csv_rows(passage)]
    yield from _memory(passage, rows)
    yield from _power(rows)
    yield from _strays(passage)
    held = next((row for row in rows if row.used_mib >= HELD_MIB and row.busy_percent == 0), None)
    missed = any(_pattern("held").search(line.text) for line in passage.of(Voice.SAID))
    hidden = _pattern("container").search(passage.text) and not _pattern("left-over").search(passage.text)
    if held is not None and missed and not hidden:
        yield held.line.fact("gpu_rows.held", True)
    narrow = next((row for row in rows if row.lanes and row.most_lanes and row.lanes < row.most_lanes), None)
    if narrow is not None:
        yield narrow.line.fact("gpu_rows.narrow", narrow.index)
    hot = next((row for row in rows if _is_hot(row)), None)
    if hot is not None:
        yield hot.line.fact("gpu_rows.hot", hot.index)


def _number(text: str) -> int | None:
    whole = text.partition(".")[0]
    return int(whole) if whole.isdecimal() else None


def _rows(passage: Passage) -> Iterator[Row]:
    head: re.Match[str] | None = None
    for line in passage.lines:
        if (found := _pattern("name").match(line.text)) is not None:
            head = found
        elif head is not None and (found := _pattern("state").match(line.text)) is not None:
            heat, watts, limit, busy = (
                _number(found.group(key)) for key in ("heat", "watts", "limit", "busy")
            )
            yield Row(
                int(head.group("index")),
                head.group("name"),
                line,
                heat,
                watts,
                limit,
                int(found.group("used")),
                busy,
            )
            head = None
        elif (found := _pattern("state").match(line.text)) is not None:
            # a row whose line with the name was left out
            heat, watts, limit, busy = (
                _number(found.group(key)) for key in ("heat", "watts", "limit", "busy")
            )
            yield Row(0, "", line, heat, watts, limit, int(found.group("used")), busy)


def _csv_rows(passage: Passage) -> Iterator[Row]:
    """Rows of ``nvidia-smi --query-gpu=COLUMNS``, by the columns of the command, and of gpustat."""
    columns: list[str] = []
    for line in passage.lines:
        if (stat := _pattern("gpustat").match(line.text)) is not None:
            gpu, heat, busy, used = (int(stat.group(key)) for key in ("index", "heat", "busy", "used"))
            yield Row(gpu, stat.group("name"), line, heat, None, None, used, busy)
        elif (asked := _pattern("query-gpu").search(line.text)) is not None:
            columns = asked.group("columns").split(",")
        elif columns and line.voice is Voice.PRINTED and line.text.count(",") == len(columns) - 1:
            texts = (cell.strip().split(" ")[0] for cell in line.text.split(","))
            cells = dict(zip(columns, texts, strict=True))
            index = _number(cells.get("index", ""))
            if index is None:
                continue
            yield Row(
                index,
                cells.get("name", ""),
                line,
                _number(cells.get("temperature.gpu", "")),
                _number(cells.get("power.draw", "")),
                _number(cells.get("power.limit", "")),
                _number(cells.get("memory.used", "")) or 0,
                _number(cells.get("utilization.gpu", "")),
                _number(cells.get("clocks.sm", cells.get("clocks.current.sm", ""))),
                _number(cells.get("clocks.max.sm", "")),
                _number(cells.get("pcie.link.width.current", "")),
                _number(cells.get("pcie.link.width.max", "")),
            )


def _memory(passage: Passage, rows: list[Row]) -> Iterator[Fact]:
    ranks = passage.first(_pattern("ranks"))
    if ranks is None or _pattern("unequal").search(passage.text):
        return
    used = {row.index: (row.used_mib, row.line) for row in rows}
    listed = False
    for line in passage.lines:
        listed = listed or _pattern("csv-head").match(line.text) is not None
        if listed and (found := _pattern("csv").match(line.text)) is not None:
            used.setdefault(int(found.group("index")), (int(found.group("mib")), line))
    others = sorted(mib for index, (mib, _) in used.items() if index != 0 and mib > 1000)
    if 0 not in used or len(others) < 2 or others[-1] > 1.05 * others[0]:
        return
    first, line = used[0]
    ratio = first / others[-1]
    if ratio >= HEAVIER:
        yield line.fact("gpu_rows.first_heavier", round(ratio, 2))
        yield ranks.fact("gpu_rows.symmetric", True)


def _strays(passage: Passage) -> Iterator[Fact]:
    table: dict[int, dict[int, tuple[int, Line]]] = {}
    for line in passage.lines:
        for row in process_table.rows(line.text):
            table.setdefault(row.pid, {})[row.gpu] = row.used_bytes, line
    gpus = sorted({gpu for used in table.values() for gpu in used})
    found = [
        used[gpus[0]][1]
        for used in table.values()
        if len(used) == 2
        and gpus[0] in used
        and 0 < used[gpus[0]][0] <= STRAY_SHARE * max(size for size, _ in used.values())
    ]
    if found:
        yield found[0].fact("gpu_rows.strays", len(found))
    told = passage.first(_pattern("strays"), Voice.SAID)
    if told is not None and _pattern("several").search(passage.text):
        yield told.fact("gpu_rows.strays_told", True)


def _power(rows: list[Row]) -> Iterator[Fact]:
    for row in rows:
        same = [other.limit for other in rows if other.name == row.name and other is not row and other.limit]
        if row.limit and row.watts and same and row.limit <= 0.8 * min(same) and row.watts >= 0.9 * row.limit:
            yield row.line.fact("gpu_rows.low_limit", row.index)
            return


def _is_hot(row: Row) -> bool:
    if row.heat is None or row.heat < HOT_C or (row.busy_percent is not None and row.busy_percent < 90):
        return False
    if row.clock_mhz and row.highest_mhz:
        return row.clock_mhz <= 0.6 * row.highest_mhz
    return row.watts is not None and row.limit is not None and row.watts <= 0.6 * row.limit
