"""Which of a name's bindings may have given it the value that it has at one place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow

if TYPE_CHECKING:
    from torchdoctor.lint.index import Binding


_MANY = 200  # bindings of one name; which of more than that holds is not looked for


def reaching(use: ast.Name, binds: list[Binding]) -> list[Binding]:
    """The bindings of ``use`` that may hold there; all of them where it belongs to a scope further out."""
    if not binds or len(binds) > _MANY:
        return []
    here = flow.named_function(use)
    if len(binds) == 1 and not (binds[0].how == "assign" and flow.named_function(binds[0].node) is here):
        return binds
    if any(flow.named_function(_site(one)) is not here for one in binds if one.how != "param"):
        return binds
    return _before(use, binds)


def reaching_attribute(use: ast.Attribute, binds: list[Binding]) -> list[Binding]:
    """The same for an attribute: what the same function set before counts alone, else all."""
    if len(binds) < 2:
        return binds
    here = flow.named_function(use)
    own = [one for one in binds if flow.named_function(_site(one)) is here]
    found = _before(use, own) if own else []
    if any(flow.covers(_site(one), use) for one in found if one.how != "aug" and _is_before(one, use)):
        return found
    return binds


def _site(one: Binding) -> ast.AST:
    return one.node


def _is_before(one: Binding, use: ast.AST) -> bool:
    return (one.line, one.column) < flow.start(use) and not _in_own_value(one, use)


def _in_own_value(one: Binding, use: ast.AST) -> bool:
    """Is ``use`` part of what the binding is computed from, as in ``x = f(x)``?"""
    return one.value is not None and flow.inside(use, one.value)


def _before(use: ast.Name | ast.Attribute, binds: list[Binding]) -> list[Binding]:
    found: list[Binding] = []
    stop: Binding | None = None
    for one in sorted(binds, key=lambda bind: (bind.line, bind.column), reverse=True):
        if not _is_before(one, use) or _excluded(one, use):
            continue
        found.append(one)
        if one.how != "aug" and _holds(one, use):
            stop = one
            break
    for loop in flow.loops(use):
        if stop is not None and flow.inside(stop.node, loop):
            break
        found += (
            one
            for one in binds
            if one not in found and flow.inside(one.node, loop) and not _excluded(one, use)
        )
    return found or [one for one in binds if not _in_own_value(one, use) and not _excluded(one, use)]


def _excluded(one: Binding, use: ast.AST) -> bool:
    return (
        one.how != "param" and not isinstance(one.node, ast.comprehension) and flow.exclusive(one.node, use)
    )


def _holds(one: Binding, use: ast.AST) -> bool:
    if one.how == "param":
        return True
    if one.how == "for":
        outer = one.node if not isinstance(one.node, ast.comprehension) else flow.up(one.node)
        return flow.inside(use, outer)
    if isinstance(one.node, ast.NamedExpr):
        return False
    return flow.covers(one.node, use)
