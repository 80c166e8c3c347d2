"""The stack of the machine behind ``torchdoctor.checkpoint.pickle_machine``, and what happens on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchdoctor.checkpoint.pickle_window import Damaged, Spent, Window
from torchdoctor.checkpoint.pickled import (
    MARK,
    MAX_INT_BYTES,
    Bag,
    Blob,
    Call,
    Global,
    Import,
    Persistent,
    Rebuild,
    Resolve,
    Table,
)
from torchdoctor.checkpoint.stretch import Stretch
from torchdoctor.model import counted

_MAX_IMPORTS = 20_000


class Machine(Window):
    """Stack, memo and budget, with one small method for each thing that an instruction does."""

    def __init__(self, source: Stretch, start: int, rebuild: Rebuild | None, resolve: Resolve | None) -> None:
        super().__init__(source, start)
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.protocol = 0
        self.byte_strings = 0
        self.codes: set[int] = set()
        self._globals: dict[tuple[str, str], Global] = {}
        self._imports: dict[int, tuple[Global, int]] = {}
        self._called: set[int] = set()
        self._rebuild = rebuild
        self._resolve = resolve
        self._done = False

    def run(self, steps: int, table: Sequence[Callable[[Machine], object] | None]) -> None:
        """Carry out up to so many instructions. Raises Damaged, Spent, and IndexError on an empty stack."""
        for _ in range(steps):
            if self.at >= len(self.window):
                self.refill(1)
            code = self.window[self.at]
            self.at += 1
            step = table[code]
            if step is None:
                if code == 0x2E:
                    self._done = True
                    self.stack[-1]
                    return
                raise Damaged(f"byte {self.position - 1:,} (0x{code:02x}) is no instruction of a pickle")
            self.codes.add(code)
            step(self)
        raise Spent(f"it has more than {counted(steps, 'instruction')}")

    def result(self) -> object:
        """The value, or of a damaged pickle the outermost thing that had been begun."""
        if self._done:
            return self.stack[-1] if self.stack else None
        return next((one for one in self.stack if one is not MARK), None)

    def imports(self) -> list[Import]:
        return [
            Import(found.module, found.name, at, key in self._called)
            for key, (found, at) in self._imports.items()
        ]

    # -- stack

    def push(self, value: object) -> None:
        self.stack.append(value)
        self.keep(32)

    def top(self) -> object:
        value = self.stack[-1]
        if value is MARK:
            raise Damaged(f"a mark where a value is wanted, before byte {self.position:,}")
        return value

    def pop(self) -> object:
        value = self.top()
        self.stack.pop()
        return value

    def marked(self) -> list[object]:
        stack = self.stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] is MARK:
                found = stack[index + 1 :]
                del stack[index:]
                return found
        raise Damaged(f"no mark before byte {self.position:,}")

    # -- imports and calls

    def imported(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise Damaged(f"an import without a name at byte {self.position:,}")
        found = self._globals.get((module, name))
        if found is None:
            if len(self._globals) >= _MAX_IMPORTS:
                raise Spent(f"it imports more than {_MAX_IMPORTS:,} names")
            found = self._globals[module, name] = Global(module, name)
            self._imports[id(found)] = (found, self.position)
            self.keep(len(module) + len(name) + 200)
        self.stack.append(found)

    def called(self, function: object, args: object) -> None:
        if isinstance(function, Global):
            self._called.add(id(function))
        made = self._rebuild(function, args) if self._rebuild is not None else None
        self.keep(100)
        self.stack.append(Call(function, args) if made is None else made)

    def referred(self, saved_id: object) -> None:
        found = self._resolve(saved_id) if self._resolve is not None else None
        self.keep(50)
        self.stack.append(Persistent(saved_id) if found is None else found)

    # -- containers

    def append(self, values: list[object]) -> None:
        target = self.top()
        self.keep(8 * len(values))
        if isinstance(target, list):
            target.extend(values)
        elif isinstance(target, Call):
            if target.items is None:
                target.items = []
            target.items.extend(values)
        else:
            raise Damaged(f"items for something that takes none, before byte {self.position:,}")

    def put_in(self, flat: list[object]) -> None:
        target = self.top()
        if len(flat) % 2:
            raise Damaged(f"a key without a value before byte {self.position:,}")
        self.keep(8 * len(flat))
        if isinstance(target, Table):
            target.flat.extend(flat)
        elif isinstance(target, Call):
            if target.table is None:
                target.table = Table()
            target.table.flat.extend(flat)
        else:
            raise Damaged(f"a key for something that has none, before byte {self.position:,}")

    def add(self, values: list[object]) -> None:
        target = self.top()
        self.keep(8 * len(values))
        if isinstance(target, Bag):
            target.items.extend(values)
        elif isinstance(target, Call):
            self.append(values)
        else:
            raise Damaged(f"members for something that is no set, before byte {self.position:,}")

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        if isinstance(target, Call):
            target.state = state
        # what else gets a state (a tensor with attributes, a class) is described well enough without it

    def remember(self, index: int) -> None:
        self.memo[index] = self.top()
        self.keep(60)

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise Damaged(f"value {index} is used before it is made, at byte {self.position:,}")
        self.stack.append(self.memo[index])

    # -- numbers and texts

    def text(self, width: int) -> None:
        found = self.span(self.number(width))
        if isinstance(found, bytes):
            try:
                self.stack.append(found.decode("utf-8", "surrogatepass"))
            except UnicodeDecodeError:
                raise Damaged(f"a text that is no UTF-8 before byte {self.position:,}") from None
        else:
            self.stack.append(found)

    def string(self, width: int) -> None:
        """A text of Python 2, which torch reads as UTF-8 unless it is told otherwise."""
        found = self.span(self.number(width))
        if isinstance(found, Blob):
            self.stack.append(found)
            return
        if not found.isascii():
            self.byte_strings += 1
        try:
            self.stack.append(found.decode())
        except UnicodeDecodeError:
            self.stack.append(found)

    def quoted(self) -> None:
        line = self.line().strip()
        if len(line) < 2 or line[:1] not in b"'\"" or line[:1] != line[-1:]:
            raise Damaged(f"a text without quotation marks before byte {self.position:,}")
        self.keep(len(line) + 40)
        self.stack.append(line[1:-1].decode("latin-1"))

    def long_line(self) -> None:
        line = self.line().rstrip(b"L")
        if line in (b"00", b"01"):
            self.stack.append(line == b"01")
            return
        if not line.lstrip(b"-").isdigit() or len(line) > 4000:
            raise Damaged(f"no number before byte {self.position:,}")
        self.push(int(line))

    def long(self, width: int) -> None:
        count = self.number(width)
        if count > MAX_INT_BYTES:
            raise Damaged(f"a number of {counted(count, 'byte')} at byte {self.position:,}")
        self.push(int.from_bytes(self.take(count), "little", signed=True))

    def float_line(self) -> None:
        try:
            self.push(float(self.line()))
        except ValueError:
            raise Damaged(f"no number before byte {self.position:,}") from None

    def index_line(self) -> int:
        line = self.line()
        if not line.isdigit() or len(line) > 12:
            raise Damaged(f"no number before byte {self.position:,}")
        return int(line)

    # -- single instructions that need more than a line

    def global_line(self) -> None:
        module, name = self.line(), self.line()
        try:
            self.imported(module.decode(), name.decode())
        except UnicodeDecodeError:
            raise Damaged(f"an import whose name is no text before byte {self.position:,}") from None

    def stack_global(self) -> None:
        name = self.pop()
        self.imported(self.pop(), name)

    def reduce(self) -> None:
        args = self.pop()
        self.called(self.pop(), args)

    def newobj_ex(self) -> None:
        named = self.pop()
        args = self.pop()
        self.called(self.pop(), (args, named))

    def inst(self) -> None:
        args = tuple(self.marked())
        self.global_line()
        self.called(self.stack.pop(), args)

    def obj(self) -> None:
        values = self.marked()
        if not values:
            raise Damaged(f"no class to make an object of before byte {self.position:,}")
        self.called(values[0], tuple(values[1:]))

    def pop_any(self) -> None:
        self.stack.pop()

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count or MARK in self.stack[-count:]:
            raise Damaged(f"nothing to take before byte {self.position:,}")
        self.stack[-count:] = [tuple(self.stack[-count:])]
        self.keep(40 + 8 * count)

    def marked_tuple(self) -> None:
        found = tuple(self.marked())
        self.keep(40 + 8 * len(found))
        self.stack.append(found)

    def marked_list(self) -> None:
        found = self.marked()
        self.keep(60 + 8 * len(found))
        self.stack.append(found)

    def marked_table(self) -> None:
        flat = self.marked()
        self.stack.append(Table())
        self.put_in(flat)

    def marked_set(self) -> None:
        found = self.marked()
        self.keep(60 + 8 * len(found))
        self.stack.append(Bag(found))

    def set_item(self) -> None:
        value = self.pop()
        self.put_in([self.pop(), value])

    def extension(self, width: int) -> None:
        """A name that stands in a registry of the process (copyreg), which no file can bring along."""
        self.imported("copyreg", f"extension {self.number(width)}")
