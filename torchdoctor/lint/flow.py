"""Where a node stands: in which function, loops, tests and contexts, and what runs before what."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.index import FunctionNode, Scope

Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
# shared by the parser among all nodes, so that they have no place
_BARE = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def up(node: ast.AST) -> ast.AST:
    """The parent; a module is its own."""
    return cast("ast.AST", node._up)  # type: ignore[attr-defined]


def scope(node: ast.AST) -> Scope:
    """The scope that the node's names are looked up in."""
    return cast("Scope", node._scope)  # type: ignore[attr-defined]


def start(node: ast.AST) -> tuple[int, int]:
    return (node.lineno, node.col_offset)  # type: ignore[attr-defined]


def end(node: ast.AST) -> tuple[int, int]:
    return (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def above(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of child and parent, from the node up to the function or module it belongs to, that included."""
    while not isinstance(node, ast.Module):
        parent = up(node)
        yield node, parent
        if isinstance(parent, _DEFINITIONS):
            return
        node = parent


def function(node: ast.AST) -> FunctionNode | ast.Lambda | None:
    """The innermost function around a node; None at module or class level."""
    node = up(node)
    while not isinstance(node, ast.Module):
        if isinstance(node, _FUNCTIONS):
            return node
        if isinstance(node, ast.ClassDef):
            return None
        node = up(node)
    return None


def named_function(node: ast.AST) -> FunctionNode | None:
    """The innermost ``def`` around a node."""
    found = function(node)
    while isinstance(found, ast.Lambda):
        found = function(found)
    return found


def class_around(node: ast.AST) -> ast.ClassDef | None:
    """The innermost class around a node, functions between them or not."""
    while not isinstance(node, ast.Module):
        node = up(node)
        if isinstance(node, ast.ClassDef):
            return node
    return None


def statement(node: ast.AST) -> ast.stmt:
    """The statement that a node is, or is part of."""
    while not isinstance(node, ast.stmt):
        node = up(node)
    return node


def inside(node: ast.AST, outer: ast.AST) -> bool:
    """Does ``node`` stand in ``outer``, or is it that?"""
    while node is not outer:
        if isinstance(node, ast.Module):
            return False
        node = up(node)
    return True


def loops(node: ast.AST) -> list[Loop]:
    """The loops whose bodies run the node, within its function, the innermost first."""
    return [
        parent
        for child, parent in above(node)
        if isinstance(parent, _LOOPS) and not (isinstance(parent, ast.For) and child is parent.iter)
    ]


def guards(node: ast.AST) -> frozenset[tuple[ast.AST, str]]:
    """The branches within its function that a node stands in, as (statement, arm)."""
    known = getattr(node, "_guards", None)
    if known is None:
        known = frozenset(_guards(node))
        node._guards = known  # type: ignore[attr-defined]
    return cast("frozenset[tuple[ast.AST, str]]", known)


def _guards(node: ast.AST) -> list[tuple[ast.AST, str]]:
    found: list[tuple[ast.AST, str]] = []
    for child, parent in above(node):
        if isinstance(parent, ast.If | ast.IfExp):
            arm = _arm(parent, child)
            if arm:
                found.append((parent, arm))
        elif isinstance(parent, ast.ExceptHandler):
            found.append((up(parent), f"handler{parent.lineno}"))
        elif isinstance(parent, ast.match_case):
            found.append((up(parent), f"case{id(parent)}"))
        elif isinstance(parent, ast.BoolOp) and parent.values[0] is not child:
            found.append((parent, "later"))
    return found


def _arm(test: ast.If | ast.IfExp, child: ast.AST) -> str:
    if child is test.test:
        return ""
    if isinstance(test, ast.IfExp):
        return "body" if child is test.body else "orelse"
    return "body" if any(child is one for one in test.body) else "orelse"


def exclusive(a: ast.AST, b: ast.AST) -> bool:
    """Can only one of the two run in one pass: other arms of one test, or a branch that leaves before b?"""
    first, second = dict(guards(a)), dict(guards(b))
    if any(first[test] != arm for test, arm in second.items() if test in first):
        return True
    if first and second and _said_alike(first) & {(text, not arm) for text, arm in _said_alike(second)}:
        return True
    early, late = (first, second) if start(a) <= start(b) else (second, first)
    later = b if start(a) <= start(b) else a
    return any(
        test not in late
        and isinstance(test, ast.If)
        and leaves(_block(test, arm))
        and not inside(later, test)
        for test, arm in early.items()
    )


def _said_alike(arms: dict[ast.AST, str]) -> set[tuple[str, bool]]:
    """The tests of branches as they are written, with what they are there: ``if amp:`` may come again."""
    found: set[tuple[str, bool]] = set()
    for test, arm in arms.items():
        if isinstance(test, ast.If | ast.IfExp) and arm in ("body", "orelse"):
            node, said = test.test, arm == "body"
            while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                node, said = node.operand, not said
            if isinstance(node, ast.Name | ast.Attribute | ast.Compare):
                found.add((_written(node), said))
    return found


def _written(node: ast.expr) -> str:
    known = getattr(node, "_written", None)
    if known is None:
        known = ast.unparse(node)
        node._written = known  # type: ignore[attr-defined]
    return cast("str", known)


def _block(test: ast.If, arm: str) -> list[ast.stmt]:
    return test.body if arm == "body" else test.orelse


def leaves(block: list[ast.stmt]) -> bool:
    """Does a block end by leaving what is around it?"""
    return bool(block) and isinstance(block[-1], _LEAVES)


def covers(node: ast.AST, use: ast.AST) -> bool:
    """Does the statement ``node`` run on every way to ``use``, which stands after it in the same function?"""
    parent = up(statement(node))
    if isinstance(parent, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(parent, ast.Try | ast.With | ast.AsyncWith):
        return inside(use, parent) or covers(parent, use)
    return inside(use, parent) and not exclusive(node, use)


def calls_under(root: ast.AST) -> list[ast.Call]:
    """The calls that running ``root`` makes itself, in the order in which they are made; definitions in it
    are left out."""
    known = getattr(root, "_calls", None)
    if known is None:
        known = sorted((one for one in walk(root) if isinstance(one, ast.Call)), key=end)
        root._calls = known  # type: ignore[attr-defined]
    return cast("list[ast.Call]", known)


def walk(root: ast.AST) -> list[ast.AST]:
    """All nodes that run with ``root``: its subtree without the bodies of functions and classes in it."""
    known = getattr(root, "_walked", None)
    if known is None:
        known = _walk(root)
        if hasattr(root, "body"):
            root._walked = known  # type: ignore[attr-defined]
    return cast("list[ast.AST]", known)


def _walk(root: ast.AST) -> list[ast.AST]:
    body = getattr(root, "body", None)
    stack: list[ast.AST] = [root]
    if isinstance(root, _DEFINITIONS):
        stack = list(reversed(body)) if isinstance(body, list) else [body]  # type: ignore[list-item]
    found: list[ast.AST] = []
    while stack:
        node = stack.pop()
        found.append(node)
        if isinstance(node, _DEFINITIONS):
            continue
        children = [one for one in ast.iter_child_nodes(node) if not isinstance(one, _BARE)]
        children.reverse()
        stack += children
    return found


def assigns(root: ast.AST) -> list[ast.Assign]:
    """The assignments that run with ``root``."""
    known = getattr(root, "_assigns", None)
    if known is None:
        known = [one for one in walk(root) if isinstance(one, ast.Assign)]
        root._assigns = known  # type: ignore[attr-defined]
    return cast("list[ast.Assign]", known)


def names_in(node: ast.AST) -> set[str]:
    """Every name and attribute that stands in an expression, and the words of its strings."""
    found: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.Attribute):
            found.add(one.attr)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.add(one.value)
        elif isinstance(one, ast.arg | ast.keyword) and one.arg:
            found.add(one.arg)
    return found


def same(a: ast.AST, b: ast.AST) -> bool:
    """Are two expressions written alike, places and contexts aside?"""
    return ast.dump(a) == ast.dump(b) or ast.unparse(a) == ast.unparse(b)


def receiver(call: ast.Call) -> ast.expr | None:
    """What a method is called on."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def method(call: ast.Call) -> str:
    """The last part of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument, None where it is not given."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def argument(call: ast.Call, at: int, name: str) -> ast.expr | None:
    """An argument by its position or name; None where it is not given, or hidden in ``*args``."""
    if at < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args[: at + 1]):
        return call.args[at]
    return keyword(call, name)


def spread(call: ast.Call) -> bool:
    """Does it take arguments that cannot be seen, ``*args`` or ``**kwargs``?"""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    )


def is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
