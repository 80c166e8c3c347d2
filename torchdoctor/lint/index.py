"""One walk over a syntax tree: parents, scopes, what is bound where, and lists of what checks start from."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

# shared by the parser among all nodes
_BARE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, eq=False)
class Binding:
    """One place that gives a name its value.

    ``how`` is assign, aug, for, with, param, import, def, class or other. ``path`` is where in ``value`` the
    name's own value stands when a tuple is taken apart; for ``for`` the value is what is iterated over.
    ``imported`` is the dotted name that an import brings.
    """

    name: str
    how: str
    node: ast.AST
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    imported: str = ""
    line: int = 0
    column: int = 0


@dataclass(slots=True, eq=False)
class Scope:
    """A module, function, lambda or class body with the names it binds, in the order of the source."""

    node: ast.AST
    up: Scope | None
    binds: dict[str, list[Binding]] = field(default_factory=dict)
    returns: list[ast.Return] = field(default_factory=list)
    outer: set[str] = field(default_factory=set)  # declared global or nonlocal


@dataclass(slots=True, eq=False)
class Class:
    """A class of this file: its methods, and the attributes that it or its methods set."""

    node: ast.ClassDef
    scope: Scope
    methods: dict[str, FunctionNode] = field(default_factory=dict)
    attributes: dict[str, list[Binding]] = field(default_factory=dict)


class Index:
    """What one walk finds. All nodes get ``_up`` (their parent) and ``_scope`` as attributes."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope(tree, None)
        self.calls: list[ast.Call] = []
        self.methods: dict[str, list[ast.Call]] = defaultdict(list)  # by the last part of what is called
        self.attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        self.functions: list[FunctionNode] = []
        self.classes: list[Class] = []
        self.class_of: dict[ast.AST, Class] = {}
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.loops: list[ast.For | ast.AsyncFor | ast.While] = []
        self.withs: list[ast.With | ast.AsyncWith] = []
        self.tests: list[ast.If] = []
        self.assigns: list[ast.Assign | ast.AnnAssign | ast.AugAssign] = []
        self.comprehensions: list[ast.DictComp] = []
        self.generators: list[ast.ListComp | ast.SetComp | ast.GeneratorExp] = []
        self.dotted: dict[str, list[Binding]] = defaultdict(list)  # args.rank = …, by "args.rank"
        self.stars: list[str] = []  # modules of which everything is imported
        self._walk()

    def _walk(self) -> None:
        enter = _ENTER
        stack: list[tuple[ast.AST, ast.AST, Scope]] = [(self.tree, self.tree, self.module)]
        while stack:
            node, up, scope = stack.pop()
            node._up = up  # type: ignore[attr-defined]
            node._scope = scope  # type: ignore[attr-defined]
            kind = node.__class__
            handler = enter.get(kind)
            inner = scope
            if handler is not None:
                inner = handler(self, node, scope) or scope
            at = len(stack)
            for name in kind._fields:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for item in value:
                        if isinstance(item, ast.AST) and not isinstance(item, ast.cmpop):
                            stack.append((item, node, inner))
                elif isinstance(value, ast.AST) and not isinstance(value, _BARE):
                    stack.append((value, node, inner))
            if len(stack) - at > 1:
                stack[at:] = stack[: at - 1 : -1] if at else stack[::-1]
            if inner is not scope and not isinstance(node, ast.Module):
                self._outside(node, stack, at, scope)

    @staticmethod
    def _outside(node: ast.AST, stack: list[tuple[ast.AST, ast.AST, Scope]], at: int, scope: Scope) -> None:
        """Decorators, bases, defaults and annotations belong to the scope around a definition."""
        inner = set(map(id, node.body)) if isinstance(node.body, list) else {id(node.body)}  # type: ignore[attr-defined]
        for number in range(at, len(stack)):
            item, up, _ = stack[number]
            if id(item) not in inner and not isinstance(item, ast.arguments):
                stack[number] = (item, up, scope)

    def _bind(self, scope: Scope, binding: Binding, node: ast.AST) -> None:
        binding.line = getattr(node, "lineno", 0)
        binding.column = getattr(node, "col_offset", 0)
        if binding.name in scope.outer:
            scope = self.module
        scope.binds.setdefault(binding.name, []).append(binding)

    def _target(
        self,
        target: ast.expr,
        scope: Scope,
        how: str,
        node: ast.AST,
        value: ast.expr | None,
        path: tuple[int, ...],
    ) -> None:
        if isinstance(target, ast.Name):
            self._bind(scope, Binding(target.id, how, node, value, path), target)
        elif isinstance(target, ast.Tuple | ast.List):
            for at, part in enumerate(target.elts):
                self._target(part, scope, how, node, value, (*path, at))
        elif isinstance(target, ast.Starred):
            self._target(target.value, scope, "other", node, value, path)
        elif isinstance(target, ast.Attribute):
            binding = Binding(target.attr, how, node, value, path, "", target.lineno, target.col_offset)
            owner = self._owner(target, scope)
            if owner is not None:
                owner.attributes.setdefault(target.attr, []).append(binding)
            else:
                text = dotted_text(target)
                if text:
                    self.dotted[text].append(binding)

    def _owner(self, target: ast.Attribute, scope: Scope) -> Class | None:
        """The class whose attribute ``self.x`` is."""
        if not isinstance(target.value, ast.Name):
            return None
        at: Scope | None = scope
        while at is not None:
            if isinstance(at.node, ast.FunctionDef | ast.AsyncFunctionDef) and at.up is not None:
                owner = self.class_of.get(at.up.node)
                if owner is not None:
                    return owner if first_argument(at.node) == target.value.id else None
            at = at.up
        return None


