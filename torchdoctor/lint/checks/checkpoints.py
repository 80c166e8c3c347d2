"""What is saved of a model, and what of it is loaded."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import Binding, dotted_text
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_TELLS = words(
    "print info warning warn debug log error write append add len missing_keys unexpected_keys "
    "format set difference"
)


class StateDictFiltered(Check):
    id = "state-dict-filtered"
    title = "A checkpoint is filtered by the names that the model has"
    why = """What does not fit is dropped silently. A prefix ("module.", "model.", "backbone.") or a
    renamed layer drops everything: the model keeps its random weights, and the run only looks as if it were
    pretrained."""
    fix = (
        "Load it whole with strict=False, and look at what it returns: missing_keys and unexpected_keys.",
        "Or count what is left: assert len(kept) == len(model.state_dict()).",
    )
    words = ("state_dict",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        loads = bool(scene.methods("load_state_dict"))
        kept: list[ast.DictComp | ast.Call] = [*scene.index.comprehensions, *scene.methods("dict")]
        for node in kept if loads else ():
            if self._keeps(scene, node) and not self._looked_at(scene, node) and self._loaded(scene, node):
                yield self.at(
                    node, "what the model does not have is dropped, and nothing tells how much", scene
                )
        for loop in scene.index.loops:
            if isinstance(loop, ast.For) and (loads or self._copies_file(scene, loop)):
                test = self._loop(scene, loop)
                if test is not None:
                    yield self.at(
                        test, "what the model does not have is dropped, and nothing tells how much", scene
                    )

    def _keeps(self, scene: Scene, node: ast.DictComp | ast.Call) -> bool:
        """``{k: v for k, v in ckpt.items() if k in own}`` or the same with ``dict()``, keys as they are."""
        if isinstance(node, ast.Call):
            made = node.args[0] if len(node.args) == 1 else None
            if not (isinstance(made, ast.GeneratorExp | ast.ListComp) and isinstance(made.elt, ast.Tuple)):
                return False
            generators, given = made.generators, made.elt.elts[0]
        else:
            generators, given = node.generators, node.key
        only = generators[0]
        target = only.target
        if len(generators) > 1 or not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
            return False
        key = target.elts[0]
        if (
            not isinstance(only.iter, ast.Call)
            or flow.method(only.iter) != "items"
            or not isinstance(key, ast.Name)
        ):
            return False
        if not (isinstance(given, ast.Name) and given.id == key.id):
            return False
        return any(self._membership(scene, test, key.id, ast.In) for test in only.ifs)

    def _membership(self, scene: Scene, test: ast.expr, key: str, op: type[ast.cmpop]) -> bool:
        for node in ast.walk(test):
            if (
                isinstance(node, ast.Compare)
                and isinstance(node.ops[0], op)
                and isinstance(node.left, ast.Name)
                and node.left.id == key
                and self._own_names(scene, node.comparators[0])
            ):
                return True
        return False

    def _own_names(self, scene: Scene, node: ast.expr) -> bool:
        """Is it the model's state, or the names in it?"""
        for value in scene.values(node):
            while isinstance(value, ast.Call) and flow.method(value) in (
                "keys",
                "set",
                "list",
                "dict",
                "items",
            ):
                base = flow.receiver(value) if flow.method(value) in ("keys", "items") else None
                inner = base if base is not None else value.args[0] if value.args else None
                if inner is None:
                    return False
                value = next(iter(scene.values(inner)), inner)
            if isinstance(value, ast.Call) and flow.method(value) == "state_dict":
                return True
        return False

    def _loaded(self, scene: Scene, node: ast.expr) -> bool:
        """Does what is left reach load_state_dict, and not with strict=True alone?"""
        holder = flow.up(node)
        names = set(_targets(holder))
        root = flow.named_function(node) or scene.tree
        for call in flow.calls_under(root):
            given = call.args[0] if call.args else None
            if given is None:
                continue
            direct = given is node or (isinstance(given, ast.Name) and given.id in names)
            if flow.method(call) == "update" and direct:
                return True
            if flow.method(call) == "load_state_dict" and direct:
                strict = flow.argument(call, 1, "strict")
                if strict is not None and not flow.is_true(strict):
                    return True
        return False

    def _looked_at(self, scene: Scene, node: ast.expr) -> bool:
        names = _targets(flow.up(node))
        root = flow.named_function(node) or scene.tree
        holder = flow.up(node)
        for call in flow.calls_under(root):
            if flow.inside(call, node) or flow.start(call) < flow.start(node):
                continue
            if flow.method(call) in _TELLS and any(names & flow.names_in(one) for one in call.args):
                return True
            if flow.method(call) == "load_state_dict" and not isinstance(flow.up(call), ast.Expr):
                return True
        return isinstance(holder, ast.Return)

    def _loop(self, scene: Scene, loop: ast.For) -> ast.If | None:
        """``for k, v in ckpt.items(): if k in own: …`` with nothing for the others."""
        key = self._key(loop)
        if not key:
            return None
        for test in loop.body:
            if not isinstance(test, ast.If) or test.orelse:
                continue
            skips = len(test.body) == 1 and isinstance(test.body[0], ast.Continue)
            op: type[ast.cmpop] = ast.NotIn if skips else ast.In
            if not self._membership(scene, test.test, key, op):
                continue
            if any(flow.method(call) in _TELLS for call in flow.calls_under(loop)):
                return None
            rest = test.body if not skips else loop.body
            if any(self._copies(one, key) for one in rest):
                return test
        return None

    def _copies_file(self, scene: Scene, loop: ast.For) -> bool:
        """Does it copy what torch.load gave, tensor by tensor?"""
        base = flow.receiver(loop.iter) if isinstance(loop.iter, ast.Call) else loop.iter
        made = [
            one
            for part in scene.values(base)
            for one in (scene.values(part.value) if isinstance(part, ast.Subscript) else (part,))
        ]
        copies = any(flow.method(call) == "copy_" for call in flow.calls_under(loop))
        return copies and any(scene.called(one) == "torch.load" for one in made if isinstance(one, ast.Call))

    def _key(self, loop: ast.For) -> str:
        """The name of the key: ``for k, v in ckpt.items()``, ``for k in ckpt``, ``for k in ckpt.keys()``."""
        target, items = loop.target, isinstance(loop.iter, ast.Call) and flow.method(loop.iter) == "items"
        if items and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[0]
        elif items or (isinstance(loop.iter, ast.Call) and flow.method(loop.iter) != "keys"):
            return ""
        return target.id if isinstance(target, ast.Name) else ""

    def _copies(self, node: ast.stmt, key: str) -> bool:
        """Does it put the value under the same name?"""
        for one in ast.walk(node):
            if not (
                isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Name) and one.slice.id == key
            ):
                continue
            if isinstance(one.ctx, ast.Store) or "copy_" in flow.names_in(flow.up(one)):
                return True
            around = flow.up(flow.up(one))
            if isinstance(around, ast.Attribute) and around.attr == "copy_":
                return True
        return False


