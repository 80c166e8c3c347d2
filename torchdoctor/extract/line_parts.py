"""Which part of its line an exception of Python is about: what is None, what is 0, what lacks the key.

``loss = self.head(x)[key]`` with "'NoneType' object is not subscriptable" leaves only ``self.head(x)``. Where
Python marks a part of the line, that decides; else a line that has more than one such part tells nothing, but
of divisors two can be named.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchdoctor.extract import Found, parsed, source
from torchdoctor.extract.python_error import raised_at
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "line.none": "text: the part of the line that is None, where it must not be",
    "line.part": "text: the part of the line that is of a type with which the line cannot work",
    "line.type": "text: that type, as Python names it; never NoneType",
    "line.divisor": "text: what the line divides by, which is 0; two of them joined by or",
    "line.container": "text: what the line takes an entry from, by an index or a key that it does not have",
    "line.read": "text: the tensor whose one value the line reads, as by item() or float()",
    "line.surplus": "text: the last arguments of the call, which are too many for the function",
    "line.index": "text: that index or key, where it is no constant",
}

_LONGEST = 60  # of a part, in a sentence
_LONGEST_LINE = 1_000
_ONE_VALUE = frozenset({"Scalar", "scalars"})  # to which a tensor of several values is converted
_READERS = ("float", "int", "bool")
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_SURPLUS = (
    r"([\w.]{1,100})\(\) takes (?:from \d+ to )?(?P<takes>\d{1,3}) positional arguments? "
    r"but (?P<given>\d{1,3}) (?:was|were) given"
)
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
    (
        r"^unsupported format string passed to (?P<type>[\w.]{1,80})\.__format__",
        lambda node, _: _formatted(node),
    ),
)  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of an exception whose innermost frame shows its line; nothing for another event."""
    del transcript
    last = event.frames[-1] if event.frames else None
    if event.kind is not EventKind.EXCEPTION or last is None:
        return
    text = event.text[:400]
    surplus = pattern(_SURPLUS).search(text) if event.type == "TypeError" else None
    if surplus is not None:
        yield "surplus", _surplus(raised_at(event), surplus[1], int(surplus["takes"]), int(surplus["given"]))
        return
    frame = raised_at(event) if "__format__" in text else last  # a tensor has a __format__ of its own
    for line in (_marked(frame), of_code(frame.code.strip())) if frame is not None and frame.code else ():
        told = (
            list(_told(line, (event.type or "").rpartition(".")[2], event.text)) if line is not None else []
        )
        if told:
            yield from told
            return


def _told(line: ast.AST, kind: str, message: str) -> Iterator[Found]:
    text = message[:400]
    if kind in ("AttributeError", "TypeError"):
        yield from _typed(line, text)
    elif kind == "ZeroDivisionError":
        divisors = _parts(line, _divisor)
        if 0 < len(divisors) <= 2:
            yield "divisor", " or ".join(divisors)
    elif kind in ("RuntimeError", "ValueError") and _ONE_VALUE.intersection(text.split()):
        read = _parts(line, _read)
        if len(read) == 1:
            yield "read", read[0]
    elif kind in ("KeyError", "IndexError"):
        yield from _entry(line, message.strip() if kind == "KeyError" else "")


def _marked(frame: Frame) -> ast.AST | None:
    """The part that Python marks, as an expression; None for none, and for a part of one."""
    part = frame.marked()
    if part[:1] == "{" and part[-1:] == "}" and "{" not in part[1:-1]:  # of an f-string
        return _expression(f'f"""{part}"""')
    return _expression(part) if part else None


def _expression(code: str) -> ast.AST | None:
    tree = parsed(code)
    first = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(first, ast.Expr):
        return None
    value = first.value
    return value.values[0] if isinstance(value, ast.JoinedStr) and len(value.values) == 1 else value


def _surplus(frame: Frame | None, name: str, takes: int, given: int) -> str | None:
    """The arguments that are too many, where one call has as many as came, with or without self."""
    line = of_code(frame.code.strip()) if frame is not None and given > takes else None
    calls = [node for node in ast.walk(line) if isinstance(node, ast.Call)] if line is not None else []
    fit = [call for call in calls if len(call.args) in (given - 1, given) and not spreads(call)]
    named = [call for call in fit if source(call.func).rpartition(".")[2] == name.rpartition(".")[2]]
    one = named or fit
    parts = ", ".join(source(part) for part in one[0].args[takes - given :]) if len(one) == 1 else ""
    return parts if 0 < len(parts) <= _LONGEST else None


def spreads(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args)


def divisor(code: str) -> str | None:
    """What a line divides by; None where it divides by several parts, or by none."""
    line = of_code(code.strip())
    parts = _parts(line, _divisor) if line is not None else []
    return parts[0] if len(parts) == 1 else None


def handed(code: str) -> list[str]:
    """The names that a line hands to its calls, each once: ``a`` and ``self.b`` of ``run(a, x=self.b)``."""
    line = of_code(code.strip())
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
    nodes = [line] if isinstance(line, ast.Subscript) else ast.walk(line)  # what is marked, as a whole
    found = [node for node in nodes if isinstance(node, ast.Subscript)]
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
    nodes = [line] if find(line) is not None else ast.walk(line)  # what is marked, as a whole
    parts = dict.fromkeys(source(part) for node in nodes if (part := find(node)) is not None)
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


def _formatted(node: ast.AST) -> ast.AST | None:
    """``x`` of ``{x:.4f}`` in an f-string, of ``format(x, '.4f')`` and of ``'{:.4f}'.format(x)``."""
    if isinstance(node, ast.FormattedValue):
        return node.value if node.format_spec is not None and node.conversion == -1 else None
    if not isinstance(node, ast.Call) or spreads(node):
        return None
    if isinstance(node.func, ast.Name) and node.func.id == "format" and len(node.args) == 2:
        return node.args[0]
    text = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "format" else None
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return None
    holes = pattern(r"\{(\d{0,2})(:[^{}]{1,20})?\}").findall(text.value.replace("{{", "").replace("}}", ""))
    places = [int(number) if number else at for at, (number, _) in enumerate(holes)]
    fit = {at for at, (_, spec) in zip(places, holes, strict=True) if spec}
    at = fit.pop() if len(fit) == 1 else len(node.args)
    return node.args[at] if at < len(node.args) else None


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


def of_code(code: str) -> ast.AST | None:
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