def dotted_text(node: ast.AST) -> str:
    """``a.b.c`` for a chain of attributes on a name, else ""."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def first_argument(function: FunctionNode) -> str:
    """The name that stands for the object in a method; "" in a static one."""
    given = [*function.args.posonlyargs, *function.args.args]
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
    return given[0].arg if given and not static else ""


def _enter_function(index: Index, node: FunctionNode, scope: Scope) -> Scope:
    index.functions.append(node)
    index._bind(scope, Binding(node.name, "def", node), node)
    owner = index.class_of.get(scope.node)
    if owner is not None:
        owner.methods[node.name] = node
    return _enter_arguments(index, node, scope)


def _enter_arguments(index: Index, node: FunctionNode | ast.Lambda, scope: Scope) -> Scope:
    made = Scope(node, scope)
    index.scopes[node] = made
    args = node.args
    for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if one is not None:
            index._bind(made, Binding(one.arg, "param", one), one)
    return made


def _enter_class(index: Index, node: ast.ClassDef, scope: Scope) -> Scope:
    index._bind(scope, Binding(node.name, "class", node), node)
    made = Scope(node, scope)
    index.scopes[node] = made
    found = Class(node, made)
    index.classes.append(found)
    index.class_of[node] = found
    return made


def _enter_call(index: Index, node: ast.Call, scope: Scope) -> None:
    index.calls.append(node)
    func = node.func
    if isinstance(func, ast.Attribute):
        index.methods[func.attr].append(node)
    elif isinstance(func, ast.Name):
        index.methods[func.id].append(node)


def _enter_attribute(index: Index, node: ast.Attribute, scope: Scope) -> None:
    index.attributes[node.attr].append(node)


def _enter_assign(index: Index, node: ast.Assign, scope: Scope) -> None:
    index.assigns.append(node)
    for target in node.targets:
        index._target(target, scope, "assign", node, node.value, ())
    owner = index.class_of.get(scope.node)
    if owner is not None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                binding = Binding(target.id, "assign", node, node.value, (), "", node.lineno, node.col_offset)
                owner.attributes.setdefault(target.id, []).append(binding)


def _enter_annotated(index: Index, node: ast.AnnAssign, scope: Scope) -> None:
    index.assigns.append(node)
    if node.value is not None:
        index._target(node.target, scope, "assign", node, node.value, ())


def _enter_augmented(index: Index, node: ast.AugAssign, scope: Scope) -> None:
    index.assigns.append(node)
    index._target(node.target, scope, "aug", node, node.value, ())


def _enter_walrus(index: Index, node: ast.NamedExpr, scope: Scope) -> None:
    index._target(node.target, scope, "assign", node, node.value, ())


def _enter_loop(index: Index, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
    index.loops.append(node)
    index._target(node.target, scope, "for", node, node.iter, ())


def _enter_while(index: Index, node: ast.While, scope: Scope) -> None:
    index.loops.append(node)


def _enter_comprehension(index: Index, node: ast.comprehension, scope: Scope) -> None:
    index._target(node.target, scope, "for", node, node.iter, ())


def _enter_dict_comprehension(index: Index, node: ast.DictComp, scope: Scope) -> None:
    index.comprehensions.append(node)


def _enter_generator(index: Index, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> None:
    index.generators.append(node)


def _enter_with(index: Index, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
    index.withs.append(node)
    for item in node.items:
        if item.optional_vars is not None:
            index._target(item.optional_vars, scope, "with", node, item.context_expr, ())


def _enter_if(index: Index, node: ast.If, scope: Scope) -> None:
    index.tests.append(node)


def _enter_import(index: Index, node: ast.Import, scope: Scope) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        full = alias.name if alias.asname else name
        index._bind(scope, Binding(name, "import", node, imported=full), node)


def _enter_from(index: Index, node: ast.ImportFrom, scope: Scope) -> None:
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            index.stars.append(base)
            continue
        dot = "" if base.endswith(".") or not base else "."
        full = f"{base}{dot}{alias.name}"
        index._bind(scope, Binding(alias.asname or alias.name, "import", node, imported=full), node)


def _enter_return(index: Index, node: ast.Return, scope: Scope) -> None:
    scope.returns.append(node)


def _enter_outer(index: Index, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
    if isinstance(node, ast.Global):
        scope.outer.update(node.names)


def _enter_handler(index: Index, node: ast.ExceptHandler, scope: Scope) -> None:
    if node.name:
        index._bind(scope, Binding(node.name, "other", node), node)


_ENTER: dict[type, Callable[..., Scope | None]] = {
    ast.FunctionDef: _enter_function,
    ast.AsyncFunctionDef: _enter_function,
    ast.Lambda: _enter_arguments,
    ast.ClassDef: _enter_class,
    ast.Call: _enter_call,
    ast.Attribute: _enter_attribute,
    ast.Assign: _enter_assign,
    ast.AnnAssign: _enter_annotated,
    ast.AugAssign: _enter_augmented,
    ast.NamedExpr: _enter_walrus,
    ast.For: _enter_loop,
    ast.AsyncFor: _enter_loop,
    ast.While: _enter_while,
    ast.comprehension: _enter_comprehension,
    ast.DictComp: _enter_dict_comprehension,
    ast.ListComp: _enter_generator,
    ast.SetComp: _enter_generator,
    ast.GeneratorExp: _enter_generator,
    ast.With: _enter_with,
    ast.AsyncWith: _enter_with,
    ast.If: _enter_if,
    ast.Import: _enter_import,
    ast.ImportFrom: _enter_from,
    ast.Return: _enter_return,
    ast.Global: _enter_outer,
    ast.Nonlocal: _enter_outer,
    ast.ExceptHandler: _enter_handler,
}
