"""A GPU whose PCIe link has fewer lanes, or under load a lower generation, than card and board can do."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.gpu_state import busy_rows
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "pcie_link"

FACTS: dict[str, str] = {
    "pcie_link.narrow": "str: lanes or generation of a GPU's link, and what it could be",
    "pcie_link.slow": "bool: somebody says or shows that copies or the training are slow",
}

NEAR = 6  # lines between what a link can do and what it does

LANES = (1, 2, 4, 8, 16, 32)  # that a link can have

_PATTERNS = {
    # lspci -vv; the width alone counts, the speed falls when a card is idle
    "capable": r"LnkCap:.{0,80}?Width x(?P<lanes>\d{1,2})",
    "status": r"LnkSta:.{0,80}?Width x(?P<lanes>\d{1,2})(?P<less> ?\(downgraded\))?",
    # nvidia-smi -q, whole or cut with grep, on lines of their own or with "/" between
    "query-max": r"(?:Link )?Width\b[^\n]{0,30}?\bMax\s*:\s*(?P<lanes>\d{1,2})x",
    "query-now": r"\bCurrent\s*:\s*(?P<lanes>\d{1,2})x",
    "query-only-max": r"^\s*(?:Device )?Max\s*:\s*(?P<lanes>\d{1,2})x\s*$",
    # the kernel, when it finds the card
    "kernel": (
        r"available PCIe bandwidth, limited by [\d.]{1,5} GT/s PCIe x(?P<lanes>\d{1,2}) link"
        r"(?:.{0,60}capable of .{0,60}x(?P<most>\d{1,2}))?"
    ),
    "sysfs-now": r"current_link_width[:=\s\"']{0,4}(?P<lanes>\d{1,2})?\s*$",
    "sysfs-max": r"max_link_width[:=\s\"']{0,4}(?P<lanes>\d{1,2})?\s*$",
    "bare": r"^\s*x?(?P<lanes>1|2|4|8|16)\s*$",
    "gpu-z": r"PCI-?E(?:xpress)? ?x(?P<most>\d{1,2}) [\d.]{1,4} ?@ ?x(?P<lanes>\d{1,2})\b",
    "inline": (
        r"width\.current[^\d\n]{1,8}(?P<lanes>\d{1,2})\b[^\n]{0,80}?width\.max[^\d\n]{1,8}(?P<most>\d{1,2})\b"
    ),
    "inline-backward": (
        r"width\.max[^\d\n]{1,8}(?P<most>\d{1,2})\b[^\n]{0,80}?width\.current[^\d\n]{1,8}(?P<lanes>\d{1,2})\b"
    ),
    # "runs at x4 instead of x16", "x1 statt x16", "4x of 16x"
    "instead": (
        r"(?:\bx ?(?P<lanes>1|2|4|8)|\b(?P<lanes2>1|2|4|8)x|\b(?P<lanes3>1|2|4"
        r"|8) lanes?)\b(?!\s?\d)[^.;\n]{0,60}?"
        r"(?:\bx ?16|\b16x|\b16(?: lanes?)?)\b"
    ),
    "backward": (
        r"(?:\bx ?16|\b16x)\b[^.;\n]{0,60}?(?:\bx ?(?P<lanes>1|2|4|8)|\b(?P<lanes2>1|2|4"
        r"|8)x)\b(?!\s?\d)"
    ),
    "contrast": (
        r"instead|rather than|not\b|only|should|statt|anstelle|nur\b|au lieu|seulement|en vez|en lugar|solo"
        r"|s\u00f3lo|em vez"
        r"|invece|\u0432\u043c\u0435\u0441\u0442\u043e|\u0430 \u043d\u0435|zamiast|tylko|yerine|in plaats"
        r"|\u800c\u4e0d\u662f|\u53ea\u6709|\u3067\u306f\u306a\u304f|\u306e\u306f\u305a|\ub300\uc2e0|\bof\b|@"
    ),
    "link": r"PCI-?e|PCI express|\blanes?\b|\briser|bifurcat|\bslot\b|LnkSta|link width|lspci",
    "gpu": r"\bGPUs?\b|nvidia|RTX|GTX|geforce|tesla|quadro|\b[AHLTV]\d{1,3}\b|cuda|torch|\b[12345]0[5-9]0\b",
    "copy": (
        r"\bH2D\b|\bHtoD\b|memcpy|host.to.device|\bcop(?:y|ies)\b|bandwidth|GB/s|offload|kopie|copia"
        r"|copie|\u62f7\u8d1d"
    ),
    "fine": (
        r"same speed|no difference|doesn't matter|makes no|not a problem|as fast as|gleich schnell"
        r"|kein Unterschied"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a narrow link and of what it costs; nothing where nobody asks, or it costs nothing."""
    if not passage.personal or _pattern("gpu").search(passage.text) is None:
        return
    slow = _slow(passage)
    if slow is None or passage.told(_pattern("fine")) is not None:
        return
    found = _table(passage) or _listing(passage) or _files(passage) or _words(passage)
    if found is not None:
        line, what = found
        yield line.fact("pcie_link.narrow", what)
        yield slow.fact("pcie_link.slow", True)