def _targets(holder: ast.AST) -> set[str]:
    if isinstance(holder, ast.Assign):
        return {text for one in holder.targets if (text := dotted_text(one))}
    return set()


class SaveWrappedModel(Check):
    id = "save-wrapped-model"
    title = "The state of the DDP or DataParallel wrapper is saved"
    why = """The wrapper holds the model as .module, so every name in its state_dict() begins with "module.".
    Loaded into the bare model that is an error of missing and unexpected keys, or, with strict=False,
    nothing at all."""
    fix = ("Save the model inside: torch.save(model.module.state_dict(), path).",)
    cause = "checkpoint-module-prefix"
    words = ("DistributedDataParallel", "DataParallel")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("state_dict"):
            base = flow.receiver(call)
            if base is None or not self._wrapped(scene, base) or not self._saved(scene, call):
                continue
            if self._told_apart(call):
                continue
            if not self._loads_wrapped(scene, base):
                yield self.at(
                    call, f"{ast.unparse(base)[:60]} is wrapped: its names begin with module.", scene
                )

    def _wrapped(self, scene: Scene, base: ast.expr) -> bool:
        """Is it wrapped on every way, or on all but the one on which it stays as it was?"""
        values = [one for one in scene.values(base) if not isinstance(one, ast.Constant)]
        wrapped = [
            one
            for one in values
            if isinstance(one, ast.Call) and scene.values_of.wrapper(one) in ("ddp", "dp")
        ]
        if not wrapped or self._unwraps(scene, base):
            return False
        inner = {inside for one in wrapped for inside in scene.values(one.args[0])}
        return all(one in wrapped or one in inner for one in values)

    def _told_apart(self, call: ast.Call) -> bool:
        """Does a test around it ask whether the model is wrapped?"""
        words = {"module", "DataParallel", "DistributedDataParallel", "DDP", "distributed", "isinstance"}
        return any(
            isinstance(test, ast.If | ast.IfExp) and flow.names_in(test.test) & words
            for test, _ in flow.guards(call)
        )

    def _unwraps(self, scene: Scene, base: ast.expr) -> bool:
        """Is ``.module`` taken of it on some way?"""
        binds = scene.reaching(base) if isinstance(base, ast.Name | ast.Attribute) else []
        return any(one.value is not None and "module" in flow.names_in(one.value) for one in binds)

    def _saved(self, scene: Scene, call: ast.Call) -> bool:
        for node, parent in flow.above(call):
            if isinstance(parent, ast.Call) and scene.called(parent) == "torch.save":
                return node in parent.args[:1] or flow.keyword(parent, "obj") is node
            if isinstance(parent, ast.DictComp | ast.comprehension):
                return False
            if isinstance(parent, ast.Assign):
                names = {one.id for one in parent.targets if isinstance(one, ast.Name)}
                root = flow.named_function(call) or scene.tree
                return any(
                    scene.called(one) == "torch.save"
                    and one.args
                    and isinstance(one.args[0], ast.Name)
                    and one.args[0].id in names
                    for one in flow.calls_under(root)
                )
        return False

    def _loads_wrapped(self, scene: Scene, base: ast.expr) -> bool:
        """Does this file load into the wrapper too, or know of the prefix?"""
        if "module." in scene.text and ("'module.'" in scene.text or '"module.' in scene.text):
            return True
        mine = set(scene.values(base))
        return any(
            (other := flow.receiver(call)) is not None
            and set(scene.values(other)) & mine
            and self._wrapped(scene, other)
            for call in scene.methods("load_state_dict")
        )


