"""What an expression may be: followed through names, attributes, wrappers and functions of the same file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.index import Binding, Class
from torchdoctor.lint.kinds import annotated, made_by, wraps
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from torchdoctor.lint.index import FunctionNode
    from torchdoctor.lint.questions import Questions

# Where an expression comes from: an expression that says no more, or what binds a name from outside
Value = ast.expr | Binding

_DEPTH = 14
_NESTED = 8  # questions that a question leads to: each takes its share of the stack
_MOST = 24  # origins of one expression; more say nothing
# methods that give back what they are called on, or the same thing elsewhere
SAME = words(
    "to cuda cpu eval train half float double bfloat16 requires_grad_ apply share_memory "
    "contiguous compile to_empty xpu npu type"
)
# functions that give back their first argument, prepared
_PREPARED = words(
    "torch.compile torch.jit.script torch.nn.SyncBatchNorm.convert_sync_batchnorm "
    "torch.distributed.fsdp.fully_shard tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.trange "
    "rich.progress.track torch.nn.utils.weight_norm torch.nn.utils.spectral_norm "
    "torch.nn.utils.parametrizations.spectral_norm"
)
_MANAGERS = ("prepare", "setup", "setup_dataloaders", "prepare_data_loader", "prepare_model", "initialize")


class Values:
    """Origins and kinds of the expressions of one source, each worked out once."""

    def __init__(self, scene: Questions) -> None:
        self._scene = scene
        self._nested = 0
        self._known: dict[ast.AST, list[Value]] = {}
        self._kinds: dict[ast.AST, frozenset[str]] = {}
        self._instances: dict[ast.AST, Class | None] = {}

    def of(self, node: ast.expr | ast.AST) -> list[Value]:
        """Where the expression may come from, at most a few. Empty for what leads
        back to itself alone."""
        known = self._known.get(node)
        if known is None:
            if self._nested >= _NESTED:
                return []
            self._known[node] = []  # what leads back to itself says nothing of itself
            self._nested += 1
            try:
                known = self._known[node] = self._follow(node, (), (), _DEPTH)[:_MOST]
            finally:
                self._nested -= 1
        return known

    def _follow(
        self, node: ast.AST, path: tuple[int, ...], seen: tuple[object, ...], depth: int
    ) -> list[Value]:
        if depth <= 0 or (node, path) in seen:
            return []
        seen = (*seen, (node, path))
        found: list[Value] = []
        if isinstance(node, ast.Name | ast.Attribute):
            for one in self._origins(node):
                found += self._bound(one, path, seen, depth)
                if len(found) > _MOST:
                    break
        elif isinstance(node, ast.IfExp):
            found = self._follow(node.body, path, seen, depth) + self._follow(node.orelse, path, seen, depth)
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                found += self._follow(part, path, seen, depth)
        elif isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self._follow(node.value, path, seen, depth)
        elif isinstance(node, ast.Tuple | ast.List) and path:
            if path[0] < len(node.elts):
                return self._follow(node.elts[path[0]], path[1:], seen, depth)
        elif isinstance(node, ast.Call):
            return self._call(node, path, seen, depth)
        elif isinstance(node, ast.Subscript):
            return self._subscript(node, path, seen, depth)
        if not found and isinstance(node, ast.expr):
            return [node] if not path else [Binding("", "other", node, node, path)]
        return found

    def _origins(self, node: ast.Name | ast.Attribute) -> list[Binding]:
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "module"
            and not self._scene.attribute_binds(node)
        ):
            inner = [
                one.args[0] for one in self.of(node.value) if isinstance(one, ast.Call) and self.wrapper(one)
            ]
            return [Binding("module", "assign", one, one) for one in inner]
        return [one for one in self._scene.reaching(node) if one.how != "aug"]

    def _bound(
        self, one: Binding, path: tuple[int, ...], seen: tuple[object, ...], depth: int
    ) -> list[Value]:
        if one.how == "assign" and one.value is not None:
            return self._follow(one.value, one.path + path, seen, depth - 1)
        if one.how == "with" and one.value is not None and not one.path and not path:
            return self._follow(one.value, (), seen, depth - 1)
        if one.how == "param":
            return self._given(one, path, seen, depth)
        if one.how == "for" and isinstance(one.value, ast.Tuple | ast.List):
            found: list[Value] = []
            for part in one.value.elts:
                found += self._follow(part, one.path + path, seen, depth - 1)
            return found
        return [one]

    def _given(
        self, one: Binding, path: tuple[int, ...], seen: tuple[object, ...], depth: int
    ) -> list[Value]:
        """A parameter: what the calls in this file give, else the parameter itself."""
        function = flow.up(flow.up(one.node))
        given = self.arguments(function, one.name)
        found: list[Value] = []
        for value in given:
            found += self._follow(value, path, seen, depth - 2)
        if not given:
            default = default_of(function, one.name)
            if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
                found += self._follow(default, path, seen, depth - 2)
            found.append(one)
        return found

    def arguments(self, function: ast.AST, name: str) -> list[ast.expr]:
        """What the calls of a function of this file give for one of its parameters."""
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        bound = isinstance(flow.up(function), ast.ClassDef)
        found: list[ast.expr] = []
        calls = self._scene.callers(function)
        if bound and function.name == "__init__":
            around = self._scene.index.class_of.get(flow.up(function))
            calls = self._makings.get(around, []) if around is not None else []
        for call in calls[:8]:
            at = names.index(name) if name in names else len(names)
            value = flow.argument(call, at - bound if at >= bound else len(call.args), name)
            if value is not None:
                found.append(value)
        return found

    def given(self, call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
        """What one call gives for a parameter of a function of this file."""
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        bound = isinstance(flow.up(function), ast.ClassDef)
        at = names.index(name) - bound if name in names else len(call.args)
        return flow.argument(call, max(at, 0), name)

    @property
    def _makings(self) -> dict[Class, list[ast.Call]]:
        """The calls that make objects of the classes of this file."""
        made = getattr(self, "_made", None)
        if made is None:
            made = {}
            for call in self._scene.index.calls:
                if isinstance(call.func, ast.Name):
                    owner = self._scene.local_class(call.func)
                    if owner is not None:
                        made.setdefault(owner, []).append(call)
            self._made = made
        return made

    def _call(
        self, node: ast.Call, path: tuple[int, ...], seen: tuple[object, ...], depth: int
    ) -> list[Value]:
        base = flow.receiver(node)
        name = self._scene.called(node)
        if base is not None and not name and flow.method(node) in SAME and not path:
            return self._follow(base, (), seen, depth - 1)
        if name in _PREPARED and node.args:
            return self._follow(node.args[0], path, seen, depth - 1)
        if flow.method(node) in _MANAGERS and base is not None and node.args and not flow.spread(node):
            at = path[0] if path else 0
            if at < len(node.args) and (path or len(node.args) == 1):
                return self._follow(node.args[at], path[1:], seen, depth - 1)
        target = self._scene.target(node)
        if target is not None:
            found: list[Value] = []
            for one in self._scene.index.scopes[target].returns:
                if one.value is not None:
                    found += self._follow(one.value, path, seen, depth - 2)
            if found:
                return found
        return [node] if not path else [Binding("", "other", node, node, path)]

    def _subscript(
        self, node: ast.Subscript, path: tuple[int, ...], seen: tuple[object, ...], depth: int
    ) -> list[Value]:
        at = node.slice
        if isinstance(at, ast.Constant) and isinstance(at.value, int) and at.value >= 0:
            found = self._follow(node.value, (at.value, *path), seen, depth - 1)
            if found and not any(isinstance(one, Binding) and one.how == "other" for one in found):
                return found
        if isinstance(at, ast.Constant) and isinstance(at.value, str):
            for one in self._follow(node.value, (), seen, depth - 1):
                if isinstance(one, ast.Dict):
                    for key, value in zip(one.keys, one.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value == at.value:
                            return self._follow(value, path, seen, depth - 1)
        return [node] if not path else [Binding("", "other", node, node, path)]

    # kinds

    def wrapper(self, call: ast.Call) -> str:
        """``ddp``, ``dp`` or ``fsdp`` for a call that wraps its first argument so, else ""."""
        return wraps(self._scene.called(call)) if call.args else ""

    def kinds(self, node: ast.AST) -> frozenset[str]:
        """The kinds of all that the expression may be."""
        known = self._kinds.get(node)
        if known is None:
            self._kinds[node] = frozenset()
            known = self._kinds[node] = frozenset().union(*(self.kind(one) for one in self.of(node)))
        return known

    def only(self, node: ast.AST, kind: str) -> bool:
        """Is each origin of the expression of the kind? None counts for nothing."""
        origins = [one for one in self.of(node) if not (isinstance(one, ast.Constant) and one.value is None)]
        return bool(origins) and all(kind in self.kind(one) for one in origins)

    def kind(self, value: Value) -> frozenset[str]:
        """The kinds of one origin."""
        if isinstance(value, Binding):
            if value.how == "for" and value.value is not None:
                return self._element(value)
            if isinstance(value.node, ast.arg) and value.node.annotation is not None:
                owner = self._scene.local_class(value.node.annotation)
                if owner is not None:
                    return self._class_kinds(owner)
                return annotated(self._scene, value.node.annotation)
            return frozenset()
        if not isinstance(value, ast.Call):
            return frozenset()
        owner = self._scene.local_class(value.func)
        if owner is not None:
            return self._class_kinds(owner)
        return made_by(self._scene, value)

    def _element(self, one: Binding) -> frozenset[str]:
        """The kinds of what a loop goes through: the parts of a ModuleList, or of a model."""
        assert one.value is not None
        if isinstance(one.value, ast.Call) and not one.value.args:
            method, path = flow.method(one.value), one.path
            if (method in ("modules", "children") and not path) or (
                method in ("named_modules", "named_children") and path == (1,)
            ):
                return frozenset({"module"})
        made = self.of(one.value) if not one.path else []
        if made and all(isinstance(part, ast.Call) and self._scene.called(part) in _LISTS for part in made):
            return frozenset({"module"})
        return frozenset()

    def _class_kinds(self, owner: Class) -> frozenset[str]:
        found: set[str] = set()
        for base in self._scene.bases(owner):
            found |= _BASES.get(base, set())
            if base.startswith("torch.nn.") and base.rpartition(".")[2][:1].isupper():
                found.add("module")
        return frozenset(found)

    def instance(self, node: ast.AST) -> Class | None:
        """The one class of this file that an expression is an object of, where that is sure."""
        if node in self._instances:
            return self._instances[node]
        self._instances[node] = None
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            owners = {
                self._scene.local_class(one.func) if isinstance(one, ast.Call) else None
                for one in self.of(node)
                if not (isinstance(one, ast.Constant) and one.value is None)
            }
            if len(owners) == 1:
                self._instances[node] = owners.pop()
        return self._instances[node]


_LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_BASES = {
    "torch.nn.Module": {"module"},
    "torch.utils.data.Dataset": {"dataset"},
    "torch.utils.data.IterableDataset": {"dataset", "iterable"},
    "torch.optim.Optimizer": {"optimizer"},
    "torch.utils.data.Sampler": {"sampler"},
    "torch.utils.data.DistributedSampler": {"sampler", "distributed-sampler"},
    "torch.utils.data.DataLoader": {"loader"},
    "torchvision.datasets.ImageFolder": {"dataset"},
    "torch.nn.parallel.DistributedDataParallel": {"module", "ddp"},
    "torch.nn.DataParallel": {"module", "dp"},
    "lightning.LightningModule": {"module", "lightning"},
    "transformers.PreTrainedModel": {"module"},
    "timm.models.VisionTransformer": {"module"},
}


def default_of(function: ast.AST, name: str) -> ast.expr | None:
    """The default of a parameter."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return None
    args = function.args
    names = [*args.posonlyargs, *args.args]
    for one, default in zip(names[len(names) - len(args.defaults) :], args.defaults, strict=True):
        if one.arg == name:
            return default
    for one, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if one.arg == name:
            return value
    return None
