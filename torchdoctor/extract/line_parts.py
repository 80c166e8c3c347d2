"""Which part of its line an exception of Python is about: what is None, what is 0, what lacks the key.

``loss = self.head(x)[key]`` with "'NoneType' object is not subscriptable" leaves only ``self.head(x)``. A
line that has more than one such part tells nothing, but of divisors two can be named.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchdoctor.extract import Found, parsed, source
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "line.none": "text: the part of the line that is None, where it must not be",
    "line.part": "text: the part of the line that is of a type with which the line cannot work",
    "line.type": "text: that type, as Python names it; never NoneType",
    "line.divisor": "text: what the line divides by, which is 0; two of them joined by or",
    "line.container": "text: what the line takes an entry from, by an index or a key that it does not have",
    "line.read": "text: the tensor whose one value the line reads, as by item() or float()",
    "line.index": "text: that index or key, where it is no constant",
}

_LONGEST = 60  # of a part, in a sentence
_LONGEST_LINE = 1_000
_ONE_VALUE = frozenset({"Scalar", "scalars"})  # to which a tensor of several values is converted
_READERS = ("float", "int", "bool")
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_BY_ATTRIBUTE = r"^'(?P<type>[\w.]{1,80})' object has no attribute '(?P<name>\w{1,80})'"
# what Python says of a value's type -> the parts of a line that it can mean
_FORMS = (
    (_BY_ATTRIBUTE, lambda node, name: node.value if _is_attribute(node, name) else None),
    (
        r"^'(?P<type>[\w.]{1,80})' object (?:is not subscriptable|does not support item)",
        lambda node, _: node.value if isinstance(node, ast.Subscript) else None,
    ),
    (
        r"^'(?P<type>[\w.]{1,80})' object is not callable",
        lambda node, _: node.func if isinstance(node, ast.Call) else None,
    ),
    (
        r"^(?:'(?P<type>[\w.]{1,80})' object is not iterable"
        r"|cannot unpack non-iterable (?P<other>[\w.]{1,80}) object)",
        lambda node, _: _iterated(node),
    ),
    (
        r"^argument of type '(?P<type>[\w.]{1,80})' is not iterable",
        lambda node, _: node.comparators[0] if _looks_in(node) else None,
    ),
    (
        r"^object of type '(?P<type>[\w.]{1,80})' has no len\(\)",
        lambda node, _: node.args[0] if _calls(node, "len") else None,
    ),
)  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of an exception whose innermost frame shows its line; nothing for another event."""
    del transcript
    last = event.frames[-1] if event.frames else None
    if event.kind is not EventKind.EXCEPTION or last is None or not last.code:
        return
    line = _parsed(last.code.strip())
    if line is None:
        return
    kind = (event.type or "").rpartition(".")[2]
    if kind in ("AttributeError", "TypeError"):
        yield from _typed(line, event.text[:400])
    elif kind == "ZeroDivisionError":
        divisors = _parts(line, _divisor)
        yield "divisor", " or ".join(divisors) if 0 < len(divisors) <= 2 else None
    elif kind in ("RuntimeError", "ValueError") and _ONE_VALUE.intersection(event.text[:400].split()):
        read = _parts(line, _read)
        yield "read", read[0] if len(read) == 1 else None
    elif kind in ("KeyError", "IndexError"):
        yield from _entry(line, event.text.strip() if kind == "KeyError" else "")


def divisor(code: str) -> str | None:
    """What a line divides by; None where it divides by several parts, or by none."""
    line = _parsed(code.strip())
    parts = _parts(line, _divisor) if line is not None else []
    return parts[0] if len(parts) == 1 else None


def handed(code: str) -> list[str]:
    """The names that a line hands to its calls, each once: ``a`` and ``self.b`` of ``run(a, x=self.b)``."""
    line = _parsed(code.strip())
    calls = [node for node in ast.walk(line) if isinstance(node, ast.Call)] if line is not None else []
    given = [part for call in calls for part in (*call.args, *(one.value for one in call.keywords))]
    names = dict.fromkeys(source(one) for one in given if isinstance(one, (ast.Name, ast.Attribute)))
    return [name for name in names if 0 < len(name) <= _LONGEST]


def _typed(line: ast.AST, message: str) -> Iterator[Found]:
    for form, find in _FORMS:
        said = pattern(form).match(message)
        if said is None:
            continue
        named = said.groupdict()
        kind, name = named["type"] or named.get("other") or "", named.get("name") or ""
        parts = _parts(line, lambda node: find(node, name))  # noqa: B023
        if len(parts) == 1 and kind == "NoneType":
            yield "none", parts[0]
        elif len(parts) == 1:
            yield "part", parts[0]
            yield "type", kind
        return


def _entry(line: ast.AST, key: str) -> Iterator[Found]:
    found = [node for node in ast.walk(line) if isinstance(node, ast.Subscript)]
    taken = [node for node in found if isinstance(node.ctx, ast.Load)] or found
    taken = [node for node in taken if key and source(node.slice) == key] or taken
    if len(taken) != 1 or isinstance(taken[0].slice, ast.Slice):
        return
    container, index = source(taken[0].value), source(taken[0].slice)
    if all(0 < len(part) <= _LONGEST for part in (container, index)):
        yield "container", container
        yield "index", None if isinstance(taken[0].slice, ast.Constant) else index


def _parts(line: ast.AST, find: Callable[[ast.AST], ast.AST | None]) -> list[str]:
    """The sources of what is found, each once, in the order of the line; none where one is too long."""
    parts = dict.fromkeys(source(part) for node in ast.walk(line) if (part := find(node)) is not None)
    return list(parts) if all(0 < len(part) <= _LONGEST for part in parts) else []


def _divisor(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or not isinstance(
        node.op, (ast.Div, ast.FloorDiv, ast.Mod)
    ):
        return None
    divisor = node.right if isinstance(node, ast.BinOp) else node.value
    left = node.left if isinstance(node, ast.BinOp) else node.target
    formats = isinstance(left, (ast.JoinedStr, ast.Constant)) and isinstance(node.op, ast.Mod)
    return None if formats or isinstance(divisor, ast.Constant) else divisor


def _read(node: ast.AST) -> ast.AST | None:
    """``loss`` of ``loss.item()`` and of ``float(loss)``; None for an operation, which needs brackets."""
    if not isinstance(node, ast.Call):
        return None
    tensor: ast.AST | None = None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        tensor = node.func.value
    elif any(_calls(node, name) for name in _READERS):
        tensor = node.args[0]
        if isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute):
            tensor = tensor.func.value if tensor.func.attr == "item" else tensor
    return tensor if isinstance(tensor, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else None


def _is_attribute(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _iterated(node: ast.AST) -> ast.AST | None:
    if isinstance(node, (ast.For, ast.comprehension)):
        return node.iter
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return node.value
    return node.value if isinstance(node, ast.Starred) else None


def _looks_in(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn))
    )


def _calls(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and len(node.args) == 1
    )


def _parsed(code: str) -> ast.AST | None:
    """The line as a statement, closed where a traceback shows only its first line; None if it is none."""
    if len(code) > _LONGEST_LINE:
        return None
    if code.endswith(":"):
        code += " pass"
    code = code.removeprefix("el") if code.startswith("elif ") else code
    return parsed(code) or parsed(_closed(code))


def _closed(code: str) -> str:
    """The line with the brackets closed that it leaves open, outside of strings of one kind of quote."""
    opened: list[str] = []
    quote = ""
    for sign in code:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _CLOSES:
            opened.append(_CLOSES[sign])
        elif opened and sign == opened[-1]:
            opened.pop()
    return code + "".join(reversed(opened))
