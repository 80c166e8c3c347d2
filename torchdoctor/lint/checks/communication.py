"""Values that come from other ranks or other streams."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import gradients_off
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import dotted_text
from torchdoctor.lint.training import backward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.index import FunctionNode
    from torchdoctor.lint.scene import Scene

_GATHERS = (
    "torch.distributed.all_gather",
    "torch.distributed.all_gather_into_tensor",
    "torch.distributed._all_gather_base",
)
_JOINS = frozenset(("torch.cat", "torch.concat", "torch.stack", "torch.vstack", "torch.concatenate"))


class GatherNoGrad(Check):
    id = "gather-no-grad"
    title = "A loss is computed from all_gather(), through which no gradient flows"
    why = """torch.distributed.all_gather writes into new tensors that have no history. Where the loss is
    computed from them (contrastive losses do), the model gets no gradient from them, not even from this
    rank's own part; training goes on with a part of the loss."""
    fix = (
        "Use torch.distributed.nn.functional.all_gather(x), which differentiates.",
        "Or put the own part back: parts[rank] = x before torch.cat(parts).",
    )
    words = ("all_gather",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(*_GATHERS):
            function = flow.named_function(call)
            if function is None or len(call.args) < 2 or gradients_off(scene, call) is not None:
                continue
            out, given = call.args[0], call.args[1]
            if not isinstance(out, ast.Name) or self._cut(scene, given) or self._own_back(function, out.id):
                continue
            if self._joined(scene, function, out.id, call) and self._differentiated(scene, function):
                yield self.at(call, f"no gradient reaches {ast.unparse(given)[:40]} through {out.id}", scene)

    def _cut(self, scene: Scene, given: ast.expr) -> bool:
        """Is what is gathered detached, or no value that has a gradient?"""
        words = flow.names_in(given)
        if words & {"detach", "data", "item", "long", "argmax", "labels", "targets", "target", "idx", "ids"}:
            return True
        for value in scene.values(given):
            if isinstance(value, ast.Call) and (
                flow.method(value) in ("detach", "argmax", "long", "int")
                or scene.called(value) in ("torch.tensor",)
            ):
                return True
        return isinstance(given, ast.Name) and any(
            isinstance(one.value, ast.Call) and flow.method(one.value) in ("detach", "long", "int")
            for one in scene.reaching(given)
        )

    def _own_back(self, function: FunctionNode, name: str) -> bool:
        """Is an element of the list assigned, or the whole made to carry gradients in another way?"""
        return any(
            isinstance(node, ast.Assign)
            and any(isinstance(one, ast.Subscript) and dotted_text(one.value) == name for one in node.targets)
            for node in flow.walk(function)
        )

    def _joined(self, scene: Scene, function: FunctionNode, name: str, call: ast.Call) -> bool:
        """Is the result used whole, as one tensor, and not put together with the own part?"""
        if flow.method(call) != "all_gather":
            return True
        for one in flow.calls_under(function):
            if (
                scene.called(one) in _JOINS
                and one.args
                and flow.start(one) > flow.start(call)
                and isinstance(one.args[0], ast.Name)
                and one.args[0].id == name
            ):
                return True
        return False

    def _differentiated(self, scene: Scene, function: FunctionNode) -> bool:
        """Does a loss come out of it: here, or in a caller that is not an evaluation?"""
        todo = [function]
        seen: set[FunctionNode] = set()
        while todo:
            one = todo.pop()
            if one in seen or len(seen) > 12:
                continue
            seen.add(one)
            if one.name == "forward" and self._in_function_class(scene, one):
                return False
            for made in flow.calls_under(one):
                name = scene.called(made)
                functional = name.startswith("torch.nn.functional.") and ("loss" in name or "entropy" in name)
                functional |= one.name == "forward" and name.endswith(".log_softmax")
                found = backward(scene, made)
                if (functional or found is not None) and gradients_off(scene, made) is None:
                    return True
            if not any(found.value is not None for found in scene.index.scopes[one].returns):
                continue
            todo += (
                caller
                for call in scene.callers(one)
                if gradients_off(scene, call) is None
                and not isinstance(flow.up(call), ast.Expr)
                and (caller := flow.named_function(call)) is not None
            )
        return False

    def _in_function_class(self, scene: Scene, function: FunctionNode) -> bool:
        around = flow.up(function)
        owner = scene.index.class_of.get(around) if isinstance(around, ast.ClassDef) else None
        return owner is not None and "torch.autograd.Function" in scene.bases(owner)


_WAITS = frozenset(["wait_stream", "wait_event", "synchronize", "wait", "record_stream", "query"])


class SideStreamNoWait(Check):
    id = "side-stream-no-wait"
    title = "Work on a side stream is used before it is done"
    why = """Streams run beside each other. What is read on the current stream may not be written yet, and its
    memory may be given away while the other stream still uses it: wrong numbers, at times, and never under
    CUDA_LAUNCH_BLOCKING=1."""
    fix = (
        "Before the first use: torch.cuda.current_stream().wait_stream(side).",
        "For tensors that cross over: tensor.record_stream(torch.cuda.current_stream()).",
    )
    words = ("Stream",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for node in scene.index.withs:
            if not any(self._side(scene, item.context_expr) for item in node.items):
                continue
            if any(
                flow.method(call) in _WAITS - {"wait", "record_stream", "query"}
                and not self._starts(scene, call)
                for call in flow.calls_under(node)
            ):
                continue
            names = {
                one.id
                for stmt in node.body
                for part in flow.walk(stmt)
                if isinstance(part, ast.Assign)
                for target in part.targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
            use = self._used(scene, node, names)
            if use is not None:
                yield self.at(
                    use, f"{use.id} is made on the stream of line {node.lineno}; nothing waits for it", scene
                )

    def _starts(self, scene: Scene, call: ast.Call) -> bool:
        """Is it the side stream that waits for the current one, as it should?"""
        return flow.method(call) == "wait_stream" and bool(call.args)

    def _side(self, scene: Scene, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and scene.called(node) in (
            "torch.cuda.stream",
            "torch.cuda.StreamContext",
        ):
            return bool(node.args) and scene.is_a(node.args[0], "stream")
        return scene.is_a(node, "stream")

    def _used(self, scene: Scene, node: ast.With | ast.AsyncWith, names: set[str]) -> ast.Name | None:
        """The first use behind the block, in its function, before anything waits."""
        root = flow.named_function(node) or scene.tree
        waits = [
            flow.start(call)
            for call in flow.calls_under(root)
            if flow.method(call) in _WAITS and flow.start(call) > flow.end(node)
        ]
        first = min(waits, default=(1 << 30, 0))
        uses = [
            one
            for one in flow.walk(root)
            if isinstance(one, ast.Name)
            and one.id in names
            and isinstance(one.ctx, ast.Load)
            and flow.end(node) < flow.start(one) < first
            and not isinstance(flow.up(one), ast.Return)
            and not self._on_a_stream(scene, one)
            and any(flow.inside(bind.node, node) for bind in scene.reaching(one))
            and not flow.exclusive(node, one)
        ]
        return min(uses, key=flow.start) if uses else None

    def _on_a_stream(self, scene: Scene, node: ast.AST) -> bool:
        return any(
            isinstance(parent, ast.With)
            and any("stream" in ast.unparse(item).lower() for item in parent.items)
            for _, parent in flow.above(node)
        )
