"""How nn.Module is subclassed and called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Edit, Finding
from torchdoctor.lint.index import dotted_text, first_argument
from torchdoctor.lint.layers import learns
from torchdoctor.lint.training import acts_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.index import Binding, Class, FunctionNode
    from torchdoctor.lint.scene import Scene

_CONTAINERS = frozenset(
    ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ParameterList",
     "torch.nn.ParameterDict")
)  # fmt: skip


def module_classes(scene: Scene) -> Iterator[Class]:
    """The classes of this file that surely are modules."""
    for owner in scene.index.classes:
        if any(base.startswith("torch.nn.") for base in scene.bases(owner)):
            yield owner


class ForwardCalled(Check):
    id = "forward-called"
    title = "forward() is called instead of the module"
    why = """model(x) runs forward and everything around it: forward hooks, and what DistributedDataParallel,
    FSDP, torch.compile, pruning and spectral norm hang there. model.forward(x) leaves all of it out: under
    DDP gradients are not averaged, and nothing says so."""
    fix = ("Call the module: model(x).",)
    words = (".forward(",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("forward"):
            base = flow.receiver(call)
            if base is None or not self._is_module(scene, base):
                continue
            text = ast.unparse(base)
            yield self.at(call, f"{text[:60]}(...) runs its hooks too", scene, _without(call))

    def _is_module(self, scene: Scene, base: ast.expr) -> bool:
        if isinstance(base, ast.Call) and flow.method(base) == "super":
            return False
        if isinstance(base, ast.Name):
            function = flow.named_function(base)
            in_class = function is not None and isinstance(flow.up(function), ast.ClassDef)
            if function is not None and in_class and base.id == first_argument(function):
                return False
            if scene.local_class(base) is not None:
                return False
        if scene.name(base):
            return False  # a class, or a thing of another file
        if "module" in scene.kinds(base):
            return True
        if not isinstance(base, ast.Name | ast.Attribute) or scene.kinds(base):
            return False
        return acts_as(scene, base, "module") and "optimizer" not in scene.kinds(base)


def _without(call: ast.Call) -> tuple[Edit, ...]:
    func = call.func
    assert isinstance(func, ast.Attribute)
    end = func.value
    if end.end_lineno != func.end_lineno or end.end_lineno is None or func.end_lineno is None:
        return ()
    if (func.end_col_offset or 0) - (end.end_col_offset or 0) != len(".forward"):
        return ()  # parentheses or blanks between
    return (Edit(end.end_lineno, end.end_col_offset or 0, func.end_lineno, func.end_col_offset or 0, ""),)


class SuperInitMissing(Check):
    id = "super-init-missing"
    title = "A module gets parts before nn.Module.__init__() has run"
    why = """nn.Module.__init__ makes the tables that parts and parameters are registered in. Assigned before
    it, or without it: AttributeError, cannot assign module before Module.__init__() call."""
    fix = ("Call super().__init__() first in __init__.",)
    cause = "module-init-missing"
    overlaps = "pylint W0231 (super-init-not-called) reports any class; this one what then fails in torch"
    words = ("Module", "nn.")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for owner in module_classes(scene):
            init = owner.methods.get("__init__")
            if init is None or not first_argument(init):
                continue
            ready = self._initialised(init)
            for name, binds in owner.attributes.items():
                for one in binds:
                    if name in ("training",) or not self._part(scene, one, init):
                        continue
                    if ready is None or (one.line, one.column) < flow.start(ready):
                        after = f", which comes on line {ready.lineno}" if ready is not None else ""
                        says = f"self.{name} is assigned before super().__init__(){after}"
                        yield self.at(one.node, says, scene)
                        break
                else:
                    continue
                break

    def _part(self, scene: Scene, one: Binding, init: FunctionNode) -> bool:
        if (
            flow.named_function(one.node) is not init
            or one.how != "assign"
            or not isinstance(one.value, ast.Call)
        ):
            return False
        kinds = scene.kinds(one.value)
        return "parameter" in kinds or "module" in kinds

    def _initialised(self, init: FunctionNode) -> ast.Call | None:
        """The first call that may be that of the base."""
        for call in flow.calls_under(init):
            if flow.method(call) in ("__init__", "_super_init", "super_init", "init_module"):
                return call
        return None


class UnregisteredSubmodule(Check):
    id = "unregistered-submodule"
    title = "Layers are kept in a plain list, tuple or dict"
    why = """nn.Module finds parts that are attributes, or in ModuleList, ModuleDict or Sequential. Those in a
    plain container are not in parameters(): the optimizer does not train them, to() does not move them,
    state_dict() does not save them."""
    fix = (
        "Use nn.ModuleList([...]) or nn.ModuleDict({...}); for parameters nn.ParameterList or ParameterDict.",
    )
    cause = "optimizer-empty"
    words = ("nn", "Module")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for owner in module_classes(scene):
            if _registers(owner):
                continue
            for name, binds in owner.attributes.items():
                for one in binds:
                    part = self._part(scene, one, name)
                    if part is not None and not self._wrapped(scene, owner, name, one):
                        yield self.at(
                            one.node, f"self.{name} holds {ast.unparse(part.func)[:50]}, unregistered", scene
                        )
                        break

    def _part(self, scene: Scene, one: Binding, name: str) -> ast.Call | None:
        """A layer that is made into the container the binding makes."""
        function = flow.named_function(one.node)
        if one.how != "assign" or one.path or function is None or one.value is None:
            return None
        value, text = one.value, f"self.{name}"
        if isinstance(value, ast.Name):
            made = [bind for bind in scene.reaching(value) if bind.how == "assign" and not bind.path]
            text = value.id
            if len(made) != 1 or made[0].value is None or len(scene.reaching(value)) != 1:
                return None
            value = made[0].value
            if self._used(scene, function, text):
                return None
        for part in _elements(value):
            if learns(scene, part):
                return part  # type: ignore[return-value]
        return _added(scene, function, text) if _is_container(scene, value) else None

    def _used(self, scene: Scene, function: FunctionNode, text: str) -> bool:
        """Does a local list go into a container that registers it?"""
        return any(
            (scene.called(call) in _CONTAINERS or scene.called(call).startswith("torch.nn."))
            and any(text in flow.names_in(one) for one in call.args)
            for call in flow.calls_under(function)
        )

    def _wrapped(self, scene: Scene, owner: Class, name: str, one: Binding) -> bool:
        """Is the attribute, or a part of it, registered in another way?"""
        for method in owner.methods.values():
            for call in flow.calls_under(method):
                given = {
                    dotted_text(part.value if isinstance(part, ast.Starred) else part) for part in call.args
                }
                if f"self.{name}" in given and (
                    scene.called(call) in _CONTAINERS or flow.method(call) in ("extend", "setattr", "update")
                ):
                    return True
                if scene.called(call) in _CONTAINERS and any(
                    name in flow.names_in(part) for part in call.args
                ):
                    return True
        return any(
            other is not one and isinstance(other.value, ast.Call) and "module" in scene.kinds(other.value)
            for other in owner.attributes[name]
        )


def _registers(owner: Class) -> bool:
    """Does the class register parts by name, or give out its parameters itself?"""
    if owner.methods.keys() & {"parameters", "named_parameters", "__setattr__", "_apply", "state_dict"}:
        return True
    names = ("add_module", "register_module", "register_parameter", "setattr", "__setattr__")
    return any(
        flow.method(call) in names for method in owner.methods.values() for call in flow.calls_under(method)
    )


def _elements(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.List | ast.Tuple):
        return value.elts
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return [value.elt]
    if isinstance(value, ast.Call) and flow.method(value) in ("list", "tuple") and len(value.args) == 1:
        return _elements(value.args[0])
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.DictComp):
        return [value.value]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Add):
        return [*_elements(value.left), *_elements(value.right)]
    return []


def _is_container(scene: Scene, value: ast.expr) -> bool:
    if isinstance(value, ast.List | ast.Dict):
        return True
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("list", "dict")
    )


def _added(scene: Scene, function: FunctionNode, text: str) -> ast.Call | None:
    """A layer that is appended to ``text``, or put under a key of it."""
    for node in flow.walk(function):
        given: ast.expr | None = None
        if isinstance(node, ast.Call) and flow.method(node) in ("append", "insert") and node.args:
            base = flow.receiver(node)
            given = node.args[-1] if base is not None and dotted_text(base) == text else None
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            given = node.value if dotted_text(node.targets[0].value) == text else None
        for one in _made(scene, function, given) if given is not None else ():
            if learns(scene, one):
                return one  # type: ignore[return-value]
    return None


def _made(scene: Scene, function: FunctionNode, given: ast.expr) -> list[ast.AST]:
    """What is put in, or made under the name that is; nothing where an attribute has that name too."""
    if not isinstance(given, ast.Name):
        return [given]
    kept = any(
        isinstance(one.value, ast.Name)
        and one.value.id == given.id
        and isinstance(one.targets[0], ast.Attribute)
        for one in flow.assigns(function)
    )
    return [] if kept else [one for one in scene.values(given) if isinstance(one, ast.AST)]
