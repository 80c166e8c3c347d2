"""What each Xid code of the NVIDIA driver says of the GPU, from the table beside this file."""

from __future__ import annotations

import os
from functools import cache

from torchdoctor.model import Record
from torchdoctor.records import record

_TABLE = os.path.join(os.path.dirname(__file__), "xid_codes.tsv")

# in words, for a person who reads a kernel log
CLASSES = {
    "APP": "caused by a job, not by itself a sign of a broken GPU",
    "WATCH": "worth watching",
    "RESET": "the GPU needs a reset",
    "REBOOT": "the node needs a reboot",
    "RMA": "the card or its power needs a look",
    "LINK": "a link is in trouble",
    "DECODE": "the rest of the line tells",
    "RECOVERY": "the driver states which recovery it wants",
    "IGN": "no sign of trouble",
    "LEGACY": "of old GPUs, no sign of trouble on Ampere and later",
}


@record(frozen=True, slots=True)
class XidCode(Record):
    """One code: its name in the driver's headers ("" for none), its class and what to do about it."""

    code: int
    mnemonic: str
    kind: str
    meaning: str
    action: str


@cache
def codes() -> dict[int, XidCode]:
    """All codes known, by number."""
    found: dict[int, XidCode] = {}
    with open(_TABLE, encoding="utf-8") as table:
        for line in table:
            if not line.startswith("#"):
                code, mnemonic, kind, meaning, action = line.rstrip("\n").split("\t")
                found[int(code)] = XidCode(int(code), mnemonic.strip("-"), kind, meaning, action)
    return found
