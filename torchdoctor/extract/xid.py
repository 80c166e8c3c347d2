"""Facts out of the NVIDIA kernel driver's error lines: Xid of a GPU and SXid of an NVSwitch.

Fields are read by their position: the process name in the line is chosen by the user, so that a number
found anywhere in the line proves nothing. The PCI domain is kept, it is not always 0000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "xid.code": "int: the number of the Xid; 79 also for lines that only say that the GPU fell off the bus",
    "xid.sxid": "int: the number of the SXid (NVSwitch)",
    "xid.pci": "str: PCI address with domain, as printed, lower case (0000:3b:00)",
    "xid.pid": "int: process the driver names; absent when it prints <unknown>",
    "xid.process": "str: name of that process, chosen by whoever started it",
    "xid.severity": "str: fatal or nonfatal, where the line says so (NVLink 5 and SXid)",
    "xid.link": "int: number of the NVLink",
    "xid.caused_by": "int: code of the earlier Xid that the line names as its reason",
    "xid.first": "int: beside nvidia-smi's word that it cannot reach a card: the first Xid of the text; "
    "absent where there is none",
    "xid.recovery": "str: action that Xid 154 announces: none, reset, reboot, drain-p2p, drain-and-reset",
}

# what nvidia-smi says whatever befell the card
_UNREACHED = ("Unable to determine the device handle", "No devices were found")
_ADDRESS = r"(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?)"
# "NVRM: Xid (PCI:0000:3b:00): 79, …", older "NVRM: Xid (0000:03:00): 14, …", with or without ".0"
_XID = rf"NVRM: (?:GPU\S* )?Xid \((?:PCI:)?{_ADDRESS}\): (?P<code>\d{{1,3}})\b,? ?(?P<rest>[^\n]*)"
# "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 …"
_SXID = rf"SXid \((?:PCI:)?{_ADDRESS}\): (?P<code>\d{{5}})\b,? ?(?P<rest>[^\n]*)"
# "NVRM: GPU at 0000:03:00.0 has fallen off …" and "NVRM: GPU 0000:41:00.0: GPU has fallen off …"
_FALLEN = rf"(?:GPU at |GPU )(?:PCI:)?{_ADDRESS}"
_PROCESS = r"pid=(?:(?P<pid>\d+)|'?<unknown>'?)(?:, name=(?P<name>[^,]*))?, ?"
# "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 …)"
_NVLINK5 = (
    r"^[A-Z][A-Z0-9_]+\s+(?P<severity>Fatal|Nonfatal|Non-fatal)\b[^(]*?"
    r"(?:Link (?P<link>-?\d+))?\s*\("
)
_PREVIOUS = r"caused by previous Xid (?P<code>\d+)"

_RECOVERY = (
    ("drain and reset", "drain-and-reset"),
    ("drain p2p", "drain-p2p"),
    ("node reboot", "reboot"),
    ("gpu reset", "reset"),
    ("none", "none"),
)


def place(address: str) -> str:
    """A PCI address as domain:bus:device, the domain in at least four digits: all spellings of one agree."""
    found = re.match(r"([0-9a-fA-F]+):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})", address)
    return f"{int(found[1], 16):04x}:{found[2].lower()}:{found[3].lower()}" if found else ""


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one kernel-log line about a GPU or an NVSwitch; nothing for any other line."""
    text = event.text
    if "Xid (" in text and (found := pattern(_XID).search(text)) is not None:
        yield from _xid(found)
    elif "SXid (" in text and (found := pattern(_SXID).search(text)) is not None:
        yield from _sxid(found)
    elif any(words in text for words in _UNREACHED):
        first = next(filter(None, (pattern(_XID).search(one.text) for one in _logged(transcript))), None)
        yield "first", int(first["code"]) if first else None
    elif "fallen off the bus" in text and ("NVRM" in text or "NVIDIA GPU" in text or "nvidia" in text):
        yield "code", 79, "the line has no number"
        address = pattern(_FALLEN).search(text)
        if address is not None:
            yield "pci", address.group("pci").lower()
        yield "pid", None


def _logged(transcript: Transcript) -> Iterator[Event]:
    return (one for one in transcript.events if "Xid (" in one.text)


def _xid(found: re.Match[str]) -> Iterator[Found]:
    code = int(found.group("code"))
    yield "code", code
    yield "pci", found.group("pci").lower()
    rest = found.group("rest").strip()
    process = pattern(_PROCESS).match(rest)
    if process is not None:
        rest = rest[process.end() :]
    pid = process["pid"] if process is not None else None
    yield "pid", int(pid) if pid else None
    if process is not None and pid and process["name"]:
        yield "process", process["name"].strip("'")
    previous = pattern(_PREVIOUS).search(rest)
    if previous is not None:
        yield "caused_by", int(previous.group("code"))
    if 144 <= code <= 150:
        yield from _nvlink5(rest)
    elif code == 154:
        state = rest.lower().rpartition(" to ")[2]  # "changed from 0x1 (GPU Reset Required) to 0x0 (None)"
        for words, action in _RECOVERY:
            if words in state:
                yield "recovery", action
                break


def _nvlink5(rest: str) -> Iterator[Found]:
    found = pattern(_NVLINK5).match(rest)
    if found is None:
        yield "severity", None
        return
    yield "severity", "fatal" if found["severity"] == "Fatal" else "nonfatal"
    if found["link"] is not None:
        yield "link", int(found["link"])


def _sxid(found: re.Match[str]) -> Iterator[Found]:
    yield "sxid", int(found.group("code"))
    yield "pci", found.group("pci").lower()
    rest = found.group("rest").strip()
    lower = rest.lower()
    nonfatal = "nonfatal" if lower.startswith(("non-fatal", "nonfatal")) else None
    yield "severity", "fatal" if lower.startswith("fatal") else nonfatal
    link = re.search(r"\bLink (\d+)", rest)
    if link is not None:
        yield "link", int(link.group(1))
