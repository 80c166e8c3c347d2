"""What a Python source can raise: its ``raise`` and ``assert`` sites, with the places of values as holes."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from inventory_message import Hole, Message, Parts, of_format, of_percent

_WORDS = re.compile(r"[A-Za-z]{3,}")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXITS = frozenset(("sys.exit", "exit", "os._exit", "quit"))
_LOUD = frozenset(("error", "critical", "fatal", "exception"))
_MOST_CALLERS = 3  # steps from a private function back to a public one of its module
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_PRIVATE_CALL = re.compile(r"(?<!def )\b(_[A-Za-z]\w*)\(")
_MAKING = ("__init__", "__post_init__", "__new__")
_ABSTRACT = 2  # statements of a body that holds a docstring and a raise


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Scope = tuple[Definition, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A function as a traceback shows it, the line in it that goes on, and the line that calls it."""

    file: str
    function: str
    line: int
    call: str


class Callers:
    """Of the private functions of a package, who calls them: a public function before others."""

    def __init__(self) -> None:
        self._known: dict[str, Place] = {}

    def note(self, name: str, by: Place) -> None:
        before = self._known.get(name)
        if before is None or (before.function[:1] == "_" and by.function[:1] != "_"):
            self._known[name] = by

    def path(self, place: Place) -> tuple[Place, ...]:
        """The functions from a public one to this one, which stands last."""
        path = [place]
        for _ in range(_MOST_CALLERS):
            name = path[0].function
            if name[:1] != "_" or name[:2] == "__" or name not in self._known:
                break
            path.insert(0, self._known[name])
        return tuple(path)


