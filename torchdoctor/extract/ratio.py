"""The quotient of which a loss of probabilities was asked for, by the source lines of the user's own frames.

``F.binary_cross_entropy(p, y)`` in a function whose caller gives ``hits / total`` for p: no sigmoid made it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchdoctor.extract import parsed, source
from torchdoctor.model import Event

_LOSS = "binary_cross_entropy"
_LONGEST = 60  # of a quotient, in a sentence
# what is asked of a tensor and leaves it the same number, or one within bounds
_SAME = frozenset({
    "clamp", "clip", "float", "to", "type", "double", "view", "reshape", "squeeze", "unsqueeze", "flatten",
    "contiguous", "mean", "nan_to_num", "type_as",
})  # fmt: skip


def ratio(event: Event) -> str | None:
    """The quotient as it stands in the source; None where the lines show another value, or none."""
    if not any(_LOSS in frame.code for frame in event.frames):  # most events, which need no parser
        return None
    wanted = _LOSS
    for frame in reversed(event.frames):
        if frame.package:
            continue
        given = [call.args for call in _calls(frame.code) if _name(call.func) == wanted and call.args]
        # its caller gives it under a name of its own: which it is shows where it gives one value alone
        if len(given) != 1 or (wanted != _LOSS and len(given[0]) != 1):
            return None
        value = _bare(given[0][0])
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            text = source(value)
            return text if 0 < len(text) <= _LONGEST else None
        if not isinstance(value, ast.Name):
            return None
        wanted = frame.function.rpartition(".")[2]
    return None


def _calls(code: str) -> Iterator[ast.Call]:
    tree = parsed(code.strip())
    nodes = ast.walk(tree) if tree is not None else ()
    yield from (node for node in nodes if isinstance(node, ast.Call))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _bare(value: ast.expr) -> ast.expr:
    """The value without the calls that leave it a value of the same kind."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
        value = value.func.value
    return value