_FOREIGN = words(
    "urlretrieve hf_hub_download snapshot_download cached_download download_url_to_file download "
    "cached_path load_file_from_url urlopen get_file download_url hf_hub_url cached_file"
)


class WeightsOnlyFalse(Check):
    id = "weights-only-false"
    title = "torch.load(weights_only=False) opens a file that comes from outside"
    why = """With weights_only=False the file is unpickled whole, and a pickle runs whatever its author put
    into it. A path from the command line, the environment or a download is somebody else's file."""
    fix = (
        "Use weights_only=True; allow the classes it needs: torch.serialization.add_safe_globals([...]).",
        "For files of others, safetensors holds nothing that could run.",
    )
    overlaps = "ruff S614 and torchfix TOR102 report any load that may run code; this one only foreign files"
    words = ("weights_only",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.load"):
            path = flow.argument(call, 0, "f")
            if path is None or not flow.is_false(flow.keyword(call, "weights_only")):
                continue
            where = self._outside(scene, path, 6)
            if where:
                yield self.at(call, f"the path comes from {where}", scene)

    def _outside(self, scene: Scene, node: ast.AST, depth: int) -> str:
        """Where a path comes from, when that is outside the program; "" otherwise."""
        if depth == 0:
            return ""
        if isinstance(node, ast.Constant):
            return self._downloaded(scene, node)
        if isinstance(node, ast.Name | ast.Attribute):
            written = self._written_to(scene, dotted_text(node))
            if written:
                return written
        for value in scene.values(node):
            found = self._origin(scene, value, depth)
            if found:
                return found
        return ""

    def _origin(self, scene: Scene, value: object, depth: int) -> str:
        if isinstance(value, ast.Constant):
            return self._downloaded(scene, value)
        if isinstance(value, ast.Subscript):
            name = scene.name(value.value)
            origins = [one for one in scene.values(value.value) if isinstance(one, ast.expr)]
            name = name or next(map(scene.name, origins), "")
            return {"sys.argv": "the command line", "os.environ": "the environment"}.get(name, "")
        if isinstance(value, ast.Attribute):
            made = scene.values(value.value)
            if any(
                isinstance(one, ast.Call) and flow.method(one) in ("parse_args", "parse_known_args")
                for one in made
            ):
                return "the command line"
            binds = [one for one in made if isinstance(one, Binding)]
            if any(
                isinstance(one.value, ast.Call) and flow.method(one.value) == "parse_known_args"
                for one in binds
            ):
                return "the command line"
            return ""
        if isinstance(value, Binding) and value.path == (0,) and isinstance(value.value, ast.Call):
            return "urlretrieve()" if flow.method(value.value) == "urlretrieve" else ""  # path, headers
        if isinstance(value, ast.Call):
            if flow.method(value) in _FOREIGN:
                return f"{flow.method(value)}()"
            if scene.called(value) in ("os.environ.get", "os.getenv"):
                return "the environment"
            return next((found for one in value.args if (found := self._outside(scene, one, depth - 1))), "")
        if isinstance(value, ast.BinOp):
            return self._outside(scene, value.left, depth - 1) or self._outside(scene, value.right, depth - 1)
        if isinstance(value, ast.JoinedStr):
            parts = [one.value for one in value.values if isinstance(one, ast.FormattedValue)]
            return next((found for one in parts if (found := self._outside(scene, one, depth - 1))), "")
        return ""

    def _written_to(self, scene: Scene, text: str) -> str:
        """The download that puts its file where a name says."""
        for call in scene.methods(*_FOREIGN):
            given = [*call.args[1:], *(one.value for one in call.keywords)]
            if text and any(dotted_text(one) == text for one in given):
                return f"{flow.method(call)}()"
        return ""

    def _downloaded(self, scene: Scene, node: ast.Constant) -> str:
        for call in scene.methods(*_FOREIGN):
            given = [*call.args[1:], *(one.value for one in call.keywords)]
            if any(isinstance(one, ast.Constant) and one.value == node.value for one in given):
                return f"{flow.method(call)}()"
        return ""
