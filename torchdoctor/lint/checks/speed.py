"""Advice on what makes training slow, or measurements of it wrong."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.checks.loading import loaders_behind
from torchdoctor.lint.devices import on_cuda
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import Binding
from torchdoctor.lint.names import words
from torchdoctor.lint.training import runs_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_CUDNN = "torch.backends.cudnn"


class BenchmarkWithDeterministic(Check):
    id = "benchmark-with-deterministic"
    group = 2
    title = "cudnn.benchmark = True stands beside settings for determinism"
    why = """Benchmarking picks the algorithm that was fastest this time, which differs from run to run and
    between ranks: the results then differ in their last digits, although each algorithm is deterministic."""
    fix = ("For reproducible runs set torch.backends.cudnn.benchmark = False.",)
    words = ("benchmark",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        settings: list[ast.AST] = [*self._set(scene, "deterministic")]
        settings += [
            call
            for call in scene.calls("torch.use_deterministic_algorithms")
            if any(flow.is_true(one) for one in (*call.args[:1], flow.keyword(call, "mode")))
        ]
        for node in self._set(scene, "benchmark"):
            beside = [one for one in settings if not flow.exclusive(one, node)]
            later = [
                one for one in self._set(scene, "benchmark", on=False) if flow.start(one) > flow.start(node)
            ]
            if beside and not later:
                yield self.at(node, f"line {getattr(beside[0], 'lineno', 1)} asks for determinism", scene)

    def _set(self, scene: Scene, name: str, on: bool = True) -> Iterator[ast.AST]:
        for node in scene.index.assigns:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if any(
                    scene.name(one) == f"{_CUDNN}.{name}"
                    and isinstance(value, ast.Constant)
                    and value.value is on
                    for one, value in _pairs(target, node.value)
                ):
                    yield node


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.expr, ast.expr | None]]:
    """What an assignment gives to what: ``a, b = x, y`` part by part."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


_FRESH = frozenset(
    f"torch.{name}"
    for name in words("randn rand zeros ones tensor from_numpy as_tensor arange randint full empty")
)


