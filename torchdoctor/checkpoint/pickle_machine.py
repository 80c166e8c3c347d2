"""Reads pickles: the table of instructions, each with the step that it takes on the stack."""

from __future__ import annotations

import struct
from collections.abc import Callable

from torchdoctor.checkpoint.pickle_stack import Machine
from torchdoctor.checkpoint.pickle_window import Damaged, Spent
from torchdoctor.checkpoint.pickled import (
    MARK,
    MAX_STEPS,
    Bag,
    Persistent,
    Pickle,
    Rebuild,
    Resolve,
    Table,
)
from torchdoctor.checkpoint.stretch import Stretch

_MAX_IMPORTS = 20_000


def read(
    source: Stretch,
    start: int = 0,
    rebuild: Rebuild | None = None,
    resolve: Resolve | None = None,
    steps: int = MAX_STEPS,
) -> Pickle:
    """Read the pickle that begins at ``start``. Never raises; runs nothing of it. Memory is bounded.

    ``rebuild`` and ``resolve`` may make something small of calls and of persistent ids as they are met.
    """
    machine = Machine(source, start, rebuild, resolve)
    fault, cut_off, spent = "", False, False
    try:
        machine.run(steps, _TABLE)
    except Damaged as error:
        fault, cut_off = str(error), error.cut_off
    except Spent as error:
        fault, spent = str(error), True
    except (IndexError, struct.error):
        fault = f"nothing on the stack for the instruction before byte {machine.position:,}"
    return Pickle(
        machine.result(), machine.position, machine.protocol, tuple(machine.imports()),
        frozenset(machine.codes), machine.byte_strings, fault, cut_off, spent,
    )  # fmt: skip


_Step = Callable[[Machine], object]


# the instructions by their byte (pickle.py and pickletools.py name them)
_STEPS: dict[int, _Step] = {
    0x28: lambda m: m.stack.append(MARK),
    0x30: Machine.pop_any,
    0x31: Machine.marked,
    0x32: lambda m: m.stack.append(m.top()),
    0x4E: lambda m: m.stack.append(None),
    0x88: lambda m: m.stack.append(True),
    0x89: lambda m: m.stack.append(False),
    0x4B: lambda m: m.stack.append(m.number(1)),
    0x4D: lambda m: m.push(m.number(2)),
    0x4A: lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
    0x8A: lambda m: m.long(1),
    0x8B: lambda m: m.long(4),
    0x49: Machine.long_line,
    0x4C: Machine.long_line,
    0x47: lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    0x46: Machine.float_line,
    0x58: lambda m: m.text(4),
    0x8C: lambda m: m.text(1),
    0x8D: lambda m: m.text(8),
    0x56: lambda m: m.push(m.line().decode("raw-unicode-escape", "replace")),
    0x55: lambda m: m.string(1),
    0x54: lambda m: m.string(4),
    0x53: Machine.quoted,
    0x43: lambda m: m.stack.append(m.span(m.number(1))),
    0x42: lambda m: m.stack.append(m.span(m.number(4))),
    0x8E: lambda m: m.stack.append(m.span(m.number(8))),
    0x96: lambda m: m.stack.append(m.span(m.number(8))),
    0x97: lambda m: m.push(Persistent("buffer")),
    0x98: lambda m: None,
    0x5D: lambda m: m.push([]),
    0x29: lambda m: m.stack.append(()),
    0x7D: lambda m: m.push(Table()),
    0x8F: lambda m: m.push(Bag([])),
    0x6C: Machine.marked_list,
    0x74: Machine.marked_tuple,
    0x64: Machine.marked_table,
    0x91: Machine.marked_set,
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    0x61: lambda m: m.append([m.pop()]),
    0x65: lambda m: m.append(m.marked()),
    0x73: Machine.set_item,
    0x75: lambda m: m.put_in(m.marked()),
    0x90: lambda m: m.add(m.marked()),
    0x71: lambda m: m.remember(m.number(1)),
    0x72: lambda m: m.remember(m.number(4)),
    0x70: lambda m: m.remember(m.index_line()),
    0x94: lambda m: m.remember(len(m.memo)),
    0x68: lambda m: m.recall(m.number(1)),
    0x6A: lambda m: m.recall(m.number(4)),
    0x67: lambda m: m.recall(m.index_line()),
    0x63: Machine.global_line,
    0x93: Machine.stack_global,
    0x52: Machine.reduce,
    0x81: Machine.reduce,
    0x92: Machine.newobj_ex,
    0x69: Machine.inst,
    0x6F: Machine.obj,
    0x62: Machine.build,
    0x50: lambda m: m.referred(m.line().decode("latin-1")),
    0x51: lambda m: m.referred(m.pop()),
    0x82: lambda m: m.extension(1),
    0x83: lambda m: m.extension(2),
    0x84: lambda m: m.extension(4),
    0x80: lambda m: setattr(m, "protocol", m.number(1)),
    0x95: lambda m: m.take(8),
}
_TABLE = tuple(_STEPS.get(code) for code in range(256))