def _slow(passage: Passage) -> Line | None:
    said = next((line for line in passage.sentences if says("slow").search(line.text)), None)
    return said or passage.first(_pattern("copy")) or passage.first(says("slow"))


def _table(passage: Passage) -> tuple[Line, str] | None:
    rows = list(busy_rows(passage))
    for row in rows:
        if row.lanes in LANES and row.most_lanes in LANES and row.lanes < row.most_lanes:
            return row.line, f"x{row.lanes:.0f} of x{row.most_lanes:.0f}"
    widths = [row.lanes for row in rows if row.lanes]
    for row in rows:
        if (
            row.lanes
            and widths.count(max(widths)) >= 1
            and row.lanes * 4 <= max(widths)
            and not row.most_lanes
        ):
            return row.line, f"x{row.lanes:.0f}, others x{max(widths):.0f}"
        if (
            row.sure
            and row.speed
            and row.highest_speed
            and row.speed < row.highest_speed
            and _copies(passage)
        ):
            return row.line, f"generation {row.speed:.0f} of {row.highest_speed:.0f} under load"
    return None


def _copies(passage: Passage) -> bool:
    return passage.first(_pattern("copy")) is not None


def _listing(passage: Passage) -> tuple[Line, str] | None:
    """Key and value, as lspci and nvidia-smi -q print them."""
    for now, most in (("status", ("capable",)), ("query-now", ("query-max", "query-only-max"))):
        for line in passage.lines:
            for found in _pattern(now).finditer(line.text):
                above = "\n".join(one.text for one in passage.lines[max(0, line.at - NEAR) : line.at])
                before = above + "\n" + line.text[: found.start()]
                could = [int(it.group("lanes")) for name in most for it in _multi(name).finditer(before)]
                lanes = int(found.group("lanes"))
                if could and 0 < lanes < could[-1]:
                    return line, f"x{lanes} of x{could[-1]}"
                if now == "status" and found.group("less"):
                    return line, f"x{lanes} (downgraded)"
    for wanted in ("inline", "inline-backward"):
        told = passage.first(_pattern(wanted))
        it = _pattern(wanted).search(told.text) if told is not None else None
        if told is not None and it is not None and int(it.group("lanes")) < int(it.group("most")):
            return told, f"x{it.group('lanes')} of x{it.group('most')}"
    for name in ("kernel", "gpu-z"):
        line_found = passage.first(_pattern(name))
        if line_found is not None and (it := _pattern(name).search(line_found.text)) is not None:
            lanes, most_lanes = int(it.group("lanes")), int(it.group("most") or 16)
            if lanes < most_lanes and (it.group("most") or lanes <= 4):
                return line_found, f"x{lanes} of x{most_lanes}"
    return None


@cache
def _multi(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE | re.MULTILINE)


def _files(passage: Passage) -> tuple[Line, str] | None:
    """What stands in /sys/bus/pci/devices/…/current_link_width, beside max_link_width."""
    values: dict[str, tuple[int, Line]] = {}
    waiting: list[str] = []
    for line in passage.lines:
        for name in ("sysfs-now", "sysfs-max"):
            if (found := _pattern(name).search(line.text)) is not None:
                if found.group("lanes"):
                    values[name] = int(found.group("lanes")), line
                else:
                    waiting.append(name)
        if waiting and (bare := _pattern("bare").match(line.text)) is not None:
            values[waiting.pop(0)] = int(bare.group("lanes")), line
    if len(values) == 2 and 0 < values["sysfs-now"][0] < values["sysfs-max"][0]:
        return values["sysfs-now"][1], f"x{values['sysfs-now'][0]} of x{values['sysfs-max'][0]}"
    return None


def _words(passage: Passage) -> tuple[Line, str] | None:
    """A sentence that sets the lanes it has against the 16 it should have."""
    for line in (*passage.sentences, *passage.of(Voice.PRINTED)):
        if _pattern("link").search(line.text) is None:
            continue
        found = _pattern("instead").search(line.text) or _pattern("backward").search(line.text)
        if found is not None and _pattern("contrast").search(found.group()):
            lanes = next(value for value in found.groups() if value)
            return line, f"x{lanes} of x16"
    return None