class NonBlockingUnpinned(Check):
    id = "non-blocking-unpinned"
    group = 2
    title = "non_blocking=True has no effect on memory that is not pinned"
    why = """A copy can run beside Python only from page-locked memory. From any other the driver copies to a
    buffer of its own first, and the call waits for that."""
    fix = ("Give the loader pin_memory=True (or call tensor.pin_memory()).",)
    words = ("non_blocking",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("cuda", "to"):
            base = flow.receiver(call)
            if base is None or scene.called(call) or not flow.is_true(flow.keyword(call, "non_blocking")):
                continue
            says = self._unpinned(scene, base)
            if says:
                yield self.at(call, says, scene)

    def _unpinned(self, scene: Scene, base: ast.expr) -> str:
        values = scene.values(base)
        for value in values:
            if isinstance(value, Binding) and value.how == "for" and value.value is not None:
                loader = self._loader(scene, value.value)
                if loader is not None:
                    return f"the loader of line {loader.lineno} has no pin_memory=True"
        made = [one for one in values if isinstance(one, ast.Call) and scene.called(one) in _FRESH]
        if made and len(made) == len(values) and not any(self._pins(one) for one in made):
            return f"what line {made[0].lineno} makes is not pinned"
        return ""

    def _pins(self, call: ast.Call) -> bool:
        return flow.keyword(call, "pin_memory") is not None or flow.keyword(call, "device") is not None

    def _loader(self, scene: Scene, node: ast.expr) -> ast.Call | None:
        for loader in loaders_behind(scene, node):
            given = flow.argument(loader, 7, "pin_memory")
            if given is None or flow.is_false(given):
                return loader
        return None


_CLOCKS = frozenset(
    (
        "time.time",
        "time.perf_counter",
        "time.monotonic",
        "timeit.default_timer",
        "time.perf_counter_ns",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
    )
)
_WAITS = frozenset(
    ["synchronize", "item", "cpu", "numpy", "tolist", "elapsed_time", "record", "wait_event", "barrier"]
)


# torch.relu, torch.nn.functional.conv2d; not what waits or is no kernel: save, equal, torch.cuda.…
_COMPUTES = re.compile(
    r"torch\.(?:(?:nn\.functional|linalg|fft)\.)?(?!save|equal|allclose|is_|numel)[a-z]\w*"
)


class TimingWithoutSynchronize(Check):
    id = "timing-without-synchronize"
    group = 2
    title = "CUDA work is timed without waiting for it"
    why = """Kernels are started and run on; the clock is read when Python has queued them, not when they are
    done. The number is too small by any factor, and the next thing that waits is charged with it."""
    fix = (
        "Call torch.cuda.synchronize() before each reading of the clock.",
        "Or use torch.cuda.Event(enable_timing=True), or torch.utils.benchmark.",
    )
    words = ("time",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for node in self._differences(scene):
            begin = self._reading(scene, node.right)
            end = self._reading(scene, node.left)
            if begin is None or end is None or flow.named_function(begin) is not flow.named_function(end):
                continue
            root = flow.named_function(node) or scene.tree
            between = [
                step
                for step in scene.steps(root)
                if flow.start(begin) < flow.start(step.top) < flow.start(end)
            ]
            between += [
                step
                for step in scene.steps(root)
                if flow.start(step.top) == flow.start(end) and step.top is not end and step.call is not end
            ]
            if any(flow.method(step.call) in _WAITS for step in between):
                continue
            calls = (step.call for step in between if self._on_gpu(scene, step.call))
            products = (one for one in _products(scene, root) if begin.lineno < one.lineno < end.lineno)
            work: ast.expr | None = next(chain(calls, products), None)
            if work is not None:
                yield self.at(node, f"line {work.lineno} only starts its kernels", scene)

    def _differences(self, scene: Scene) -> list[ast.BinOp]:
        """The subtractions that have the reading of a clock on their right side."""
        found: dict[ast.BinOp, None] = {}
        names = [call for name in _CLOCKS for call in scene.by_name.get(name, ())]
        if not names:
            return []
        for root in {flow.named_function(call) or scene.tree for call in names}:
            for node in flow.walk(root):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                    found[node] = None
        return sorted(found, key=flow.start)

    def _reading(self, scene: Scene, node: ast.expr) -> ast.Call | None:
        values = scene.values(node)
        if len(values) == 1 and isinstance(values[0], ast.Call) and scene.called(values[0]) in _CLOCKS:
            return values[0]
        return None

    def _on_gpu(self, scene: Scene, call: ast.Call) -> bool:
        """Does it run something on a GPU: a model that was moved there, or a tensor made there?"""
        name = scene.called(call)
        given = any(_held_on_gpu(scene, one) for one in call.args)
        if name and (on_cuda(scene, call) or (given and _COMPUTES.fullmatch(name))):
            return True
        if name or not isinstance(call.func, ast.Name | ast.Attribute) or not call.args:
            return False
        if given and runs_model(scene, call.func):
            return True
        binds = scene.reaching(call.func)
        return any(
            one.value is not None
            and any(on_cuda(scene, made) for made in ast.walk(one.value) if isinstance(made, ast.Call))
            for one in binds
            if one.how == "assign"
        )


def _products(scene: Scene, root: ast.AST) -> Iterator[ast.BinOp]:
    """The matrix products of tensors on a GPU, ``a @ b``."""
    for node in flow.walk(root):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.MatMult)
            and (_held_on_gpu(scene, node.left) or _held_on_gpu(scene, node.right))
        ):
            yield node


def _held_on_gpu(scene: Scene, node: ast.expr) -> bool:
    """Is it a tensor that the expression, or an assignment of the name, puts on a GPU?"""
    binds = scene.reaching(node) if isinstance(node, ast.Name) else []
    made = [one.value if one.how == "assign" and not one.path else None for one in binds] or [node]
    return any(isinstance(one, ast.Call) and on_cuda(scene, one) for one in made)
