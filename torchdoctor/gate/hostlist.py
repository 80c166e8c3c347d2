"""Lists of nodes as Slurm writes them."""

from __future__ import annotations

import re

from torchdoctor.model import TorchdoctorError

_MOST_NODES = 100_000


class HostListError(TorchdoctorError):
    """Text that is no list of nodes."""


def hosts_of(text: str) -> tuple[str, ...]:
    """The nodes of a list as Slurm writes it: ``gpu[003-005,9],login1``. Raises HostListError."""
    if not re.fullmatch(r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*", text):
        raise HostListError(f"{text!r} is no list of nodes; right would be gpu[003-005,9],login1")
    parts = re.split(r",(?![^\[]*\])", text.strip())
    return tuple(dict.fromkeys(name for part in parts if part for name in _expanded(part)))


def _expanded(part: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, tail = rest.partition("]")
    names: list[str] = []
    for piece in inside.split(","):
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()) or not 0 <= int(last) - int(first) < _MOST_NODES:
            raise HostListError(f"{piece!r} in {part!r} is no range of numbers, as 003-017")
        width = len(first)
        names += [f"{head}{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    return [name + rest for name in names for rest in _expanded(tail)] if tail else names
