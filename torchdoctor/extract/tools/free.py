"""The table of ``free``: how much of the host's memory was left."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript

FACTS: dict[str, str] = {
    "free.available_share": "float: available memory as a share of all, by the table below this head line",
}

_UNITS = {"": 1.0, "B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What the row ``Mem:`` below free's head line says; nothing for another event."""
    columns = event.text.split("\n")[0].split()
    below = transcript.events[event.id + 1 : event.id + 2]
    if columns[:3] != ["total", "used", "free"] or "available" not in columns or not below:
        return
    cells = below[0].text.split()
    if cells[:1] != ["Mem:"] or len(cells) != len(columns) + 1:
        return
    total = _amount(cells[1])
    available = _amount(cells[1 + columns.index("available")])
    if total and available is not None:
        source = below[0].place()
        yield Fact.known("free.available_share", available / total, source, below[0].text[:200])


def _amount(cell: str) -> float | None:
    """``503Gi``, ``1.2T`` or ``515072`` as a number in one unit; None for what is none."""
    digits = cell.rstrip("iB").rstrip("KMGT")
    unit = cell.rstrip("iB")[len(digits) :]
    if len(digits) > 16 or not digits.replace(".", "", 1).isdecimal():
        return None
    return float(digits) * _UNITS[unit]
