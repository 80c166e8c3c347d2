"""The types of results that a plain diagnosis does not need: of checks, and of incidents of several ranks.

They belong to ``torchdoctor.model``, which hands them out; apart from it they cost only those who use them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from torchdoctor.model import EventKind, Evidence, Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from datetime import datetime


class Verdict(str, Enum):
    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Blame(str, Enum):
    NODE = "node"
    ENVIRONMENT = "environment"
    USER = "user"
    FABRIC = "fabric"


class Part(str, Enum):
    """What a rank's failure is in an incident: the first, another of its own, or an answer to one."""

    FIRST = "first"
    CAUSE = "cause"
    ECHO = "echo"


@record(frozen=True, slots=True)
class Moment(Record):
    """The failure of one rank in the order of events. ``text`` is empty for a rank that fell silent."""

    rank: int
    host: str | None
    time: str | None
    role: Part
    text: str
    rule: str | None = None
    kind: EventKind | None = None
    file: str | None = None
    line: int | None = None
    also: tuple[str, ...] = ()  # further rules that stand on lines of this rank


@record(frozen=True, slots=True)
class CheckResult(Record):
    """What one check of a machine or a program found, against what it expected."""

    id: str
    verdict: Verdict
    title: str
    blame: Blame | None = None
    observed: str | None = None
    expected: str | None = None
    threshold_source: str | None = None
    evidence: tuple[Evidence, ...] = ()
    action: str | None = None
    reason: str | None = None


@record(frozen=True, slots=True)
class NotChecked(Record):
    """A check that was not made, and why."""

    id: str
    reason: str


def moment_of(time: str | None) -> datetime | None:
    """An ISO 8601 time, with its zone where it names one; None when it is missing or no date."""
    if not time:
        return None
    from datetime import datetime

    try:
        return datetime.fromisoformat(_for_python_310(time))
    except ValueError:
        return None


def _for_python_310(time: str) -> str:
    """Python before 3.11 reads fractions of three or six digits, zones with a colon, and no "Z"."""
    if time.endswith("Z"):
        time = time[:-1] + "+00:00"
    elif time[-5:-4] in ("+", "-") and time[-4:].isdecimal() and ":" in time[-12:-5]:
        time = f"{time[:-2]}:{time[-2:]}"
    head, dot, tail = time.partition(".")
    if not dot:
        return time
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
