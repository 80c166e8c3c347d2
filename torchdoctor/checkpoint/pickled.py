"""What a pickle says, without running any of it: every instruction is read, no import and no call is made.

A pickle is a program for a small stack machine. Here that machine builds descriptions: an import becomes a
``Global``, a call a ``Call`` with what it would have been given. ``fickling`` reads pickles so; the models
are its budgets and its rule that a malformed instruction is a finding and no crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from torchdoctor.model import Record
from torchdoctor.records import record

MAX_STEPS: Final = 3_000_000
MAX_KEPT_BYTES: Final = 48 << 20
KEEP_TEXT: Final = 1 << 16  # a longer text or array of bytes is only measured
MAX_INT_BYTES: Final = 512


class Global:
    """A name that the pickle imports."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


class Call:
    """What a call would have made: the function or class, its arguments, and what was put into the result."""

    __slots__ = ("args", "function", "items", "state", "table")

    def __init__(self, function: object, args: object) -> None:
        self.function = function
        self.args = args
        self.state: object = None
        self.items: list[object] | None = None
        self.table: Table | None = None


class Table:
    """A dictionary: keys and values in turn, as they were put in; no key is hashed, it may be anything."""

    __slots__ = ("flat",)

    def __init__(self) -> None:
        self.flat: list[object] = []

    def pairs(self) -> list[tuple[object, object]]:
        return list(zip(self.flat[::2], self.flat[1::2], strict=False))

    def get(self, name: str) -> object:
        """The last value put under a text; None when there is none."""
        for key, value in reversed(self.pairs()):
            if type(key) is str and key == name:
                return value
        return None


class Bag:
    """A set or frozen set."""

    __slots__ = ("items",)

    def __init__(self, items: list[object]) -> None:
        self.items = items


class Persistent:
    """A reference to something outside of the pickle."""

    __slots__ = ("saved_id",)

    def __init__(self, saved_id: object) -> None:
        self.saved_id = saved_id


class Blob:
    """A long text or array of bytes that was passed over: where it begins, and how long it is."""

    __slots__ = ("offset", "size")

    def __init__(self, offset: int, size: int) -> None:
        self.offset = offset
        self.size = size


class _Mark:
    __slots__ = ()


MARK: Final = _Mark()


@record(frozen=True, slots=True)
class Import(Record):
    """An import with the byte at which its instruction stands; ``called`` when something is made of it."""

    module: str
    name: str
    at: int
    called: bool

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


@record(frozen=True, slots=True)
class Pickle(Record):
    """One pickle. ``end`` is the byte behind it; ``fault`` says what is wrong with it, "" when nothing is.

    ``value`` is whole without a fault, else what had been built by then. ``spent`` says that a budget ran
    out: the pickle may be well, and was not read to its end. ``codes`` are the instructions it uses.
    """

    value: object
    end: int
    protocol: int
    imports: tuple[Import, ...]
    codes: frozenset[int]
    byte_strings: int = 0  # texts of Python 2 that are no ASCII
    fault: str = ""
    cut_off: bool = False
    spent: bool = False


# What is made at once of a call, or of a reference: (function, arguments) or (saved id) -> value, or None
Rebuild = Callable[[object, object], object]
Resolve = Callable[[object], object]