def messages(package: str, file: str, source: str, callers: Callers) -> Iterator[Message]:
    """Every message of a source file that holds a word of its own; who calls what goes to ``callers``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return
    module = _Module(package, file, tree, source.splitlines())
    module.note_calls(callers)
    yield from module.messages()


class _Module:
    """A parsed file: its names, and for each private function who calls it."""

    def __init__(self, package: str, file: str, tree: ast.Module, lines: list[str]) -> None:
        self.package, self.file, self.tree, self.lines = package, file, tree, lines
        self.name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def known(self) -> dict[str, str]:
        """The names of classes of this file, and of what it imports."""
        found = dict(_imported(self.tree, self.name))
        classes = (node for node in self.tree.body if isinstance(node, ast.ClassDef))
        return {**found, **{node.name: f"{self.name}.{node.name}" for node in classes}}

    def note_calls(self, callers: Callers) -> None:
        """Tell who calls the private functions that this file calls."""
        found = ((scope[-1].lineno, scope[-1].end_lineno or 0, scope) for scope in _functions(self.tree, ()))
        spans = sorted(found, key=lambda one: one[0])
        starts = [start for start, _, _ in spans]
        for line, text in enumerate(self.lines, 1):
            for call in _PRIVATE_CALL.finditer(text):
                around = bisect_right(starts, line) - 1
                while around >= 0 and spans[around][1] < line:
                    around -= 1
                if around >= 0 and spans[around][2][-1].name != call[1]:
                    callers.note(call[1], self._place(spans[around][2], line))

    def messages(self) -> Iterator[Message]:
        yield from self._within(self.tree, (), ())

    def _within(self, node: ast.AST, scope: Scope, caught: tuple[str, ...]) -> Iterator[Message]:
        for field in _BLOCKS:
            children = getattr(node, field, None)
            if not isinstance(children, list):
                continue
            inside = (*caught, *_caught_by(node)) if isinstance(node, ast.Try) and field == "body" else caught
            for child, after in zip_longest(children, children[1:]):
                if isinstance(child, _FUNCTIONS):
                    yield from self._within(child, (*scope, child), ())
                elif isinstance(child, ast.ClassDef):
                    yield from self._within(child, (*scope, child), inside)
                else:
                    found = self._site(child, scope, inside, after)
                    if found is not None:
                        yield found
                    yield from self._within(child, scope, inside)

    def _site(self, node: ast.AST, scope: Scope, caught: tuple[str, ...], after: object) -> Message | None:
        voice = ""
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = self._kind(node.exc.func)
            said = _first_text(node.exc, scope)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            kind, said = "AssertionError", _parts(node.msg, scope)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            kind = ""
            said, voice = _told_at_exit(node.value, after, scope)
        else:
            return None
        if kind is None or not _WORDS.search("".join(one for one in said if isinstance(one, str))):
            return None
        functions = [one for one in scope if isinstance(one, _FUNCTIONS)]
        return Message(
            package=self.package,
            file=self.file,
            line=node.lineno,
            kind=kind,
            parts=said,
            code=self.lines[node.lineno - 1].strip() if node.lineno <= len(self.lines) else "",
            places=(self._place(scope),),
            caught=_short(kind) in caught or "Exception" in caught,
            voice=voice,
            abstract=bool(functions) and _only_raises(functions[-1]),
        )

    def _kind(self, node: ast.expr) -> str | None:
        """The class as a traceback prints it; None for a call of something that is no class."""
        name = _dotted(node)
        last = name.rpartition(".")[2]
        if not last[:1].isupper() and last[:1] != "_":
            return None
        if name == last and hasattr(builtins, last):
            return last
        head, _, rest = name.partition(".")
        return self.known.get(head, head) + (f".{rest}" if rest else "")

    def _place(self, scope: Scope, line: int = 0) -> Place:
        names = [one for one in scope if isinstance(one, (*_FUNCTIONS, ast.ClassDef))]
        if not names or not isinstance(names[-1], _FUNCTIONS):
            return Place(self.file, "<module>", line, f"import {self.name}")
        function = names[-1].name
        owner = names[-2].name if len(names) > 1 and isinstance(names[-2], ast.ClassDef) else ""
        if owner and function in _MAKING:
            call = f"model = {owner}(value)"
        elif owner:
            call = f"output = model.{function}(value)"
        else:
            call = f"output = {function}(value)"
        return Place(self.file, function, line, call)


def _imported(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    for _, node in _statements(tree, ()):
        if isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((one.asname or one.name, f"{source}.{one.name}") for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.asname, one.name) for one in node.names if one.asname)


def _statements(node: ast.AST, scope: Scope) -> Iterator[tuple[Scope, ast.AST]]:
    for field in _BLOCKS:
        for child in getattr(node, field, None) or ():
            if isinstance(child, ast.AST):
                yield scope, child
                inner = (*scope, child) if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) else scope
                yield from _statements(child, inner)


def _functions(node: ast.AST, scope: Scope) -> Iterator[Scope]:
    """The scopes of all functions, the function last."""
    for around, child in _statements(node, scope):
        if isinstance(child, _FUNCTIONS):
            yield (*around, child)


def _caught_by(node: ast.Try) -> list[str]:
    """Classes that the handlers of a ``try`` take and do not raise again."""
    names: list[str] = []
    for handler in node.handlers:
        if any(isinstance(one, ast.Raise) for one in ast.walk(handler)):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names.extend(_short(_dotted(one)) if one is not None else "Exception" for one in kinds)
    return names


def _short(name: str | None) -> str:
    return (name or "").rpartition(".")[2]


def _only_raises(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    return isinstance(body, list) and len(body) <= _ABSTRACT and isinstance(body[-1], ast.Raise)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def _told_at_exit(call: ast.Call, after: object, scope: Scope) -> tuple[Parts, str]:
    """What a call exits with, or logs as an error right before the program exits, and in which voice."""
    name = _dotted(call.func)
    if (
        name == "sys.exit"
        and call.args
        and isinstance(call.args[0], (ast.JoinedStr, ast.BinOp, ast.Constant))
    ):
        return _parts(call.args[0], scope), "exit"
    ends = isinstance(after, ast.Expr) and isinstance(after.value, ast.Call)
    if ends and _dotted(after.value.func) in _EXITS and _short(name) in _LOUD:  # type: ignore[attr-defined]
        return _first_text(call, scope), "log"
    return (), ""


def _first_text(call: ast.Call, scope: Scope) -> Parts:
    """The first argument that holds words."""
    for argument in (*call.args, *(one.value for one in call.keywords)):
        said = _parts(argument, scope)
        if _WORDS.search("".join(one for one in said if isinstance(one, str))):
            return said
    return ()


def _parts(node: ast.AST, scope: Scope, depth: int = 6) -> Parts:
    """The text of an expression, with holes for what only the running program knows."""
    if depth == 0:
        return (Hole(""),)
    if isinstance(node, ast.Constant):
        return (str(node.value),)
    if isinstance(node, ast.JoinedStr):
        return tuple(
            str(one.value) if isinstance(one, ast.Constant) else Hole(ast.unparse(one.value))  # type: ignore[attr-defined]
            for one in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (*_parts(node.left, scope, depth - 1), *_parts(node.right, scope, depth - 1))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return of_percent(_parts(node.left, scope, depth - 1), [ast.unparse(one) for one in values])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = _parts(node.func.value, scope, depth - 1)
        if node.func.attr == "format":
            named = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}
            return of_format(inner, [ast.unparse(one) for one in node.args], named)
        if node.func.attr in ("strip", "dedent", "cleandoc", "replace"):
            return (
                _parts(node.args[0], scope, depth - 1) if node.func.attr in ("dedent", "cleandoc") else inner
            )
    if isinstance(node, ast.Call) and _dotted(node.func) in ("str", "repr") and node.args:
        return (Hole(ast.unparse(node.args[0])),)
    if isinstance(node, ast.IfExp):
        return _parts(node.body, scope, depth - 1)
    if isinstance(node, ast.Name):
        value = _assigned(node, scope)
        return _parts(value, scope, depth - 1) if value is not None else (Hole(node.id),)
    return (Hole(ast.unparse(node)),)


def _assigned(name: ast.Name, scope: Scope) -> ast.expr | None:
    """What a local name was last set to, where that is a text."""
    functions = [one for one in scope if isinstance(one, _FUNCTIONS)]
    found: ast.expr | None = None
    for node in ast.walk(functions[-1]) if functions else ():
        if not isinstance(node, ast.Assign) or node.lineno >= name.lineno:
            continue
        if any(isinstance(one, ast.Name) and one.id == name.id for one in node.targets):
            found = node.value
    texts = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Call)
    return found if isinstance(found, texts) else None
