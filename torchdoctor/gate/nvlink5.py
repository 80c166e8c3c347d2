"""What an NVLink-5 line (Xid 144 to 150) means: by unit and sub-code, never by its number alone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache

_TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvlink5.tsv")
_ORDER = ("nonfatal", "fatal", "link fatal")
# "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 …)"
_LINE = re.compile(r"\b([A-Z][A-Z0-9_]+)\s+(?:Fatal|Nonfatal|Non-fatal)\b[^(]*\(([^)]*)")


@dataclass(frozen=True, slots=True)
class Meaning:
    """``severity`` is nonfatal, fatal or link fatal; the others are NVIDIA's words for what to do."""

    severity: str
    immediate: str
    investigate: str

    @property
    def grave(self) -> bool:
        return self.severity != "nonfatal" and self.immediate == "RESET_GPU"

    @property
    def other_end(self) -> bool:
        """Is the fault at the other end of the link?"""
        return self.investigate == "INVESTIGATE_PEER_DEVICE"


@dataclass(frozen=True, slots=True)
class _Row:
    code: int
    units: tuple[str, ...]
    looks_at: str
    numbers: tuple[int, ...]
    meaning: Meaning

    def fits(self, reason: int, status: int) -> bool:
        if self.looks_at == "reason":
            return reason in self.numbers
        if status < 0:  # the line was cut before its second word
            return False
        if self.looks_at == "bits":
            return any(status & bit for bit in self.numbers)
        return status in self.numbers


@cache
def _rows() -> tuple[_Row, ...]:
    found = []
    with open(_TABLE, encoding="utf-8") as table:
        for line in table:
            if line.startswith("#"):
                continue
            code, units, looks_at, numbers, severity, immediate, investigate = line.rstrip("\n").split("\t")
            base = 10 if looks_at == "reason" else 16
            found.append(
                _Row(
                    int(code),
                    tuple(units.split()),
                    looks_at,
                    tuple(int(one, base) for one in numbers.split()),
                    Meaning(severity, immediate, investigate),
                )
            )
    return tuple(found)


def read(text: str) -> tuple[str, int, int]:
    """Unit, sub-code and error status bits of a line; "" and -1 for what it does not say."""
    found = _LINE.search(text)
    if found is None:
        return "", -1, -1
    words: list[int] = []
    for word in found.group(2).split()[:2]:
        try:
            words.append(int(word, 16))
        except ValueError:
            break
    # NVIDIA's decode of the NVLink-5 codes: reason = (intrinfo >> 20) & 0x3f
    reason = (words[0] >> 20) & 0x3F if words else -1
    return found.group(1), reason, words[1] if len(words) > 1 else -1


def decode(code: int, unit: str, reason: int, status: int) -> Meaning | None:
    """The worst meaning that fits; None for a combination that is not in the table."""
    if reason < 0 and status < 0:
        return None
    fitting = [
        row.meaning for row in _rows() if row.code == code and unit in row.units and row.fits(reason, status)
    ]
    return max(fitting, key=lambda one: (one.grave, _ORDER.index(one.severity)), default=None)
