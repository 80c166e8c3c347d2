"""Pinned host memory against what the machine has: sums of it, free memory, swap in use."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import sizes
from torchdoctor.extract.readings.passage import Line, Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "pinned"

FACTS: dict[str, str] = {
    "pinned.swapping": "bool: figures show much swap in use, or hardly any memory available",
    "pinned.share": "float: pinned memory of all processes, as a share of the machine's memory",
    "pinned.bytes": "int: pinned memory of all processes that the text tells of",
    "pinned.fine_without": "bool: without pinning the machine does not swap, by figures or words",
}

_UNITS = {"-b": 1, "-k": 1024, "-m": 1024**2, "-g": 1024**3, "-h": 1024**3, "": 1024}

_PATTERNS = {
    "free": r"^\s*total\s+used\s+free\b",
    "mem": (
        r"^\s*Mem(?:ory)?:\s+(?P<total>[\d.,]+)(?P<unit>[KMGT]i?)?\s+(?P<used>[\d.,]+)[KMGT]?i?\s+(?P<rest>."
        r"*)$"
    ),
    "swap": r"^\s*Swap:\s+(?P<total>[\d.,]+)(?P<unit>[KMGT]i?)?\s+(?P<used>[\d.,]+)(?P<used_unit>[KMGT]i?)?",
    "top-swap": (
        r"(?P<unit>[KMG]i?)B Swap\s*:?\s*(?P<total>[\d.]+)\+?\s*total,\s*[\d.]+\+?\s*free,\s*(?P<used>[\d.]+"
        r")\+?\s*used"
    ),
    "top-mem": r"(?P<unit>[KMG]i?)B Mem\s*:\s*(?P<total>[\d.]+)\+?\s*total",
    "meminfo": (
        r"^\s*(?P<name>MemTotal|MemAvailable|SwapTotal|SwapFree|Mlocked|Unevictable):\s+(?P<kib>\d+) kB"
    ),
    # vmstat: r b swpd free buff cache si so …, with KiB in use and KiB/s in and out
    "vmstat-head": r"^\s*r\s+b\s+swpd\s+free\b",
    "vmstat": (
        r"^\s*\d{1,4}\s+\d{1,4}\s+(?P<used>\d{1,12})(?:\s+\d{1,12}){3}\s+(?P<si>\d{1,9})"
        r"\s+(?P<so>\d{1,9})\s"
    ),
    # "128 GB RAM", "RAM: 256 GiB", "64GB of memory", "512 Go de RAM", "the node has 1 TB"
    "ram": (
        r"(?<![\w.])(?P<total>\d{1,4}(?:\.\d)?) ?(?P<unit>[GT])(?:i?[Bb]|o)?(?: of| de)?"
        r"(?: (?:system|host|main|DDR[45]|ECC|total))* (?:RAM|memory|Speicher|Arbeitsspeicher|\u5185\u5b58)\b"
        r"|\b(?:RAM|[Hh]ost memory|[Ss]ystem memory|\u5185\u5b58)\W{1,3}(?P<total2>\d{1,4}) ?(?P<unit2>[GT])"
    ),
    "option": r"-(?:b|k|m|g|h)\b|--(?:giga|mega|human)",
    "processes": (
        r"(?<![\w.])(?P<number>\d{1,3})\s*(?:ranks|processes|procs|Prozesse|processus|procesos|gpus?\b|GPUs"
        r"|x\b"
        r"|workers per node)"
        r"|--nproc[_-]per[_-]node[ =](?P<torchrun>\d{1,3})"
    ),
    "pinned": r"pinned|\bpins\b|page-locked|host_memory_stats|Mlocked|Unevictable|host allocator",
    "sentence": r"(?<=[A-Za-z)])[.;,]\s+",
    "per-process": (
        r"\brank\b|per (?:rank|process|gpu)|each|every rank|the others|\bjede[rs]?\b|\bchacun|\bcada\b"
    ),
    "on": (
        r"pin_memory[\"']?\s*[=:]\s*[Tt]rue|pin_memory\(\)|\bpinned|page-locked|pin_memory on\b"
        r"|with pin_memory\b"
    ),
    "without": (
        r"pin_memory[\"'`]?\s*(?:[=:]|is|set to)\s*[`\"']?[Ff]alse"
        r"|[Ww]ithout (?:pin|page-lock)|not pinn|[Uu]npinned|[Nn]o pinning|pinning off"
    ),
    "fine": (
        r"no swap|not swap|without swap|swap (?:stays|is|remains) (?:at )?(?:0|empty|unused|flat)"
        r"|\bconstant\b|\bstable\b|\bfine\b|\bnormal"
        r"|\b\d+ ?Gi?B (?:is |are )?(?:available|free)\b"
        r"|\bgone\b|disappear|goes away|\bflat\b|no problem|never (?:swap|touch)"
    ),
    "divided": r"/\s*(?:2\s?\*\*\s?(?P<power>30|20|40)|1024\s?\*\*\s?(?P<of>[234])|1e(?P<e>9|6))",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name])


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a machine that swaps while memory is pinned; nothing where nobody pins."""
    if not any(_pattern("on").search(line.text) for line in passage.lines):
        return
    memory = _Memory(passage)
    if memory.swapping is not None:
        yield memory.swapping.fact("pinned.swapping", True)
    found = _pinned(passage)
    if found is not None and memory.total:
        amount, line = found
        yield line.fact("pinned.bytes", int(amount))
        yield line.fact("pinned.share", round(amount / memory.total, 2))
    without = _fine_without(passage)
    if without is not None:
        yield without.fact("pinned.fine_without", True)


