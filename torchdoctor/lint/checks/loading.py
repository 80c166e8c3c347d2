"""Samplers and loaders that give other batches than one thinks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.constants import constant, given, number
from torchdoctor.lint.finding import Check, Finding, inserting
from torchdoctor.lint.index import Binding, dotted_text
from torchdoctor.lint.training import iterations
from torchdoctor.model import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.finding import Edit
    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene

LOADER = "torch.utils.data.DataLoader"
_SAMPLER = "torch.utils.data.DistributedSampler"


class SamplerSetEpoch(Check):
    id = "sampler-set-epoch"
    title = "The epoch of a shuffling DistributedSampler is never set"
    why = """DistributedSampler shuffles with seed + epoch. Without set_epoch() that is one and the same order
    in every epoch: the model sees the same batches again and again, and each rank the same part of the
    data. Nothing fails."""
    fix = (
        "Call sampler.set_epoch(epoch) at the start of each epoch, before the loader is iterated over.",
        "Where no shuffling is wanted, say so: DistributedSampler(..., shuffle=False).",
    )
    words = ("DistributedSampler",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.methods("set_epoch"):
            return
        for call in scene.calls(_SAMPLER):
            shuffles = constant(scene, flow.argument(call, 3, "shuffle"))
            if flow.spread(call) or shuffles is False:
                continue
            for loader in scene.calls(LOADER):
                order = flow.argument(loader, 3, "sampler")
                if order is None or call not in scene.values(order):
                    continue
                epoch = _epoch_loop(scene, loader, said=shuffles is True)
                if epoch is not None:
                    says = f"line {epoch.lineno} goes through its loader again and again, in one order"
                    yield self.at(call, says, scene, _set_epoch(scene, call, loader, epoch))
                    break


def _epoch_loop(scene: Scene, loader: ast.Call, *, said: bool) -> Loop | None:
    """A loop that trains on a loader several times, or one ``said`` to shuffle: around the loop over it, here
    or in the caller."""
    for loop in scene.index.loops:
        if isinstance(loop, ast.While) or not _goes_through(scene, loop.iter, loader):
            continue
        if not said and not any(flow.method(step.call) in ("backward", "step") for step in scene.steps(loop)):
            continue
        around = [one for one in iterations(scene, loop) if not _goes_through_loop(scene, one.loop, loader)]
        if around:
            return around[0].loop
    return None


def _goes_through_loop(scene: Scene, loop: Loop, loader: ast.Call) -> bool:
    return not isinstance(loop, ast.While) and _goes_through(scene, loop.iter, loader)


def _goes_through(scene: Scene, node: ast.expr, loader: ast.Call, depth: int = 4) -> bool:
    values = scene.values(node)
    if loader in values:
        return True
    if depth and isinstance(node, ast.Call):
        return any(_goes_through(scene, one, loader, depth - 1) for one in node.args)
    return bool(depth) and any(
        isinstance(one, ast.Call) and _goes_through(scene, one, loader, depth - 1)
        for one in values
        if isinstance(node, ast.Name)
    )


def _set_epoch(scene: Scene, call: ast.Call, loader: ast.Call, epoch: Loop) -> tuple[Edit, ...]:
    """The call at the head of the epoch loop, where sampler or loader, and epoch, have names there."""
    if not isinstance(epoch, ast.For) or not isinstance(epoch.target, ast.Name):
        return ()
    text = _called_there(scene, call, epoch)
    if not text and flow.inside(call, loader):
        text = _called_there(scene, loader, epoch)
        text = f"{text}.sampler" if text else ""
    first = epoch.body[0]
    if not text or first.lineno == epoch.lineno or isinstance(first, ast.FunctionDef | ast.ClassDef):
        return ()
    line = f"{text}.set_epoch({epoch.target.id})\n{scene.indent(first.lineno)}"
    return (inserting(first.lineno, first.col_offset, line),)


def _called_there(scene: Scene, made: ast.Call, epoch: Loop) -> str:
    """The name that stands for what ``made`` makes, and nothing else, in the epoch loop; "" for none."""
    holder = flow.up(made)
    if not (isinstance(holder, ast.Assign) and len(holder.targets) == 1):
        return ""
    target = holder.targets[0]
    if isinstance(target, ast.Attribute):
        same = flow.class_around(holder) is flow.class_around(epoch) is not None
        alone = same and len(scene.attribute_binds(target)) == 1
        return dotted_text(target) if alone and dotted_text(target).startswith("self.") else ""
    visible = flow.named_function(holder) in (flow.named_function(epoch), None)
    if not isinstance(target, ast.Name) or not visible or flow.guards(holder) - flow.guards(epoch):
        return ""
    return target.id if len(scene.lookup(target)) == 1 else ""


class LoaderShuffleAndSampler(Check):
    id = "loader-shuffle-and-sampler"
    title = "A DataLoader is given shuffle=True and a sampler"
    why = """The sampler decides the order, so shuffle=True beside it is refused: ValueError, sampler option
    is mutually exclusive with shuffle."""
    fix = (
        "Drop shuffle=True: RandomSampler, DistributedSampler and WeightedRandomSampler shuffle themselves.",
        "Where the sampler may be None: shuffle=(sampler is None).",
    )
    words = ("DataLoader",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(LOADER):
            if constant(scene, given(scene, call, 2, "shuffle")) is not True:
                continue
            for at, name in ((3, "sampler"), (4, "batch_sampler")):
                order = given(scene, call, at, name)
                if order is not None and not _may_be_none(scene, order):
                    place = next((one for one in call.keywords if one.arg == "shuffle"), None)
                    on_line = place is not None and place.lineno != call.lineno
                    yield self.at(place if on_line else call, f"{name}= is given as well", scene)  # type: ignore[arg-type]
                    break


def _may_be_none(scene: Scene, node: ast.expr) -> bool:
    for value in scene.values(node):
        if isinstance(value, ast.Constant) and value.value is None:
            return True
        if isinstance(value, Binding) and value.how == "param":
            function = flow.up(flow.up(value.node))
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                from torchdoctor.lint.values import default_of

                default = default_of(function, value.name)
                if isinstance(default, ast.Constant) and default.value is None:
                    return True
    return False


def workers(scene: Scene, loader: ast.Call) -> int | None:
    """The number of workers of a loader: 0 where none is asked for, None where it cannot be told."""
    count = flow.argument(loader, 5, "num_workers")
    if count is None:
        return None if flow.spread(loader) else 0
    return number(scene, count)


class IterableDatasetDuplicates(Check):
    id = "iterable-dataset-duplicates"
    title = "Every worker goes through the whole IterableDataset"
    why = """Each worker gets a copy of the data set and iterates over all of it. With n workers every sample
    comes n times an epoch, unless __iter__ takes only the worker's part."""
    fix = (
        "In __iter__, ask torch.utils.data.get_worker_info() and yield only the part of worker info.id of "
        "info.num_workers.",
        "Or split in worker_init_fn, or use num_workers=0 (at most 1).",
    )
    words = ("IterableDataset",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.methods("get_worker_info"):
            return
        for call in scene.calls(LOADER):
            count = workers(scene, call)
            if not count or count < 2 or flow.keyword(call, "worker_init_fn") is not None:
                continue
            data = flow.argument(call, 0, "dataset")
            owner = scene.owner(data) if data is not None else None
            if owner is None or "iterable" not in scene.kinds(data):
                continue
            method = scene.find_method(owner, "__iter__")
            if method is not None and not _draws(method):
                yield self.at(call, f"{owner.node.name} is not split among {counted(count, 'worker')}", scene)


def _draws(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does it yield without an end? Then it draws, or shares a queue, and nothing comes twice for sure."""
    return any(isinstance(one, ast.While) and flow.is_true(one.test) for one in flow.walk(method))
