"""Samplers and loaders that give other batches than one thinks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.constants import constant, given, number
from torchdoctor.lint.finding import Check, Finding, inserting
from torchdoctor.lint.index import Binding, dotted_text
from torchdoctor.lint.modes import sets_mode
from torchdoctor.lint.training import backward, iterations
from torchdoctor.model import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.finding import Edit
    from torchdoctor.lint.flow import Loop
    from torchdoctor.lint.scene import Scene

LOADER = "torch.utils.data.DataLoader"
_SAMPLER = "torch.utils.data.DistributedSampler"


def loaders_behind(scene: Scene, node: ast.expr) -> Iterator[ast.Call]:
    """The DataLoaders that a loop over ``node`` may go over, of those whose arguments are all in sight."""
    if isinstance(node, ast.Call) and flow.method(node) in ("enumerate", "tqdm", "zip") and node.args:
        node = node.args[0]
    for value in scene.values(node):
        if isinstance(value, ast.Call) and scene.called(value) == LOADER and not flow.spread(value):
            yield value


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


class BatchnormLastBatch(Check):
    id = "batchnorm-last-batch"
    group = 2
    title = "The last batch may hold one sample, which BatchNorm1d refuses"
    why = """In training mode batch norm needs more than one value per channel. Where the number of samples
    leaves one for the last batch: ValueError, Expected more than 1 value per channel when training, at the
    end of the epoch."""
    fix = ("Give the training loader drop_last=True.",)
    words = ("BatchNorm1d",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for loop in scene.index.loops:
            if isinstance(loop, ast.While):
                continue
            loader = self._leaves_some(scene, loop.iter)
            if loader is None or not any(
                backward(scene, step.call) is not None for step in scene.steps(loop)
            ):
                continue
            for call in flow.calls_under(loop):
                if (
                    call.args
                    and not scene.called(call)
                    and self._has_norm(scene, call.func)
                    and not self._evaluates(scene, call)
                ):
                    yield self.at(
                        call, f"the loader of line {loader.lineno} keeps a last batch of any size", scene
                    )
                    break

    def _leaves_some(self, scene: Scene, node: ast.expr) -> ast.Call | None:
        for loader in loaders_behind(scene, node):
            drop = flow.argument(loader, 8, "drop_last")
            size = number(scene, flow.argument(loader, 1, "batch_size"))
            if (
                (drop is None or constant(scene, drop) is False)
                and size is not None
                and size > 1
                and flow.keyword(loader, "batch_sampler") is None
            ):
                return loader
        return None

    def _has_norm(self, scene: Scene, func: ast.expr) -> bool:
        values = scene.values(func)
        return bool(values) and all(
            isinstance(one, ast.Call) and self._norm_in(scene, one, 3) for one in values
        )

    def _norm_in(self, scene: Scene, call: ast.Call, depth: int) -> bool:
        if depth == 0:
            return False
        owner = scene.local_class(call.func)
        if owner is not None:
            return any(
                self._norm_in(scene, made, depth - 1)
                for method in owner.methods.values()
                for made in flow.calls_under(method)
                if scene.local_class(made.func) is not owner
            )
        name = scene.called(call)
        if name == "torch.nn.BatchNorm1d":
            return True
        return name == "torch.nn.Sequential" and any(
            isinstance(one, ast.Call) and self._norm_in(scene, one, depth - 1) for one in call.args
        )

    def _evaluates(self, scene: Scene, call: ast.Call) -> bool:
        root = flow.named_function(call) or scene.tree
        text = ast.unparse(call.func)
        said = [
            sets_mode(scene, one, text)
            for one in flow.calls_under(root)
            if flow.start(one) < flow.start(call)
        ]
        modes = [one for one in said if one is not None]
        return bool(modes) and modes[-1] is False
