"""The port that a server did not get, from its message or from the line that starts it, and another one."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "port.taken": "int: the port that another process holds, by the message or the line that asks for it",
    "port.other": "int: one near it, and not the next, which often belongs to another service of the server",
}
# an address of Python, "port 6006", "range: 7860-7860", "Socket '0.0.0.0:8000'"
_TOLD = (
    r"\('[^'\n]{0,80}', (?P<of_address>\d{1,5})\b|\b[Pp]ort (?P<of_port>\d{1,5})\b"
    r"|\brange: \d{1,5}-(?P<of_range>\d{1,5})\b|'[^'\s]{0,80}:(?P<of_socket>\d{1,5})'"
)
_WRITTEN = (
    r"\bport\s{0,4}=\s{0,4}(?P<named>\d{1,5})\b|\(\s{0,4}['\"][\w.:]{0,80}['\"],\s{0,4}(?P<second>\d{1,5})\b"
)
_MOST = 65_535
_APART = 10


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Both facts, of a message that names the port, else of the innermost own line that does."""
    found = pattern(_TOLD).search(event.text[:1_000])
    if found is None:
        codes = (frame.code[:500] for frame in reversed(event.frames) if not frame.package)
        found = next((one for code in codes if (one := pattern(_WRITTEN).search(code)) is not None), None)
    taken = int(next(value for value in found.groups() if value)) if found is not None else 0
    if not 0 < taken <= _MOST:
        yield "taken", None
        return
    yield "taken", taken
    yield "other", taken + _APART if taken + _APART <= _MOST else taken - _APART
