"""Pickles of plain data: dictionaries, lists, tuples, texts, bytes, numbers, nothing that runs.

A pickle is a program. This reads the few instructions that build plain data and refuses all others by
name, so that no import, no call and no object of any class can come of it. Numbers, texts, keys, the memo,
the count of instructions and the memory of what is built are bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from sys import getsizeof
from typing import TypeAlias

Plain: TypeAlias = (
    "dict[str | int, Plain] | list[Plain] | tuple[Plain, ...] | str | bytes | int | float | bool | None"
)

MAX_STEPS = 3_000_000
MAX_MEMORY = 96 << 20  # of what is built, by an estimate of each object
MAX_MEMO = 4_000_000
MAX_INT_BYTES = 16
MAX_TEXT = 1 << 20
MAX_KEY = 1 << 20  # whole numbers beyond could be chosen so that they collide in a dictionary
# an empty container, a value in a list, a key with its value, a remembered value, one more instruction
_CONTAINER, _PLACE, _PAIR, _MEMO, _STEP = 64, 10, 100, 100, 16

# pickle.py, what the refused instructions are called there
_REFUSED = {
    0x63: "GLOBAL", 0x93: "STACK_GLOBAL", 0x52: "REDUCE", 0x69: "INST", 0x6F: "OBJ", 0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX", 0x62: "BUILD", 0x50: "PERSID", 0x51: "BINPERSID", 0x82: "EXT1", 0x83: "EXT2",
    0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER", 0x8F: "EMPTY_SET", 0x90: "ADDITEMS",
    0x91: "FROZENSET", 0x96: "BYTEARRAY8",
}  # fmt: skip


class PickleRefused(ValueError):
    """A pickle that is damaged, too large, or holds more than plain data; the text says which and where."""


class _Mark:
    __slots__ = ()


_MARK = _Mark()


def load(data: bytes) -> Plain:
    """The value that a pickle describes. Raises PickleRefused; runs nothing that the pickle names."""
    try:
        return _Machine(data).run()
    except (IndexError, struct.error):
        raise PickleRefused("the pickle is cut off or damaged") from None
    except UnicodeDecodeError:
        raise PickleRefused("the pickle holds a text that is no UTF-8") from None


class _Machine:
    """The stack machine of a pickle, with the instructions for plain data only."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.room = MAX_MEMORY
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.steps: dict[int, Callable[[], None]] = {
            0x28: lambda: self.stack.append(_MARK),
            0x30: self._pop,
            0x31: lambda: void(self._marked()),
            0x32: lambda: self.stack.append(self._top()),
            0x4E: lambda: self.stack.append(None),
            0x88: lambda: self.stack.append(True),
            0x89: lambda: self.stack.append(False),
            0x4B: lambda: self.stack.append(self._unsigned(1)),
            0x4D: lambda: self._hold(self._unsigned(2)),
            0x4A: lambda: self._hold(int.from_bytes(self._take(4), "little", signed=True)),
            0x8A: lambda: self._long(self._unsigned(1)),
            0x8B: lambda: self._long(self._unsigned(4)),
            0x49: self._decimal,
            0x4C: self._decimal,
            0x47: lambda: self._hold(struct.unpack(">d", self._take(8))[0]),
            0x46: self._float,
            0x58: lambda: self._text(4),
            0x8C: lambda: self._text(1),
            0x8D: lambda: self._text(8),
            0x55: lambda: self._text(1),
            0x54: lambda: self._text(4),
            0x43: lambda: self._bytes(1),
            0x42: lambda: self._bytes(4),
            0x8E: lambda: self._bytes(8),
            0x5D: lambda: self._hold([], _CONTAINER),
            0x29: lambda: self.stack.append(()),
            0x7D: lambda: self._hold({}, _CONTAINER),
            0x6C: lambda: self._hold(self._marked()),
            0x74: lambda: self._hold(tuple(self._marked())),
            0x64: lambda: self._hold(self._pairs({}, self._marked()), _CONTAINER),
            0x85: lambda: self._tuple(1),
            0x86: lambda: self._tuple(2),
            0x87: lambda: self._tuple(3),
            0x61: lambda: self._append([self.stack.pop()]),
            0x65: lambda: self._append(self._marked()),
            0x73: self._set_item,
            0x75: lambda: self._set_items(self._marked()),
            0x71: lambda: self._put(self._unsigned(1)),
            0x72: lambda: self._put(self._unsigned(4)),
            0x70: lambda: self._put(self._line_number()),
            0x94: lambda: self._put(len(self.memo)),
            0x68: lambda: self._get(self._unsigned(1)),
            0x6A: lambda: self._get(self._unsigned(4)),
            0x67: lambda: self._get(self._line_number()),
            0x80: lambda: void(self._take(1)),
            0x95: lambda: void(self._take(8)),
        }

    def run(self) -> Plain:
        for _ in range(MAX_STEPS):
            code = self.data[self.at]
            self.at += 1
            if code == 0x2E:
                return self.stack[-1]  # type: ignore[return-value]
            step = self.steps.get(code)
            if step is None:
                name = _REFUSED.get(code)
                if name is None:
                    raise PickleRefused(f"byte {self.at - 1} is no instruction of a pickle")
                raise PickleRefused(
                    f"it holds more than plain data: {name} at byte {self.at - 1}{self._what()}"
                )
            self.room -= _STEP
            step()
            if self.room < 0:
                raise PickleRefused(f"what it holds would take more than {MAX_MEMORY >> 20} MiB")
        raise PickleRefused(f"it has more than {MAX_STEPS:,} instructions")

    def _what(self) -> str:
        """The name that a refused import would have brought in, for the message."""
        names = self.data[self.at : self.at + 120].split(b"\n")[:2]
        if self.data[self.at - 1] != 0x63 or len(names) < 2:
            return ""
        shown = ".".join(name.decode("ascii", "replace") for name in names)
        return f" ({shown})" if shown.isprintable() else ""

    def _take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise PickleRefused(f"the pickle is cut off: {size} bytes wanted at byte {self.at}")
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def _unsigned(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + 400)
        if end < 0:
            raise PickleRefused(f"a number without end at byte {self.at}")
        line = self.data[self.at : end]
        self.at = end + 1
        return line

    def _line_number(self) -> int:
        line = self._line()
        if not line.isdigit() or len(line) > 10:
            raise PickleRefused(f"no number before byte {self.at}")
        return int(line)

    def _long(self, size: int) -> None:
        if size > MAX_INT_BYTES:
            raise PickleRefused(f"a number of {size} bytes at byte {self.at}")
        self._hold(int.from_bytes(self._take(size), "little", signed=True))

    def _decimal(self) -> None:
        line = self._line().rstrip(b"L")
        if line in (b"00", b"01"):
            self.stack.append(line == b"01")
            return
        if not line.lstrip(b"-").isdigit() or len(line) > 40:
            raise PickleRefused(f"no number before byte {self.at}")
        self._hold(int(line))

    def _float(self) -> None:
        try:
            self._hold(float(self._line()))
        except ValueError:
            raise PickleRefused(f"no number before byte {self.at}") from None

    def _text(self, width: int) -> None:
        size = self._unsigned(width)
        if size > MAX_TEXT:
            raise PickleRefused(f"a text of {size:,} bytes at byte {self.at}")
        self._hold(self._take(size).decode("utf-8", "surrogatepass"))

    def _bytes(self, width: int) -> None:
        size = self._unsigned(width)
        if size > MAX_TEXT:
            raise PickleRefused(f"{size:,} bytes in one piece at byte {self.at}")
        self._hold(self._take(size))

    def _hold(self, value: object, size: int = 0) -> None:
        """Put a new value on the stack, and count the memory that it takes."""
        self.room -= size or getsizeof(value)
        self.stack.append(value)

    def _top(self) -> object:
        top = self.stack[-1]
        if top is _MARK:
            raise PickleRefused(f"a mark where a value is wanted, at byte {self.at}")
        return top

    def _pop(self) -> None:
        self.stack.pop()

    def _marked(self) -> list[object]:
        for index in range(len(self.stack) - 1, -1, -1):
            if self.stack[index] is _MARK:
                found = self.stack[index + 1 :]
                del self.stack[index:]
                return found
        raise PickleRefused(f"no mark before byte {self.at}")

    def _tuple(self, size: int) -> None:
        if len(self.stack) < size:
            raise PickleRefused(f"nothing to take at byte {self.at}")
        self.room -= _CONTAINER
        self.stack[-size:] = [tuple(self.stack[-size:])]

    def _append(self, values: list[object]) -> None:
        target = self._top()
        if not isinstance(target, list):
            raise PickleRefused(f"an item for something that is no list, at byte {self.at}")
        self.room -= _PLACE * len(values)
        target.extend(values)

    def _set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._set_items([key, value])

    def _set_items(self, values: list[object]) -> None:
        target = self._top()
        if not isinstance(target, dict):
            raise PickleRefused(f"a key for something that is no dictionary, at byte {self.at}")
        self._pairs(target, values)

    def _pairs(self, target: dict[object, object], values: list[object]) -> dict[object, object]:
        self.room -= _PAIR * (len(values) // 2)
        for key, value in zip(values[::2], values[1::2], strict=False):
            # hashing a deep tuple can overflow the stack
            if not isinstance(key, str) and not (isinstance(key, int) and abs(key) <= MAX_KEY):
                raise PickleRefused(f"a key that is neither text nor a small number, at byte {self.at}")
            target[key] = value
        return target

    def _put(self, index: int) -> None:
        if len(self.memo) >= MAX_MEMO:
            raise PickleRefused(f"it remembers more than {MAX_MEMO:,} values")
        self.room -= _MEMO
        self.memo[index] = self._top()

    def _get(self, index: int) -> None:
        if index not in self.memo:
            raise PickleRefused(f"value {index} is used before it is made, at byte {self.at}")
        self.stack.append(self.memo[index])


def void(_value: object) -> None:
    """Takes a value that nobody wants."""
