"""What runs in the worker processes of a loader, and what starts them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.checks.loading import LOADER, workers
from torchdoctor.lint.constants import constant
from torchdoctor.lint.devices import on_cuda
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.index import Binding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_RANDOM = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
_SEEDS = ("numpy.random.seed", "random.seed")
_PER_WORKER = frozenset(
    ("initial_seed", "get_worker_info", "urandom", "getpid", "time", "worker_id", "seed_all")
)


class WorkerSameSeed(Check):
    id = "worker-same-seed"
    title = "All workers draw the same random numbers"
    why = """Workers are copies of the main process. One constant seed in worker_init_fn, or a numpy Generator
    that was made before they start, makes each of them draw the same sequence: augmentations repeat n
    times. (torch, random and numpy.random itself are seeded for each worker by torch.)"""
    fix = (
        "Seed with what differs: numpy.random.seed(torch.initial_seed() % 2**32) in worker_init_fn.",
        "Make the Generator in the worker: numpy.random.default_rng(torch.initial_seed()) on first use.",
    )

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(LOADER):
            given = flow.keyword(call, "worker_init_fn") or flow.argument(call, 9, "worker_init_fn")
            if given is not None:
                yield from self._seeds(scene, given)
        if not scene.methods("get_worker_info"):
            for owner in scene.index.classes:
                if scene.bases(owner) & {"torch.utils.data.Dataset"}:
                    method = scene.find_method(owner, "__getitem__")
                    if method is not None and method in owner.methods.values():
                        yield from self._generators(scene, method)

    def _seeds(self, scene: Scene, given: ast.expr) -> Iterator[Finding]:
        body: ast.AST | None = given if isinstance(given, ast.Lambda) else scene.local_function(given)
        if not isinstance(body, ast.Lambda | ast.FunctionDef):
            return
        names = [one.arg for one in body.args.args]
        if flow.names_in(body) & _PER_WORKER - set(names):
            return
        for call in flow.calls_under(body):
            if scene.called(call) in _SEEDS and call.args and not _depends(scene, call.args[0], names):
                yield self.at(call, "the seed is the same in each worker", scene)

    def _generators(self, scene: Scene, method: ast.AST) -> Iterator[Finding]:
        for step in scene.steps(method):
            base = flow.receiver(step.call)
            if not isinstance(base, ast.Name | ast.Attribute):
                continue
            made = [one for one in scene.values(base) if isinstance(one, ast.Call)]
            if not made or any(scene.called(one) not in _RANDOM for one in made):
                continue
            if len(made) != len(scene.values(base)) or not all(_before_workers(scene, one) for one in made):
                continue
            says = f"the generator was made on line {made[0].lineno}, before the workers start"
            yield self.at(step.call, says, scene)


def _depends(scene: Scene, node: ast.expr, names: list[str]) -> bool:
    """Does a seed depend on the worker, or on something that cannot be seen?"""
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in names:
            return True
        if isinstance(one, ast.Call):
            return True
        if isinstance(one, ast.Name):
            for value in scene.values(one):
                if not isinstance(value, ast.Constant | ast.Attribute):
                    if isinstance(value, Binding) and value.how == "param":
                        continue
                    if isinstance(value, ast.Name):
                        continue
                    return True
    return False


def _before_workers(scene: Scene, call: ast.Call) -> bool:
    function = flow.named_function(call)
    return function is None or function.name == "__init__"


class LambdaInWorker(Check):
    id = "lambda-in-worker"
    title = "A function that cannot be pickled goes to workers that are spawned"
    why = """With the start methods spawn and forkserver everything that a worker needs is pickled. A lambda,
    or a function that is defined in another one, cannot be: the loader fails when it starts its workers."""
    fix = (
        "Define the function at module level; bind arguments with functools.partial.",
        "Where fork is possible and CUDA is not touched before: multiprocessing_context='fork'.",
    )
    words = ("spawn", "forkserver")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls(LOADER):
            if workers(scene, call) == 0 or not _spawned(scene, call):
                continue
            for name in ("collate_fn", "worker_init_fn"):
                given = flow.keyword(call, name)
                if given is not None and _unpicklable(scene, given):
                    yield self.at(call, f"{name} is a lambda or a local function", scene)
                    break


def _spawned(scene: Scene, loader: ast.Call) -> bool:
    given = flow.keyword(loader, "multiprocessing_context")
    if given is not None:
        return _says_spawn(scene, given)
    calls = scene.methods("set_start_method")
    return bool(calls) and all(one.args and _says_spawn(scene, one.args[0]) for one in calls)


def _says_spawn(scene: Scene, node: ast.expr) -> bool:
    if constant(scene, node) in ("spawn", "forkserver"):
        return True
    values = [one for one in scene.values(node) if isinstance(one, ast.Call)]
    return any(
        flow.method(one) == "get_context" and one.args and _says_spawn(scene, one.args[0]) for one in values
    )


def _unpicklable(scene: Scene, node: ast.expr) -> bool:
    if any(isinstance(one, ast.Lambda) for one in scene.values(node)):
        return True
    function = scene.local_function(node) if isinstance(node, ast.Name) else None
    return function is not None and flow.named_function(function) is not None


class LoaderWithoutGuard(Check):
    id = "loader-without-guard"
    title = "Worker processes are started at module level, without the main guard"
    why = """Where processes are spawned (Windows and macOS, mp.spawn everywhere, forkserver on Linux from
    Python 3.14 on) each worker imports the program again, starts workers itself, and fails: An attempt has
    been made to start a new process before the current process has finished its bootstrapping phase."""
    fix = ('Put what runs under `if __name__ == "__main__":`, and keep definitions and imports outside.',)
    cause = "dataloader-main-guard"
    words = ("num_workers", "spawn", "Process")

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.notebook:
            return
        forks = any(
            call.args and constant(scene, call.args[0]) == "fork"
            for call in scene.methods("set_start_method")
        )
        for node in flow.walk(scene.tree):
            if flow.function(node) is not None or flow.class_around(node) or _guarded(scene, node):
                continue
            yield from self._starts(scene, node, forks)

    def _starts(self, scene: Scene, node: ast.AST, forks: bool) -> Iterator[Finding]:
        if isinstance(node, ast.For) and not forks and _with_workers(scene, node.iter):
            yield self.at(node, "spawn platforms and Python 3.14 start this loader's workers anew", scene)
        if not isinstance(node, ast.Call):
            return
        if scene.called(node) == "torch.multiprocessing.spawn":
            yield self.at(node, "each process that it starts would start it again", scene)
        elif flow.method(node) == "start" and not node.args and not forks and _is_process(scene, node):
            yield self.at(node, "spawn platforms and Python 3.14 import the program again", scene)
        elif flow.method(node) == "next" and not forks and node.args and _with_workers(scene, node.args[0]):
            yield self.at(node, "spawn platforms and Python 3.14 start this loader's workers anew", scene)
        elif isinstance(flow.up(node), ast.Expr) and not forks:
            target = scene.target(node)
            if target is not None and _iterates(scene, target, 2):
                says = f"{target.name}() goes through a loader with workers"
                yield self.at(node, f"{says}, on spawn platforms and Python 3.14 in each of them", scene)


def _iterates(scene: Scene, function: ast.AST, depth: int) -> bool:
    for node in flow.walk(function):
        if isinstance(node, ast.For) and _with_workers(scene, node.iter):
            return True
        if depth and isinstance(node, ast.Call):
            target = scene.target(node)
            if target is not None and target is not function and _iterates(scene, target, depth - 1):
                return True
    return False


def _with_workers(scene: Scene, node: ast.expr, depth: int = 3) -> bool:
    for value in scene.values(node):
        if isinstance(value, ast.Call):
            if scene.called(value) == LOADER:
                count = workers(scene, value)
                return count is not None and count > 0
            if depth and value.args and flow.method(value) in ("enumerate", "tqdm", "iter", "zip"):
                return any(_with_workers(scene, one, depth - 1) for one in value.args)
    return False


def _is_process(scene: Scene, call: ast.Call) -> bool:
    return any(
        isinstance(value, ast.Call) and scene.called(value).endswith("multiprocessing.Process")
        for value in scene.values(flow.receiver(call))
    )


def _guarded(scene: Scene, node: ast.AST) -> bool:
    return any(
        isinstance(test, ast.If) and {"__name__", "__main__"} <= flow.names_in(test.test)
        for test, _ in flow.guards(node)
    )


class CudaInDataset(Check):
    id = "cuda-in-dataset"
    title = "A worker process touches CUDA"
    why = """What __getitem__ and collate_fn do runs in worker processes. A forked one cannot use CUDA when
    the parent did (Cannot re-initialize CUDA in forked subprocess); a spawned one takes a context of its
    own, hundreds of MiB of GPU memory per worker."""
    fix = (
        "Return tensors on the CPU, and move the batch in the training loop, "
        "batch.to(device, non_blocking=True), with pin_memory=True in the loader.",
        "Or use num_workers=0.",
    )
    cause = "cuda-in-fork"
    words = ("cuda",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for loader in scene.calls(LOADER):
            if workers(scene, loader) == 0:
                continue
            for root in _in_workers(scene, loader):
                for step in scene.steps(root):
                    if step.call not in told and on_cuda(scene, step.call):
                        told.add(step.call)
                        yield self.at(step.call, f"the loader of line {loader.lineno} has workers", scene)


def _in_workers(scene: Scene, loader: ast.Call) -> Iterator[ast.AST]:
    given = flow.argument(loader, 0, "dataset")
    owner = scene.owner(given) if given is not None else None
    if owner is not None:
        for name in ("__getitem__", "__iter__"):
            method = scene.find_method(owner, name)
            if method is not None:
                yield method
    collate = flow.argument(loader, 6, "collate_fn")
    if isinstance(collate, ast.Lambda):
        yield collate
    elif collate is not None:
        function = scene.local_function(collate)
        if function is not None:
            yield function