class _Memory:
    """The machine's memory and swap in bytes, as free, top or /proc/meminfo print them."""

    def __init__(self, passage: Passage) -> None:
        self.total = 0.0
        self.swapping: Line | None = None
        self._kib: dict[str, int] = {}
        unit: float | None = None
        vmstat = False
        for line in passage.lines:
            text = line.text
            if _pattern("vmstat-head").match(text):
                vmstat = True
            elif vmstat and (row := _pattern("vmstat").match(text)) is not None:
                # much swap in use alone is old; pages that go in or out now are the trouble
                moved = max(int(row.group("si")), int(row.group("so")))
                if int(row.group("used")) >= 1024**2 and moved >= 500:
                    self.swapping = self.swapping or line
            if line.voice is Voice.SHELL and text.startswith(("free", "watch")):
                option = _pattern("option").search(text)
                unit = float(_UNITS.get(option.group()[:2] if option else "", 1024))
            elif (found := _pattern("mem").match(text)) is not None:
                unit = unit or _unit_of(found.group("total"))
                self.total = max(self.total, _number(found.group("total"), found.group("unit"), unit))
            elif (found := _pattern("swap").match(text) or _pattern("top-swap").search(text)) is not None:
                self._swap(line, found, unit or _unit_of(found.group("total")))
            elif (found := _pattern("top-mem").search(text)) is not None:
                self.total = max(self.total, _number(found.group("total"), found.group("unit"), 1.0))
            elif (found := _pattern("meminfo").match(text)) is not None:
                self._meminfo(line, found.group("name"), int(found.group("kib")))
        self.total = self.total or _told_total(passage)

    def _swap(self, line: Line, found: re.Match[str], unit: float) -> None:
        own = found.group("unit")
        groups = found.groupdict()
        total = _number(found.group("total"), own, unit)
        used = _number(found.group("used"), groups.get("used_unit") or own, unit)
        if used >= 1024**3 and used * 4 >= total:
            self.swapping = self.swapping or line

    def _meminfo(self, line: Line, name: str, kib: int) -> None:
        self._kib[name] = kib
        if name == "MemTotal":
            self.total = max(self.total, kib * 1024.0)
        total, free = self._kib.get("SwapTotal"), self._kib.get("SwapFree")
        if total and free is not None and name in ("SwapTotal", "SwapFree") and (total - free) * 4 >= total:
            self.swapping = self.swapping or line


def _told_total(passage: Passage) -> float:
    """The memory of the machine in words: the largest, as that of a GPU is told beside it."""
    totals = [0.0]
    for line in passage.lines:
        for found in _pattern("ram").finditer(line.text):
            number = found.group("total") or found.group("total2")
            totals.append(_number(number, found.group("unit") or found.group("unit2"), 1.0))
    return max(totals)


def _unit_of(total: str) -> float:
    """The unit of free's table where the command is not shown, by what a machine's memory can be."""
    number = float(total.replace(",", ""))
    return 1024.0**3 if number < 8_192 else 1024.0**2 if number < 8_000_000 else 1024.0


def _number(text: str, unit: str | None, default: float) -> float:
    scale = 1024.0 ** ("KMGT".index(unit[0]) + 1) if unit else default
    return float(text.replace(",", "")) * scale


def _pinned(passage: Passage) -> tuple[float, Line] | None:
    """The largest amount of pinned memory that a line tells, times the processes where it is that of one."""
    best: tuple[float, Line] | None = None
    many = _processes(passage)
    for line in passage.lines:
        if not _pattern("pinned").search(line.text):
            continue
        each = many if _pattern("per-process").search(line.text) else 1
        if line.voice is Voice.TYPED:
            scale = _scale(line.text)
            answer = next(passage.answers(line, 1), None)
            number = re.match(r"\s*(\d{1,15}(?:\.\d+)?)\s*$", answer.text) if answer else None
            found = [(float(number.group(1)) * scale, answer)] if number and answer else []
            each = many
        elif (kib := _pattern("meminfo").match(line.text)) is not None:
            found, each = [(int(kib.group("kib")) * 1024.0, line)], 1
        else:
            parts = _pattern("sentence").split(line.text)
            told = (part for part in parts if _pattern("pinned").search(part))
            found = [(figure.value, line) for part in told for figure in sizes(part)]
        for amount, where in found:
            if best is None or amount * each > best[0]:
                best = (amount * each, where)
    return best


def _scale(command: str) -> float:
    found = _pattern("divided").search(command)
    if found is None:
        return 1.0
    if found.group("power"):
        return float(2 ** int(found.group("power")))
    return 1024.0 ** int(found.group("of")) if found.group("of") else 10.0 ** int(found.group("e"))


def _processes(passage: Passage) -> int:
    found = _pattern("processes").search(passage.text)
    number = int(found.group("number") or found.group("torchrun")) if found else 1
    return number if 1 <= number <= 64 else 1


def _fine_without(passage: Passage) -> Line | None:
    for line in passage.lines:
        if line.voice in (Voice.SAID, Voice.PRINTED) and (found := _pattern("without").search(line.text)):
            rest = line.text[found.end() :]
            if _pattern("fine").search(rest) or _pattern("fine").search(line.text[: found.start()]):
                return line
    return None
