"""One source file as the checks see it: names through imports, who is what, and what runs in which order."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import Binding, Class, Index, dotted_text, first_argument
from torchdoctor.lint.names import canonical
from torchdoctor.lint.reaching import reaching, reaching_attribute
from torchdoctor.lint.values import Values
from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from torchdoctor.lint.index import FunctionNode, Scope
    from torchdoctor.lint.values import Value

_MOST_STEPS = 4000  # calls that one function leads to; what is behind them is not looked at


@record(frozen=True, slots=True)
class Step(Record):
    """A call that running something makes. ``top`` is the call in that something which leads to it."""

    call: ast.Call
    top: ast.Call


class Scene:
    """A parsed source with everything that was asked of it, kept for the next check that asks."""

    def __init__(self, tree: ast.Module, text: str, path: str = "", *, notebook: bool = False) -> None:
        self.tree = tree
        self.text = text
        self.path = path
        self.notebook = notebook
        self.index = Index(tree)
        self._resolved: dict[ast.AST, str] = {}
        self._reaching: dict[ast.AST, list[Binding]] = {}
        self._flat: dict[ast.AST, tuple[ast.Call, ...]] = {}
        self._steps: dict[ast.AST, tuple[Step, ...]] = {}
        self._deeds: dict[ast.AST, dict[str, set[str]]] = {}
        self._targets: dict[ast.Call, FunctionNode | None] = {}
        self._canonical: dict[str, str] = {}
        self.values_of = Values(self)

    # names

    def name(self, node: ast.AST | None) -> str:
        """The dotted name that an expression stands for through imports and aliases; "" for anything else."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return ""
        known = self._resolved.get(node)
        if known is None:
            self._resolved[node] = ""  # for an alias of itself
            found = self._name(node)
            known = self._resolved[node] = self._home(found) if found else ""
        return known

    def _home(self, name: str) -> str:
        known = self._canonical.get(name)
        if known is None:
            known = self._canonical[name] = canonical(name)
        return known

    def _name(self, node: ast.Name | ast.Attribute) -> str:
        if isinstance(node, ast.Attribute):
            base = self.name(node.value)
            return f"{base}.{node.attr}" if base else ""
        binds = self.lookup(node)
        if not binds:
            return self._starred(node.id)
        brought = [one.imported for one in binds if one.how == "import"]
        if brought:
            return next((one for one in brought if one.startswith("torch")), brought[-1])
        if len(binds) == 1 and binds[0].how == "assign" and not binds[0].path:
            return self.name(binds[0].value)
        return ""

    def _starred(self, name: str) -> str:
        for module in self.index.stars:
            if module in ("torch.nn", "torch.optim", "torch.utils.data") and name[:1].isupper():
                return f"{module}.{name}"
            if module in ("torch.nn.functional", "torch.distributed") and name.islower():
                return f"{module}.{name}"
        return ""

    def called(self, call: ast.AST | None) -> str:
        """The dotted name of what is called."""
        return self.name(call.func) if isinstance(call, ast.Call) else ""

    def lookup(self, node: ast.Name) -> list[Binding]:
        """Everything that binds the name in the scope that it belongs to."""
        at: Scope | None = flow.scope(node)
        first = True
        while at is not None:
            if (first or not isinstance(at.node, ast.ClassDef)) and node.id in at.binds:
                return at.binds[node.id]
            if node.id in at.outer:
                return self.index.module.binds.get(node.id, [])
            first = False
            at = at.up
        return []

    @cached_property
    def by_name(self) -> dict[str, list[ast.Call]]:
        """All calls whose dotted name is known, by that name."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.index.calls:
            name = self.name(call.func)
            if name:
                found.setdefault(name, []).append(call)
        return found

    def calls(self, *names: str) -> list[ast.Call]:
        """All calls of the functions or classes with these dotted names, in the order of the source."""
        found = [call for name in names for call in self.by_name.get(name, ())]
        return sorted(found, key=flow.start) if len(names) > 1 else found

    def uses(self, name: str) -> list[ast.Name]:
        """Where a plain name is read."""
        return self._uses.get(name, [])

    @cached_property
    def _uses(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for one in ast.walk(self.tree):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                found.setdefault(one.id, []).append(one)
        return found

    def methods(self, *names: str) -> list[ast.Call]:
        """All calls of anything whose last part is one of these names."""
        return [call for name in names for call in self.index.methods.get(name, ())]

    # who is what

    def reaching(self, node: ast.Name | ast.Attribute) -> list[Binding]:
        """The bindings that may have given a name or an attribute the value that it has here."""
        known = self._reaching.get(node)
        if known is None:
            if isinstance(node, ast.Name):
                known = reaching(node, self.lookup(node))
            else:
                known = reaching_attribute(node, self.attribute_binds(node))
            self._reaching[node] = known
        return known

    def attribute_binds(self, node: ast.Attribute) -> list[Binding]:
        """Everything in this file that sets the attribute of that object."""
        owner = self.owner(node.value)
        if owner is not None:
            for one in self.lineage(owner):
                if node.attr in one.attributes:
                    return one.attributes[node.attr]
            return []
        return self.index.dotted.get(dotted_text(node), [])

    def owner(self, node: ast.expr) -> Class | None:
        """The class of this file that ``self``, or an object that is made in this file, is of."""
        if isinstance(node, ast.Name):
            binds = self.lookup(node)
            if binds and binds[0].how == "param" and len(binds) == 1:
                function = flow.named_function(binds[0].node)
                if function is not None and first_argument(function) == node.id:
                    around = flow.up(function)
                    if isinstance(around, ast.ClassDef):
                        return self.index.class_of.get(around)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            around_super = flow.class_around(node)
            made = self.index.class_of.get(around_super) if around_super is not None else None
            above = list(self.lineage(made))[1:] if made is not None else []
            return above[0] if above else None
        return self.values_of.instance(node)

    def local_class(self, node: ast.AST | None) -> Class | None:
        """The class of this file that a name stands for."""
        if isinstance(node, ast.Name):
            binds = self.lookup(node)
            for one in reversed(binds):
                if one.how == "class":
                    return self.index.class_of.get(one.node)
                if (
                    one.how == "assign"
                    and not one.path
                    and isinstance(one.value, ast.Name)
                    and len(binds) == 1
                ):
                    return None if one.value.id == node.id else self.local_class(one.value)
        return None

    def lineage(self, owner: Class) -> list[Class]:
        """A class of this file and those of its bases that are too, depth first."""
        found: list[Class] = []
        todo = [owner]
        while todo:
            one = todo.pop(0)
            if one in found:
                continue
            found.append(one)
            bases = [self.local_class(base) for base in one.node.bases]
            todo = [base for base in bases if base is not None] + todo
        return found

    def bases(self, owner: Class) -> set[str]:
        """The dotted names of all bases that are not of this file, through those that are."""
        return {
            self.name(base) or dotted_text(base) or "?"
            for one in self.lineage(owner)
            for base in one.node.bases
            if self.local_class(base) is None
        }

    def find_method(self, owner: Class, name: str) -> FunctionNode | None:
        return next((one.methods[name] for one in self.lineage(owner) if name in one.methods), None)

    def values(self, node: ast.AST | None) -> list[Value]:
        """What an expression may be, followed back to where it is made or comes from outside."""
        return self.values_of.of(node) if node is not None else []

    def kinds(self, node: ast.AST | None) -> frozenset[str]:
        """What an expression may be: ``optimizer``, ``ddp``, ``loader`` …; empty where nothing is known."""
        return self.values_of.kinds(node) if node is not None else frozenset()

    def is_a(self, node: ast.AST | None, kind: str) -> bool:
        """Is everything that the expression may be known, and of that kind?"""
        return node is not None and self.values_of.only(node, kind)

    def texts_on(self, node: ast.AST, text: str) -> set[str]:
        """The methods that the function around a node, or the module, calls on what is written ``text``."""
        root = flow.named_function(node) or self.tree
        known = self._deeds.get(root)
        if known is None:
            known = self._deeds[root] = {}
            for call in flow.calls_under(root):
                if isinstance(call.func, ast.Attribute):
                    known.setdefault(dotted_text(call.func.value), set()).add(call.func.attr)
        return known.get(text, set())

    # what runs

    def target(self, call: ast.Call) -> FunctionNode | None:
        """The function of this file that is called."""
        if call not in self._targets:
            self._targets[call] = None
            self._targets[call] = self._target(call.func)
        return self._targets[call]

    def _target(self, func: ast.expr) -> FunctionNode | None:
        if isinstance(func, ast.Attribute):
            owner = self.owner(func.value) or self.local_class(func.value)
            return self.find_method(owner, func.attr) if owner is not None else None
        return self.local_function(func)

    def local_function(self, node: ast.AST | None, depth: int = 4) -> FunctionNode | None:
        """The function of this file that a name, an alias or a partial of it stands for."""
        if isinstance(node, ast.Call) and self.called(node) == "functools.partial" and node.args:
            return self.local_function(node.args[0], depth - 1)
        if isinstance(node, ast.Attribute):
            return self._target(node) if self.owner(node.value) is not None else None
        if not isinstance(node, ast.Name) or depth == 0:
            return None
        for one in reversed(self.lookup(node)):
            if one.how == "def" and isinstance(one.node, ast.FunctionDef | ast.AsyncFunctionDef):
                return one.node
            if one.how == "assign" and not one.path:
                found = self.local_function(one.value, depth - 1)
                if found is not None:
                    return found
        return None

    @cached_property
    def _callers(self) -> dict[ast.AST, list[ast.Call]]:
        found: dict[ast.AST, list[ast.Call]] = {}
        for call in self.index.calls:
            target = self.target(call)
            if target is not None:
                found.setdefault(target, []).append(call)
        return found

    def callers(self, function: ast.AST | None) -> list[ast.Call]:
        """The calls of a function in this file."""
        return self._callers.get(function, []) if function is not None else []

    def flat(self, function: FunctionNode) -> tuple[ast.Call, ...]:
        """All calls that a function leads to, through functions of this file, in their order."""
        known = self._flat.get(function)
        if known is None:
            self._flat[function] = ()  # what calls itself is gone through once
            found: list[ast.Call] = []
            for call in flow.calls_under(function):
                for inner in self._inner(call):
                    found += self.flat(inner)
                found.append(call)
                if len(found) > _MOST_STEPS:
                    break
            known = self._flat[function] = tuple(found[:_MOST_STEPS])
        return known

    def _inner(self, call: ast.Call) -> list[FunctionNode]:
        target = self.target(call)
        found = [target] if target is not None else []
        if flow.method(call) == "step":  # a closure
            given = [self.local_function(one) for one in call.args if isinstance(one, ast.Name)]
            found += [one for one in given if one is not None]
        return found

    def steps(self, root: ast.AST) -> tuple[Step, ...]:
        """All calls that running ``root`` leads to, in order; see ``flat``."""
        known = self._steps.get(root)
        if known is None:
            found: list[Step] = []
            for call in flow.calls_under(root):
                found += (Step(one, call) for inner in self._inner(call) for one in self.flat(inner))
                found.append(Step(call, call))
                if len(found) > _MOST_STEPS:
                    break
            known = self._steps[root] = tuple(found)
        return known

    def guards(self, step: Step) -> frozenset[tuple[ast.AST, str]]:
        """The branches that a step stands in, in its own function and where it is called from."""
        own = flow.guards(step.call)
        return own if step.call is step.top else own | flow.guards(step.top)

    @cached_property
    def _lines(self) -> list[str]:
        return re.split(r"\r\n|\r|\n", self.text)

    def indent(self, line: int) -> str:
        """The blanks that a line begins with."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return text[: len(text) - len(text.lstrip(" \t"))]

    def function_name(self, node: ast.AST) -> str:
        """``Class.method`` or ``function`` around a node; "" at module level."""
        function = flow.named_function(node)
        if function is None:
            return ""
        around = flow.up(function)
        return f"{around.name}.{function.name}" if isinstance(around, ast.ClassDef) else function.name
