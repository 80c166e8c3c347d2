"""Pickles of plain data: dictionaries, lists, tuples, texts, bytes, numbers, nothing that runs.

A pickle is a program. Of the instructions of Python's own machine for it only those are kept that build plain
data; all others are refused by name, so that no import, no call and no object of any class can come of it.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

Plain: TypeAlias = (
    "dict[str | int, Plain] | list[Plain] | tuple[Plain, ...] | str | bytes | int | float | bool | None"
)

MAX_STEPS = 6_000_000
MAX_TEXT = 1 << 20
MAX_LINE = 400  # of digits
MAX_KEY = 1 << 20  # whole numbers beyond could be chosen so that they collide in a dictionary

# instructions that make nothing, and those that make or remember an object
_CHEAP = (
    "MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE BININT1 EMPTY_TUPLE APPEND APPENDS GET BINGET LONG_BINGET "
    "PROTO STOP"
)
_COSTLY = (
    "BININT BININT2 LONG1 INT LONG BINFLOAT FLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINSTRING "
    "SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_LIST EMPTY_DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 "
    "DICT SETITEM SETITEMS PUT BINPUT LONG_BINPUT MEMOIZE"
)
_COST = 5  # of a costly one, against 1
_PYTHON: Any = pickle._Unpickler
_CODES = {
    name: value[0] for name, value in vars(pickle).items() if isinstance(value, bytes) and len(value) == 1
}
_DAMAGE = (IndexError, KeyError, TypeError, ValueError, AttributeError, struct.error, pickle.UnpicklingError)


class PickleRefused(ValueError):
    """A pickle that is damaged, too large, or holds more than plain data; the text says which and where."""


def load(data: bytes) -> Plain:
    """The value that a pickle describes. Raises PickleRefused; runs nothing that the pickle names."""
    source = _Source(data)
    try:
        return _Machine(source).load()  # type: ignore[no-any-return]
    except PickleRefused:
        raise
    except _DAMAGE:
        raise PickleRefused(f"the pickle is damaged before byte {source.at}") from None


class _Source:
    """The bytes of a pickle, given out in pieces of a bounded size, for so many steps at most."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.left = MAX_STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise PickleRefused(f"it has more instructions than are followed, to byte {self.at}")

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MAX_TEXT:
            raise PickleRefused(f"{size:,} bytes in one piece at byte {self.at}")
        if size > len(self.data) - self.at:
            raise PickleRefused(f"the pickle is cut off: {size} bytes wanted at byte {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def readline(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + MAX_LINE)
        if end < 0:
            raise PickleRefused(f"a number without end at byte {self.at}")
        return self.read(end + 1 - self.at)


class _Steps(dict[int, Callable[["_Machine"], None]]):
    """What the machine does at an instruction; those that are not plain are refused."""

    def __missing__(self, code: int) -> Callable[[_Machine], None]:
        def refuse(machine: _Machine) -> None:
            source = machine.source
            name = next((name for name, known in _CODES.items() if known == code), None)
            if name is None:
                raise PickleRefused(f"byte {source.at - 1} is no instruction of a pickle")
            lines = source.data[source.at : source.at + 120].split(b"\n")[:2] if name == "GLOBAL" else []
            shown = b".".join(lines).decode("ascii", "replace")  # what it would import
            shown = f" ({shown})" if shown.isprintable() and shown else ""
            raise PickleRefused(f"it holds more than plain data: {name} at byte {source.at - 1}{shown}")

        return refuse


def _priced(name: str, cost: int) -> Callable[[_Machine], None]:
    """Python's own step, counted, and refused for keys that may be hard to hash."""
    step = _PYTHON.dispatch[_CODES[name]]

    def taken(machine: _Machine) -> None:
        machine.source.spend(cost)
        if name in ("SETITEM", "SETITEMS", "DICT"):
            keys = machine.stack[-2:-1] if name == "SETITEM" else machine.stack[::2]
            machine.source.spend(cost * len(keys))
            for key in keys:  # a deep tuple can overflow the stack
                if not isinstance(key, str) and not (isinstance(key, int) and abs(key) <= MAX_KEY):
                    where = f"at byte {machine.source.at}"
                    raise PickleRefused(f"a key that is neither text nor a small number, {where}")
        step(machine)

    return taken


class _Machine(_PYTHON):  # type: ignore[misc]
    """Python's own machine, written in Python, with the instructions for plain data only."""

    def __init__(self, source: _Source) -> None:
        super().__init__(source, encoding="utf-8", errors="surrogatepass")
        self.source = source

    def _frame(self) -> None:
        self.source.read(8)

    dispatch = _Steps({_CODES[name]: _priced(name, 1) for name in _CHEAP.split()})
    dispatch.update({_CODES[name]: _priced(name, _COST) for name in _COSTLY.split()})
    dispatch[_CODES["FRAME"]] = _frame
