"""Whether NumPy is older than a compiled module needs, by the numbers of its C API in NumPy's own message.

Source of the numbers: numpy/_core/code_generators/cversions.txt. The ABI has numbers of its own (0x1000009).
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "numpy_api.wanted": "str: first NumPy with the C API a module needs; absent where it is not too old",
    "numpy_api.here": "text: releases of NumPy with the older C API that is here",
}
# the number of the C API, and the first release that has it
_FIRST = {
    0x9: "1.8", 0xA: "1.10", 0xB: "1.13", 0xC: "1.14", 0xD: "1.16", 0xE: "1.20", 0xF: "1.22", 0x10: "1.23",
    0x11: "1.25", 0x12: "2.0", 0x13: "2.1", 0x14: "2.3", 0x15: "2.4", 0x16: "2.5",
}  # fmt: skip
_MESSAGE = (
    r"compiled against (?:API|NumPy C-API) version 0x(?P<built>[0-9a-f]{1,2})\b[^\n]{0,60}? but "
    r"(?:this version of numpy is|the running NumPy has C-API version) 0x(?P<here>[0-9a-f]{1,2})\b"
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of the message itself, else of the nearest such message above it."""
    above = transcript.events[: event.id]
    for one in (event, *reversed(above)):
        found = pattern(_MESSAGE).search(one.text) if "compiled against" in one.text else None
        if found is None:
            continue
        built, here = int(found["built"], 16), int(found["here"], 16)
        newest = max(number for number in _FIRST if number <= max(built, 9))
        yield "wanted", _FIRST[newest] if built > here else None
        yield "here", _releases(here) if built > here else None
        return
    yield "wanted", None


def _releases(number: int) -> str:
    """``1.16 to 1.19``: the first release of a C API, and the last before the next one."""
    first, after = _FIRST.get(number), _FIRST.get(number + 1, "")
    if first is None:
        return f"API {number:#x}"
    major, _, minor = after.partition(".")
    last = f"{major}.{int(minor) - 1}" if after and minor != "0" else "1.26" if after else first
    return first if last == first else f"{first} to {last}"
