"""Which of the sizes of a new tensor is no number: the tuple in ``torch.zeros(n, dim)`` where n is ``(8,)``.

A function that makes a tensor of the sizes it was given is not wrong itself: who called it gave the tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchdoctor.extract import Found, source
from torchdoctor.extract.line_parts import of_code, spreads
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "sizes.type": "str: the type of the one size that is no number: tuple, torch.Size, float",
    "sizes.part": "text: that size, as the line writes it",
    "sizes.caller": "text: the file and line that hands a tuple or a shape to the function of the line",
    "sizes.handed": "text: what it hands over",
    "sizes.number": "text: one number of that",
}

_SIZED = r"(?:zeros|ones|empty|rand|randn|view|reshape|expand|repeat|new_(?:zeros|ones|empty))"
_GOT = (
    rf"\b(?P<call>{_SIZED})\(\) received an invalid combination of arguments - got "
    r"\((?P<given>[^()\n]{1,200})\)"
)
_SEVERAL = ("tuple", "list", "torch.Size")
_OTHERS = ("float", "numpy.float64", "numpy.float32", "NoneType")
_LONGEST = 60


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of such a message; nothing for another event, and for sizes that came as one tuple."""
    del transcript
    said = pattern(_GOT).search(event.text[:400]) if event.kind is EventKind.EXCEPTION else None
    if said is None:
        return
    given = [one for one in said["given"].split(", ") if "=" not in one]
    wrong = [at for at, one in enumerate(given) if one != "int"]
    if len(given) < 2 or len(wrong) != 1 or (kind := given[wrong[0]]) not in (*_SEVERAL, *_OTHERS):
        return
    yield "type", kind
    own = [frame for frame in event.frames if not frame.package]
    call = _call(own[-1], said["call"]) if own else None
    part = _short(call.args[wrong[0]]) if call is not None and len(call.args) == len(given) else None
    yield "part", part
    if part is None or len(own) < 2 or kind not in _SEVERAL:
        return
    caller = _call(own[-2], own[-1].function.rpartition(".")[2])
    handed = [one for one in caller.args if _is_tuple(one)] if caller is not None else []
    if len(handed) == 1 and part.isidentifier():
        number = handed[0].elts[0] if isinstance(handed[0], ast.Tuple) else handed[0]
        yield "caller", own[-2].place()
        yield "handed", _short(handed[0])
        yield "number", _short(number) if isinstance(handed[0], ast.Tuple) else f"{source(number)}[0]"


def _call(frame: Frame, name: str) -> ast.Call | None:
    """The one call of the function on the line of the frame."""
    line = of_code(frame.code)
    calls = [node for node in ast.walk(line) if isinstance(node, ast.Call)] if line is not None else []
    named = [call for call in calls if source(call.func).rpartition(".")[2] == name]
    return named[0] if len(named) == 1 and not spreads(named[0]) else None


def _is_tuple(node: ast.expr) -> bool:
    """``(n,)``, or ``x.shape`` and ``x.size()``."""
    if isinstance(node, ast.Tuple):
        return len(node.elts) == 1
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _short(node: ast.AST) -> str | None:
    part = source(node)
    return part if 0 < len(part) <= _LONGEST else None
