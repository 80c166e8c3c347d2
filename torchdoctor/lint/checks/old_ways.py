"""Advice: ways of torch that newer ones replace."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.constants import constant, given
from torchdoctor.lint.finding import Check, Edit, Finding
from torchdoctor.lint.graph import leaf
from torchdoctor.lint.training import acts_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_LEGACY = re.compile(r"torch\.(?:cuda\.)?(?:Float|Double|Half|BFloat16|Byte|Char|Short|Int|Long|Bool)?Tensor")


class LegacyTensorConstructor(Check):
    id = "legacy-tensor-constructor"
    group = 2
    title = "A tensor is made by its old constructor"
    why = """torch.Tensor(5) is five uninitialised numbers, torch.Tensor([5]) one number, and either is
    float32 whatever it is given: whole numbers and doubles change their type in silence.
    torch.cuda.FloatTensor copies through the current device."""
    fix = (
        "torch.tensor(data, dtype=..., device=...) for values, torch.from_numpy(array) without a copy.",
        "torch.empty(sizes) or torch.zeros(sizes) for sizes.",
    )
    words = ("Tensor",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for name, calls in scene.by_name.items():
            if _LEGACY.fullmatch(name):
                for call in calls:
                    if call.args:
                        plain = name.removeprefix("torch.")
                        yield self.at(call, f"{plain} takes sizes and values alike", scene)


class DataAttribute(Check):
    id = "data-attribute"
    group = 2
    title = ".data goes past autograd"
    why = """A change through .data is not recorded and not seen by autograd's version counter: a backward
    pass that needs the old values silently uses the new ones. detach() shares memory too, and notices."""
    fix = (
        "To read without a graph: tensor.detach().",
        "To change a parameter: `with torch.no_grad(): parameter.add_(...)`.",
    )
    words = (".data",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for node in scene.index.attributes.get("data", ()):
            if _changed_in_place(node) or self._tensor(scene, node.value):
                yield self.at(node, f"{ast.unparse(node.value)[:50]}.data", scene)

    def _tensor(self, scene: Scene, base: ast.expr) -> bool:
        if isinstance(base, ast.Attribute):
            if base.attr in ("grad", "weight", "bias"):
                return True
            return any(leaf(scene, one) for one in scene.values(base))
        if not isinstance(base, ast.Name):
            return False
        for one in scene.reaching(base):
            value: ast.AST | None = one.value if one.how == "for" else None
            if isinstance(value, ast.Call) and flow.method(value) == "zip" and one.path:
                value = value.args[one.path[0]] if one.path[0] < len(value.args) else None
            if isinstance(value, ast.Call) and flow.method(value) in ("parameters", "named_parameters"):
                return True
        return any(leaf(scene, one) or self._output(scene, one) for one in scene.values(base))

    def _output(self, scene: Scene, value: object) -> bool:
        """Is it what a model, or a loss, gave?"""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name | ast.Attribute):
            return False
        kinds = scene.kinds(value.func)
        if kinds:
            return "module" in kinds
        name = scene.called(value)
        if name:
            return name.startswith("torch.nn.functional.")
        return (
            isinstance(value.func, ast.Name)
            and not scene.lookup(value.func)
            and value.func.id in ("net", "model")
        )


def _changed_in_place(node: ast.Attribute) -> bool:
    """``x.data.copy_(…)``: only tensors have such methods."""
    method = flow.up(node)
    return (
        isinstance(method, ast.Attribute)
        and isinstance(flow.up(method), ast.Call)
        and re.fullmatch(r"[a-z]\w*[a-z]_", method.attr) is not None
    )


class VariableVolatile(Check):
    id = "variable-volatile"
    group = 2
    title = "Variable and volatile are of torch 0.3"
    why = """Since torch 0.4 a Variable is a tensor: the wrapper does nothing, and volatile is ignored, so
    that evaluation which relied on it records graphs and runs out of memory."""
    fix = (
        "Drop Variable(...); give requires_grad=True to the tensor where it is meant.",
        "Instead of volatile=True: `with torch.no_grad():`.",
    )
    words = ("Variable", "volatile")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.autograd.Variable"):
            old = flow.keyword(call, "volatile") is not None
            yield self.at(call, "volatile= is ignored" if old else "the wrapper does nothing", scene)
        for node in scene.index.attributes.get("volatile", ()):
            if isinstance(node.ctx, ast.Store) and not scene.name(node):
                yield self.at(node, "volatile is ignored", scene)


class SchedulerGetLr(Check):
    id = "scheduler-get-lr"
    group = 2
    title = "get_lr() is not the learning rate in use"
    why = """get_lr() computes the next value and is meant for step() itself; called from outside it is wrong
    for several schedules (StepLR applies its factor twice) and warns."""
    fix = ("Use scheduler.get_last_lr(), or optimizer.param_groups[0]['lr'].",)
    words = ("get_lr",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("get_lr"):
            base = flow.receiver(call)
            function = flow.named_function(call)
            if function is not None and function.name == "get_lr":
                continue  # it hands the question on
            if base is None or call.args or self._own(base):
                continue
            if acts_as(scene, base, "scheduler"):
                func = call.func
                edit = Edit(
                    func.end_lineno or 0,
                    (func.end_col_offset or 0) - len("get_lr"),
                    func.end_lineno or 0,
                    func.end_col_offset or 0,
                    "get_last_lr",
                )
                yield self.at(call, "get_last_lr() is what step() set", scene, (edit,))

    def _own(self, base: ast.expr) -> bool:
        if isinstance(base, ast.Call):
            return flow.method(base) == "super"
        return isinstance(base, ast.Name) and base.id == "self"


class BackwardHookLegacy(Check):
    id = "backward-hook-legacy"
    group = 2
    title = "register_backward_hook() sees the gradients of the last operation only"
    why = """On a module of several operations its grad_input is that of the last one, not that of the
    module's input. It is deprecated, and fails with checkpointing and torch.compile."""
    fix = ("Use register_full_backward_hook(hook).",)
    words = ("register_backward_hook",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.methods("register_backward_hook"):
            if flow.receiver(call) is not None and "def register_backward_hook" not in scene.text:
                yield self.at(call, "its grad_input may belong to another operation", scene)


class FindUnusedAlways(Check):
    id = "find-unused-always"
    group = 2
    title = "find_unused_parameters=True costs a pass over the graph each step"
    why = """After every forward pass DDP walks the whole graph to find parameters without a gradient. Where
    all of them get one that is wasted; whether some do not cannot be seen in the source."""
    fix = (
        "Leave it out, and see whether the run fails (torchdoctor ddp tells without a process group).",
        "Where the graph is the same in each step: static_graph=True.",
    )
    words = ("find_unused_parameters",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.expr] = set()
        for call in scene.index.calls:
            value = given(scene, call, len(call.args), "find_unused_parameters")
            if value is not None and value not in told and constant(scene, value) is True:
                told.add(value)
                yield self.at(call, "it is on for every step", scene)


class DataparallelNewCode(Check):
    id = "dataparallel-new-code"
    group = 2
    title = "nn.DataParallel uses one process for all GPUs"
    why = """It copies the model to every GPU in each forward pass, gathers all outputs on the first one, and
    its threads share one Python lock. DistributedDataParallel is faster already on one node."""
    fix = (
        "torchrun --nproc-per-node=N train.py, with DistributedDataParallel(model, device_ids=[local_rank]).",
    )
    words = ("DataParallel",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.nn.DataParallel"):
            yield self.at(call, "one process drives all GPUs", scene)


class HorovodNoBroadcast(Check):
    id = "horovod-no-broadcast"
    group = 2
    title = "Horovod's ranks start from different states"
    why = """Horovod averages gradients, not parameters: ranks that begin with different weights or optimizer
    state stay different for good. Rank 0 must send both to the others once."""
    fix = (
        "hvd.broadcast_parameters(model.state_dict(), root_rank=0) and "
        "hvd.broadcast_optimizer_state(optimizer, root_rank=0), before training.",
    )
    words = ("horovod",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.methods("TorchState", "broadcast_object") or "hvd.elastic" in scene.text:
            return
        missing = [
            name for name in ("broadcast_parameters", "broadcast_optimizer_state") if not scene.methods(name)
        ]
        if missing:
            for call in scene.calls("horovod.torch.DistributedOptimizer"):
                yield self.at(call, f"{' and '.join(missing)} never called", scene)
