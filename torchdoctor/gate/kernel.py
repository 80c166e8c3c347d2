"""Events of the kernel log: Xid, SXid and resets, each with its time and the GPU it is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from torchdoctor.extract import of_event
from torchdoctor.extract.xid import place
from torchdoctor.gate import nvlink5
from torchdoctor.gate.facts import Facts
from torchdoctor.model import Event as Said
from torchdoctor.model import EventKind, State, Transcript
from torchdoctor.xid_codes import codes

_NOTHING = Transcript((), ())
# "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04 …": every GPU is set up anew
_LOADED = "NVRM: loading NVIDIA"


@dataclass(frozen=True, slots=True)
class Event:
    """One line. ``at_s`` counts from boot, -1 where the line has no time; ``xid`` or ``sxid`` is -1."""

    at_s: float
    text: str
    pci: str = ""
    xid: int = -1
    sxid: int = -1
    kind: str = ""
    pid: int = -1
    process: str = ""
    unit: str = ""
    severity: str = ""
    link: int = -1
    reason: int = -1
    status: int = -1
    recovery: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """The events in their order, and when each GPU was last reset (driver loads count for all: key "")."""

    events: tuple[Event, ...]
    resets: dict[str, float]

    def live(self, event: Event) -> bool:
        """Did it come after the last reset of its GPU? A line without a time counts."""
        last = max(self.resets.get("", -1.0), self.resets.get(event.pci, -1.0))
        return event.at_s < 0 or event.at_s > last

    def near_reset(self, event: Event, within_s: float) -> bool:
        """Is it at a reset or a load of the driver, a little before or after?"""
        return event.at_s >= 0 and any(abs(event.at_s - at) <= within_s for at in self.resets.values())


def read(facts: Facts) -> Log:
    """The log as it was read; empty where it could not be."""
    lines = tuple(
        (float(at) if isinstance(at, (int, float)) else -1.0, str(text))
        for at, text in (row[:2] for row in facts.rows("kernel.lines", 2))
    )
    return parse(lines)


@cache
def parse(lines: tuple[tuple[float, str], ...]) -> Log:
    """Events of the lines; a sentence over several lines is one event."""
    events: list[Event] = []
    resets: dict[str, float] = {}
    for at_s, text in lines:
        if _LOADED in text:
            resets[""] = max(at_s, resets.get("", -1.0))
            continue
        event = _event(at_s, text)
        if event is None:
            continue
        if event.xid == 154 and event.recovery == "none":
            resets[event.pci] = max(at_s, resets.get(event.pci, -1.0))
        if event.xid == 79 and not event.pci and any(one.xid == 79 for one in events):
            continue  # the second half of the driver's two-part message has no address
        events.append(event)
    return Log(tuple(events), resets)


def _event(at_s: float, text: str) -> Event | None:
    said = Said(0, EventKind.KERNEL_LOG, text, "kernel log", 1, 1)
    facts = of_event("xid", said, _NOTHING)
    found = {fact.name.removeprefix("xid."): fact.value for fact in facts if fact.state is State.KNOWN}
    if "code" not in found and "sxid" not in found:
        return None

    def number(name: str) -> int:
        value = found.get(name)
        return value if isinstance(value, int) else -1

    def words(name: str) -> str:
        return str(found.get(name, ""))

    code = codes().get(number("code"))
    unit, reason, status = nvlink5.read(text) if 144 <= number("code") <= 150 else ("", -1, -1)
    return Event(
        at_s,
        text.strip(),
        place(words("pci")),
        number("code"),
        number("sxid"),
        code.kind if code is not None else "",
        number("pid"),
        words("process"),
        unit,
        words("severity"),
        number("link"),
        reason,
        status,
        words("recovery"),
    )
