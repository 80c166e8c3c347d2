"""Lists of nodes as Slurm writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.model import TorchdoctorError
from torchdoctor.number import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_NODES = 100_000
_MOST_TEXT = 1 << 20


class HostListError(TorchdoctorError):
    """Text that is no list of nodes."""


def hosts_of(text: str) -> tuple[str, ...]:
    """The nodes of a list as Slurm writes it: ``gpu[003-005,9],login1``. Raises HostListError."""
    if len(text) > _MOST_TEXT or not re.fullmatch(r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*", text):
        raise HostListError(f"{_shown(text)} is not a list of nodes, such as gpu[003-005,9],login1")
    names: dict[str, None] = {}
    for part in _parts(text.strip()):
        names |= dict.fromkeys(_expanded(part, _MOST_NODES - len(names)))
    return tuple(names)


def fold(names: Iterable[str]) -> str:
    """The nodes as Slurm lists them, with the last number of their names in brackets: ``gpu[003-005,9]``."""
    groups: dict[tuple[str, int, str], set[int]] = {}
    for name in names:
        parts = re.fullmatch(r"(.*?)(\d{0,18})(\D*)", name, re.DOTALL)
        assert parts is not None
        head, digits, tail = parts.groups()
        groups.setdefault((head, len(digits), tail), set()).add(int(digits or 0))
    found = []
    for (head, width, tail), numbers in sorted(groups.items()):
        listed = ",".join(_runs(sorted(numbers), width)) if width else ""
        found.append(f"{head}[{listed}]{tail}" if len(numbers) > 1 else f"{head}{listed}{tail}")
    return ",".join(found)


def _runs(numbers: list[int], width: int) -> Iterator[str]:
    first = last = numbers[0]
    for number in (*numbers[1:], -1):
        if number == last + 1:
            last = number
            continue
        yield f"{first:0{width}d}" + (f"-{last:0{width}d}" if last > first else "")
        first = last = number


def _parts(text: str) -> Iterator[str]:
    """What commas outside of brackets separate."""
    part: list[str] = []
    for piece in re.split(r"(\[[^\[\]]*\]|,)", text):
        if piece == ",":
            if part:
                yield "".join(part)
            part = []
        elif piece:
            part.append(piece)
    if part:
        yield "".join(part)


def _expanded(part: str, most: int) -> list[str]:
    """The nodes of one part; several brackets in it stand for every combination."""
    names = [""]
    for piece in re.split(r"(\[[^\[\]]*\])", part):
        numbers = _numbers(piece[1:-1], part) if piece.startswith("[") else [piece]
        if len(names) * len(numbers) > most:
            raise HostListError(f"{_shown(part)} stands for more than {_MOST_NODES:,} nodes")
        names = [name + number for name in names for number in numbers]
    return names


def _numbers(inside: str, part: str) -> list[str]:
    found: list[str] = []
    for piece in inside.split(","):
        low, dash, high = piece.partition("-")
        first, last = count(low, 9), count(high if dash else low, 9)
        if first is None or last is None or last < first or last - first + len(found) >= _MOST_NODES:
            raise HostListError(f"{_shown(piece)} in {_shown(part)} is not a range such as 003-017")
        width = min(len(low), 18)
        found += [f"{number:0{width}d}" for number in range(first, last + 1)]
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")
