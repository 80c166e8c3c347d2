"""A report that may leave the machine: who and where are replaced by stand-ins, and it says so."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

from torchdoctor.model import Outcome, Record, Report, Transcript
from torchdoctor.records import replace
from torchdoctor.share.redaction import Redactor

_EVENTS_READ = 5_000
_NAMED = 12  # stand-ins that the note lists
# what the catalog says, and names that are our own
_OURS = frozenset(
    {"schema", "rule", "family", "name", "references", "reason", "id", "decided_by", "risk", "kind", "role"}
)


def published(report: Report, transcript: Transcript | None = None, here: bool = False) -> Report:
    """The report without names, addresses and secrets; its last note lists what was replaced.

    ``transcript`` tells of more places where a name shows itself as one. With ``here`` the names of this
    machine and of the person at it are taken for known.
    """
    events = transcript.events[:_EVENTS_READ] if transcript is not None else ()
    hosts = {event.host for event in events if event.host}
    users: set[str] = set()
    if here:
        users, own = names_here()
        hosts |= own
    redactor = Redactor([*_texts(report), *(event.text for event in events)], hosts, users)
    result: Report = _walk(report, redactor)
    replaced = redactor.replaced()
    if not replaced:
        return result
    given = redactor.stand_ins()
    shown = given if len(given) <= _NAMED else (*given[: _NAMED - 2], f"and {len(given) - _NAMED + 2} more")
    names = ", ".join(shown)
    note = f"Replaced before publishing: {', '.join(replaced)}" + (
        f"; placeholders: {names}" if names else ""
    )
    return replace(result, notes=(*result.notes, note))


def published_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines about this machine without names, addresses and secrets; a last one lists what was replaced.

    A package with its version is left as it is: some versions look like addresses.
    """
    told = tuple(lines)
    kept = {at: line for at, line in enumerate(told) if line.startswith("[pip3]")}
    notes = tuple("" if at in kept else line for at, line in enumerate(told))
    found = published(Report(Outcome.NO_FAILURE, notes=notes), here=True).notes
    return tuple(kept.get(at, line) for at, line in enumerate(found))


def names_here() -> tuple[set[str], set[str]]:
    """Names of the person at this machine, and of the machine."""
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")} - {""}
    try:
        name = os.uname().nodename
    except AttributeError:  # Windows
        name = os.environ.get("COMPUTERNAME", "")
    return users, {part for part in (name, name.partition(".")[0]) if part}


def _texts(value: object) -> Iterator[str]:
    """Every text of the report that may come from a log or a machine."""
    if isinstance(value, str):
        if not isinstance(value, Enum):
            yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Record):
        for name in _own(value):
            yield from _texts(getattr(value, name))


def _walk(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) or not value else redactor(value)
    if isinstance(value, tuple):
        return tuple(_walk(item, redactor) for item in value)
    if isinstance(value, Record):
        changed = {name: _walk(getattr(value, name), redactor) for name in _own(value)}
        return replace(value, **changed)  # type: ignore[type-var]
    return value


def _own(value: Record) -> Iterable[str]:
    return [item.name for item in fields(value) if item.name not in _OURS]  # type: ignore[arg-type]
