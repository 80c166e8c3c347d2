"""The types of results that a plain diagnosis does not need: of checks, and of incidents of several ranks.

They belong to ``torchdoctor.model``, which hands them out; apart from it they cost only those who use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchdoctor.model import EventKind, Evidence, Record


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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
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


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NotChecked(Record):
    """A check that was not made, and why."""

    id: str
    reason: str
