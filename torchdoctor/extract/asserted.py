"""What the assert of a program's own code wanted, by its source line and the values in its message.

``assert n <= self.size, f"too long: {n} > {self.size}"`` says in its message what both names held.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.extract import Found, parsed, source
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "asserted.name": "text: what the assert compares, as its line names it, where its value is known",
    "asserted.value": "text: the value that it had, by the message",
    "asserted.bound": "text: what it has to be, as at most 2560",
    "asserted.other": "text: what it is compared with; absent for a constant",
    "asserted.other_bound": "text: what that has to be, for the value of the first",
    "asserted.flag": "text: the only name in the assert, as args.frozen of assert not args.frozen",
    "asserted.flag_is": "text: what that was, as the assert failed: true, or false, None or empty",
    "asserted.told": "bool: the message of the assert holds a number",
}

# operator -> what the left has to be by the right, and the right by the left
_BOUNDS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.LtE: ("at most", "at least"), ast.Lt: ("less than", "more than"),
    ast.GtE: ("at least", "at most"), ast.Gt: ("more than", "less than"),
    ast.Eq: ("equal to", "equal to"),
}  # fmt: skip
_LONGEST = 60  # of a name or a value in a sentence


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of an AssertionError whose line the text shows; nothing for another event."""
    del transcript
    own = event.frames[-1] if event.frames else None
    if event.kind is not EventKind.EXCEPTION or own is None or "assert" not in own.code:
        return
    if (event.type or "").rpartition(".")[2] != "AssertionError":
        return
    yield "told", re.search(r"\d", event.text) is not None
    tree = parsed(own.code.strip())
    line = tree.body[0] if tree is not None and tree.body else None
    if isinstance(line, ast.Assert):
        yield from _flag(line.test)
        yield from _compared(line, event.text.strip())


def _flag(test: ast.expr) -> Iterator[Found]:
    denied = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    part = test.operand if isinstance(test, ast.UnaryOp) else test
    name = source(part) if isinstance(part, (ast.Name, ast.Attribute)) else ""
    if pattern(r"[A-Za-z_][\w.]*").fullmatch(name) and len(name) <= _LONGEST:
        yield "flag", name
        yield "flag_is", "true" if denied else "false, None or empty"


def _compared(line: ast.Assert, message: str) -> Iterator[Found]:
    if not isinstance(line.test, ast.Compare) or len(line.test.ops) > 1:
        return
    bounds = _BOUNDS.get(type(line.test.ops[0]))
    held = values_told(line.msg, message) if line.msg is not None else {}
    sides = line.test.left, line.test.comparators[0]
    if isinstance(sides[0], ast.BinOp) and isinstance(sides[0].op, ast.Mod) and source(sides[1]) == "0":
        sides, bounds = (sides[0].left, sides[0].right), ("a multiple of", "a divisor of")
    names = [source(side) for side in sides]
    fixed = [_constant(side) for side in sides]
    values = [held.get(name, name if one else "") for name, one in zip(names, fixed, strict=True)]
    if bounds is not None and fixed[0]:  # the name stands behind it
        names, values, fixed, bounds = names[::-1], values[::-1], fixed[::-1], bounds[::-1]
    if bounds is None or fixed[0] or not all(0 < len(one) <= _LONGEST for one in (*names, *values)):
        return
    yield "name", names[0]
    yield "value", values[0]
    yield "bound", f"{bounds[0]} {values[1]}"
    yield "other", None if fixed[1] else names[1]
    yield "other_bound", None if fixed[1] else f"{bounds[1]} {values[0]}"


def _constant(side: ast.expr) -> bool:
    """Is it a value as it stands: 3, -1, 'cls', (1, 3)?"""
    try:
        ast.literal_eval(side)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def values_told(told: ast.expr, message: str) -> dict[str, str]:
    """Source of each expression that the message prints -> what it printed; empty where they do not fit."""
    held: dict[str, str] = {}
    rest, name = message.partition("\n")[0], ""
    parts = _parts(told)
    if parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()  # as messages are read
    for part in parts:
        if isinstance(part, ast.expr):
            if name:  # nothing parts two values
                return {}
            name = source(part)
        elif part:
            before, found, rest = rest.partition(part)
            if not found or bool(name) != bool(before) or held.setdefault(name, before) != before:
                return {}
            name = ""
    if bool(name) != bool(rest) or held.setdefault(name, rest) != rest:
        return {}
    return held


def _parts(told: ast.expr) -> list[str | ast.expr]:
    """The pieces of a message, in order: what stands there as it is, and what is printed between."""
    if isinstance(told, ast.JoinedStr):
        return [
            str(one.value) if isinstance(one, ast.Constant) else one.value
            for one in told.values
            if isinstance(one, (ast.Constant, ast.FormattedValue))
        ]
    given: list[ast.expr] = []
    if isinstance(told, ast.BinOp) and isinstance(told.op, ast.Mod):
        text, hole = told.left, r"%(?:\.\d{1,2})?[dsfgr]"
        given = list(told.right.elts) if isinstance(told.right, ast.Tuple) else [told.right]
    elif isinstance(told, ast.Call) and isinstance(told.func, ast.Attribute) and told.func.attr == "format":
        text, hole, given = told.func.value, r"\{(?::[^{}]{0,20})?\}", told.args
    else:
        return []
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return []
    pieces = re.split(hole, text.value)
    if len(pieces) != len(given) + 1:
        return []
    parts: list[str | ast.expr] = [pieces[0]]
    for one, piece in zip(given, pieces[1:], strict=True):
        parts += [one, piece]
    return parts
