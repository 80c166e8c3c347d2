"""The memory and the swap of a machine, as commands print them and people tell of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.amounts import amounts, value
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        r"(?:^|\s)(?P<name>MemTotal|MemAvailable|SwapTotal|SwapFree|Mlocked|Unevictable):\s+(?P<kib>\d+) kB"
    ),
    # the same put into columns: "SwapFree   65 530 MB   47 904 MB", "| SwapFree | 64 GB | 2 GB |"
    "meminfo-row": r"^\W*(?P<name>MemTotal|MemAvailable|SwapTotal|SwapFree)\b(?P<rest>\W.*)$",
    "cell": (
        r"(?<![\w.,])(?P<number>\d{1,3}(?:[ ,.\u00a0\u202f]\d{3})+|\d{1,12}(?:\.\d{1,2})?)"
        r" ?(?P<unit>[kKMGT])i?B\b"
    ),
    "si-so": r"\bsi ?/ ?so\b[^\n]*?\D(?P<si>\d{1,9}) ?/ ?(?P<so>\d{1,9})\s*\|?\s*$",
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
        r"|\b(?:node|server|machine|box|host|workstation|Server|Rechner|Knoten|serveur)s?"
        r" (?:\(|with |has |mit )(?P<total3>\d{2,4}) ?(?P<unit3>[GT])(?:i?[Bb]|o)?(?=[).,;\n]|$)"
        r"|\b(?:RAM|[Hh]ost memory|[Ss]ystem memory|\u5185\u5b58"
        r"|\u30e1\u30e2\u30ea)\W{1,24}(?P<total2>\d{1,4}) ?(?P<unit2>[GT])"
    ),
    "option": r"-(?:b|k|m|g|h)\b|--(?:giga|mega|human)",
    # "swap 16 GB, used 15.8 GB", "Swp[|||15.8G/16.0G]", "58.2 of 64 GB swap used", "swapped out 9.7 GB"
    "swap-told": (
        r"\b[Ss]wap\W{1,4}(?P<total>[\d.,]+) ?[KMGT]i?[Bo]?\W{1,4}(?:used|belegt|utilis\u00e9\w*|usado"
        r"|in use)\W{1,3}(?P<used>[\d.,]+ ?[KMGT])"
        r"|\b[Ss](?:wp|wap)\W{0,120}?(?P<bar>[\d.,]+ ?[KMGT]?)i?B? ?(?:/|of|von|de"
        r"|sur) ?(?P<full>[\d.,]+ ?[KMGT])"
        r"|(?P<part>[\d.,]+) ?(?:[KMGT]i?B? )?(?:/|of|von|de|sur) ?(?P<whole>[\d.,]+ ?[KMGT])i?[Bo]? (?:of "
        r"|de )?[Ss]wap"
        r"|\bswapped(?:[ -]out)?\W{1,3}(?P<out>[\d.,]+ ?[KMGT])|(?P<out2>[\d.,]+ ?[KMGT])i?B? (?:is |are "
        r"|were |was )?(?:swapped|in swap|of swap|swap used)"
        r"|\b[Ss]wap (?:used|usage|belegt|utilis\u00e9|en uso|in use"
        r"|\u4f7f\u7528)?\W{1,4}(?P<alone>[\d.,]+ ?[KMGT])"
    ),
    # sar -W: pages a second
    "sar": r"^\s*\d{1,2}:\d{2}\S*\s(?:[AP]M\s)?\s*(?P<si>\d+[.,]\d+)\s+(?P<so>\d+[.,]\d+)\s*$",
    # swapon --show
    "swapon": (
        r"^\s*/\S+\s+(?:file|partition)\s+(?P<total>[\d.,]+[KMGT]?)\s+(?P<used>[\d.,]+[KMGT]?)\s+-?\d+\s*$"
    ),
    "swaps": (
        r"(?:starts?|started|begins?|began|keeps?|is|are|was|goes|while|all the time|heavily"
        r"|constantly)\b[^.\n]{0,30}\bswapp(?:ing|ed)\b|\bswaps\b|\bswapping\b|\bthrash\w*"
        r"|\bkswapd\d?\b[^.\n]{0,30}\d{2,3} ?%|\blager\w* (?:\w+ ){0,3}aus\b|\bswappt\b|\bausgelagert\b"
        r"|\ben (?:la )?swap\b|\bswappe\b|\bswapea\w*|\bhace(?:n)? swap|\busa(?:ndo)? swap|\bswappa\w*"
        r"|\u0441\u0432\u043e\u043f\u0438\w*|\u0443\u0445\u043e\u0434\u0438\w* \u0432 (?:swap"
        r"|\u0441\u0432\u043e\u043f)|swap[^\n\u3002]{0,12}(?:\u7528\u6ee1|\u66b4\u6da8|\u5360\u6ee1|\u6da8"
        r"|\u98d9\u5347)|(?:\u5f00\u59cb|\u7591\u72c2|\u75af\u72c2|\u4e00\u76f4)[^\n\u3002]{0,6}swap"
        r"|\u30b9\u30ef\u30c3\u30d7(?:\u304c|\u3057|\u3092)[^\n\u3002]{0,12}(?:\u767a\u751f|\u5897|\u59cb"
        r"|\u4f7f)|swap[^\n]{0,10}(?:\u767a\u751f|\u5897\u3048)|\uc2a4\uc651"
        # Windows
        r"|\b(?:because of|due to|into|wegen) (?:the |der )?(?:page ?file|paging file|Auslagerungsdatei)\b"
        r"|\bpaging (?:heavily|constantly|all the time|to disk)\b"
        r"|\b(?:page ?file|paging file)\b[^.\n]{0,24}\b(?:grow\w*|fills?|explod\w+|busy|full)\b"
    ),
    "none": (
        r"(?i)\b(?:no|not|never|without|kein\w*|nicht|ohne|pas|sans|sin|sem|senza|n't)\b[^.\n]{0,16}(?:swap"
        r"|auslager|lagert)"
    ),
}


_pattern = patterns(_PATTERNS)


def told_swapping(passage: Passage) -> Line | None:
    """A sentence that says that the machine swaps, figures or not; none that says that it does not."""
    for line in passage.sentences:
        if _pattern("swaps").search(line.text) and not _pattern("none").search(line.text):
            return line
    return None


class Memory:
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
            elif (found := _pattern("meminfo").search(text)) is not None:
                self._meminfo(line, found.group("name"), int(found.group("kib")))
            elif (found := _pattern("meminfo-row").match(text)) is not None:
                self._row(line, found.group("name"), found.group("rest"))
            elif self.swapping is None and _swaps(text):
                self.swapping = line
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

    def _row(self, line: Line, name: str, rest: str) -> None:
        """What /proc/meminfo said at several times: the least free of them counts."""
        kib = [
            int(float(re.sub(r"[ ,\u00a0\u202f]|\.(?=\d{3})", "", one.group("number"))))
            * 1024 ** "KMGT".index(one.group("unit").upper())
            for one in _pattern("cell").finditer(rest)
        ]
        if kib:
            self._meminfo(line, name, min(kib))


def _swaps(text: str) -> bool:
    """A line of htop, sar or swapon, or words: a GiB or more in swap, a quarter of it where it is told."""
    if (row := _pattern("sar").match(text) or _pattern("si-so").search(text)) is not None:
        return max(value(row.group("si")) or 0.0, value(row.group("so")) or 0.0) >= 500
    found = _pattern("swapon").match(text) or _pattern("swap-told").search(text)
    if found is None:
        return False
    told = {name: text for name, text in found.groupdict().items() if text}
    full = told.get("full") or told.get("whole") or told.get("total") or ""
    unit = full[-1:] if full[-1:].isalpha() else "G"
    for name in ("used", "bar", "part", "out", "out2", "alone"):
        if name in told:
            used = next(_sized(told[name], unit), 0.0)
            return used >= 1024**3 and 4 * used >= next(_sized(full, unit), 0.0)
    return False


def _sized(text: str, unit: str) -> Iterator[float]:
    yield from amounts(text if text[-1:].isalpha() else f"{text}{unit}")


def _told_total(passage: Passage) -> float:
    """The memory of the machine in words: the largest, as that of a GPU is told beside it."""
    totals = [0.0]
    for line in passage.lines:
        for found in ram(line.text):
            number = next(found[key] for key in ("total", "total2", "total3") if found[key])
            unit = next(found[key] for key in ("unit", "unit2", "unit3") if found[key])
            totals.append(_number(number, unit, 1.0))
    return max(totals)


def ram(text: str) -> Iterator[re.Match[str]]:
    """Where a line tells how much memory the machine has."""
    yield from _pattern("ram").finditer(text)


def _unit_of(total: str) -> float:
    """The unit of free's table where the command is not shown, by what a machine's memory can be."""
    number = float(total.replace(",", ""))
    return 1024.0**3 if number < 8_192 else 1024.0**2 if number < 8_000_000 else 1024.0


def _number(text: str, unit: str | None, default: float) -> float:
    scale = 1024.0 ** ("KMGT".index(unit[0]) + 1) if unit else default
    return (value(text) or 0.0) * scale
