"""A message that a program can print, with holes for its values, and what stands in them here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inventory_python import Place

_PERCENT = re.compile(r"%(?:\((\w+)\))?[-+ #0]*[\d.*]*(?:ll|[lhz])?([sdrifgxeucpX%])")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]{0,60})\}")
# what the expression in a hole looks like -> a value of that kind
_VALUES = (
    (r"(?i)\bdtype\b|scalar_?type", "torch.float32"),
    (r"(?i)\bdevice(?:_type)?\b", "cuda:0"),
    (r"(?i)shape|\.size\(\)|sizes\b", "torch.Size([2, 3])"),
    (r"(?i)path|file|dir(?:ectory)?\b|folder", "/data/model.bin"),
    (r"^type\(|__class__$", "<class 'int'>"),
    (r"(?i)__name__|__qualname__|name\b|^key$|\bcls\b", "weight"),
    (r"(?i)version", "2.1.0"),
    (r"(?i)^len\(|\bn?dim(?:s|\(\))?\b|num|size|count|rank|index|\bidx|length|\bn_|\[\d\]$", "3"),
    (r"(?i)^(?:e|ex|exc|err|error|exception)$", "cause"),
)
_WORD, _NUMBER = "value", "3"
NUMBERS = (_NUMBER, _WORD)


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a value; ``of`` is the expression or the format that gives it."""

    of: str

    def value(self, otherwise: str) -> str:
        """A value as this hole would hold, ``otherwise`` where its expression tells nothing."""
        if self.of[:1] == "%":
            return _NUMBER if self.of[-1] in "difguxXelzh" else otherwise
        return next((value for form, value in _VALUES if re.search(form, self.of)), otherwise)


Parts = tuple["str | Hole", ...]


@dataclass(frozen=True, slots=True)
class Message:
    """What a program can print. ``kind`` is the class of an exception, "" for a line of its own.

    ``places`` are the functions of a traceback, the raising one last; none for a library. ``voice`` is how
    a library prints it. ``piece`` says that it is the beginning of a longer message.
    """

    package: str
    file: str
    line: int
    kind: str
    parts: Parts
    code: str = ""
    places: tuple[Place, ...] = ()
    caught: bool = False
    abstract: bool = False
    voice: str = ""
    piece: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes it one message: its kind and its text, whatever the values."""
        return self.kind.rpartition(".")[2], " ".join(self.template.split())

    @property
    def template(self) -> str:
        return "".join(one if isinstance(one, str) else "{}" for one in self.parts)

    @property
    def literal(self) -> bool:
        return all(isinstance(one, str) for one in self.parts)

    def filled(self, otherwise: str) -> str:
        """The message with values in its holes."""
        return "".join(one if isinstance(one, str) else one.value(otherwise) for one in self.parts)


def of_percent(parts: Parts, values: Sequence[str] = ()) -> Parts:
    """The parts of a ``%`` format and the expressions behind it; formats of C have none."""
    given = iter(values)

    def piece(match: re.Match[str]) -> str | Hole:
        if match[2] == "%":
            return "%"
        if match[2] in "sr":
            return Hole(match[1] or next(given, match[0]))
        next(given, None)
        return Hole(match[0])

    return _taken_apart(parts, _PERCENT, piece)


def of_format(parts: Parts, values: Sequence[str], named: Mapping[str, str]) -> Parts:
    """The parts of a ``str.format`` text and the expressions that it is called with."""
    given = iter(values)

    def piece(match: re.Match[str]) -> str | Hole:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        name = re.split(r"[.!:\[]", match[1] or "", maxsplit=1)[0]
        if name.isdecimal():
            return Hole(values[int(name)] if int(name) < len(values) else "")
        return Hole(named.get(name, name) if name else next(given, ""))

    return _taken_apart(parts, _BRACES, piece)


def _taken_apart(parts: Parts, form: re.Pattern[str], piece: Callable[[re.Match[str]], str | Hole]) -> Parts:
    """The parts, each place of the form in their texts replaced by its piece; no empty texts."""
    found: list[str | Hole] = []
    for part in parts:
        if not isinstance(part, str):
            found.append(part)
            continue
        at = 0
        for match in form.finditer(part):
            found += (part[at : match.start()], piece(match))
            at = match.end()
        found.append(part[at:])
    return tuple(one for one in found if one != "")
