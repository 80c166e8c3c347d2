"""Calls that all ranks must make, and files that only one may write."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.contexts import distributed, rank_tests, under_rank_test
from torchdoctor.lint.finding import Check, Finding
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene, Step

COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in words(
        "barrier monitored_barrier all_reduce all_reduce_coalesced all_gather all_gather_object "
        "all_gather_into_tensor all_gather_coalesced reduce reduce_scatter reduce_scatter_tensor "
        "broadcast broadcast_object_list gather gather_object scatter scatter_object_list "
        "all_to_all all_to_all_single new_group"
    )
)
_WAITS = words(
    "barrier monitored_barrier wait_for_everyone synchronize all_reduce broadcast "
    "broadcast_object_list all_gather all_gather_object wait rendezvous dist_barrier"
)


_SHARDED_STATE = frozenset(
    f"torch.distributed.fsdp.FullyShardedDataParallel.{name}"
    for name in ("optim_state_dict", "full_optim_state_dict", "sharded_optim_state_dict", "state_dict")
)
# calls that surely make no collective
_LOCAL_CALLS = words(
    "print save info warning debug error log write close format append items keys len str int get "
    "join exists makedirs mkdir dump update open item state_dict cpu time sleep remove"
)


class CollectiveUnderRankTest(Check):
    id = "collective-under-rank-test"
    title = "A collective call is made by some ranks only"
    why = """A collective returns when all ranks of the group have called it. Under a test of the rank the
    others never do: they go on to their next collective, and the job hangs until a watchdog ends it, or
    mixes up two calls."""
    fix = (
        "Move the call out of the test, so that every rank makes it; keep printing and saving inside.",
        "Where a part of the ranks is meant, make a group of them with new_group() and pass it.",
    )
    cause = "collective-rank-branch"
    words = ("distributed", "FSDP", "FullyShardedDataParallel")

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for call in scene.index.calls:
            found = self._collective(scene, call)
            if not found:
                continue
            if self._tell(scene, call, call, told):
                yield self.at(call, f"{found} under a test of the rank", scene)
                continue
            for top in self._callers(scene, call):
                if self._tell(scene, top, call, told):
                    yield self.at(top, f"it leads to {found} on line {call.lineno}", scene)

    def _tell(self, scene: Scene, place: ast.Call, call: ast.Call, told: set[ast.AST]) -> bool:
        if place in told or not _only_some(scene, place, call):
            return False
        told.add(place)
        return True

    def _callers(self, scene: Scene, call: ast.Call) -> Iterator[ast.Call]:
        """The calls, two levels up, that lead to a collective on every way through what they call."""
        todo = [(call, 0)]
        while todo:
            one, depth = todo.pop()
            function = flow.named_function(one)
            if function is None or depth == 2 or flow.guards(one) or not _reached(one):
                continue
            for caller in scene.callers(function):
                yield caller
                todo.append((caller, depth + 1))

    def _collective(self, scene: Scene, call: ast.Call) -> str:
        """How a call that all ranks must make is called; "" for any other, and for one of a group."""
        name = scene.called(call)
        if name in COLLECTIVES:
            group = (
                flow.keyword(call, "group")
                or flow.keyword(call, "ranks")
                or flow.keyword(call, "process_group")
            )
            if group is not None and not (isinstance(group, ast.Constant) and group.value is None):
                return ""
            return f"{flow.method(call)}()" if name != "torch.distributed.new_group" or not call.args else ""
        method, base = flow.method(call), flow.receiver(call)
        if base is None:
            return ""
        if method in ("state_dict", "clip_grad_norm_") and scene.is_a(base, "fsdp"):
            return f"{method}() of a sharded model"
        if name in _SHARDED_STATE:
            return f"{method}() of a sharded model"
        return ""


def _reached(node: ast.AST) -> bool:
    """Does its function come to it whenever it is called: no branch, no way out before it?"""
    for child, parent in flow.above(node):
        body = getattr(parent, "body", None)
        if isinstance(body, list) and any(child is one for one in body):
            for one in body:
                if one is child:
                    break
                if isinstance(one, ast.If) and (flow.leaves(one.body) or flow.leaves(one.orelse)):
                    return False
    return True


def _only_some(scene: Scene, place: ast.Call, call: ast.Call) -> bool:
    """Is the place reached by some ranks only, while no other place makes the same call for the rest?"""
    tests = list(rank_tests(scene, place))
    if not tests:
        return False
    name = scene.called(call)
    function = flow.named_function(place) or scene.tree
    for other in flow.calls_under(function) if name else ():
        if other is place:
            continue
        leads = scene.called(other) == name or any(step.call is call for step in _through(scene, other))
        if leads and not all(
            (test, arm) in flow.guards(other) or (arm == "early" and flow.start(other) > flow.start(test))
            for test, arm in tests
        ):
            return False  # the others make it there: one after the other, or in the other arm
    return not any(_may_join(scene, test, arm) for test, arm in tests)


def _may_join(scene: Scene, test: ast.AST, arm: str) -> bool:
    """Does the other arm of a test do work of another file, which may make the same call?"""
    if not isinstance(test, ast.If) or arm == "early":
        return False
    other = test.orelse if arm == "body" else test.body
    return any(
        scene.target(call) is None and not scene.called(call) and flow.method(call) not in _LOCAL_CALLS
        for statement in other
        for call in flow.calls_under(statement)
    )


def _through(scene: Scene, call: ast.Call) -> tuple[Step, ...]:
    target = scene.target(call)
    return scene.steps(target) if target is not None else ()


class SaveLoadNoBarrier(Check):
    id = "save-load-no-barrier"
    title = "All ranks load a file that rank 0 may still be writing"
    why = """Only one rank saves, and the others do not wait for it: they open a file that is not there yet,
    is half written, or is that of the last run."""
    fix = ("Call torch.distributed.barrier() between the save and the load, on every rank.",)
    words = ("torch",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if not scene.calls("torch.load") or not scene.calls("torch.save"):
            return
        told: set[ast.Call] = set()
        for root in (scene.tree, *scene.index.functions):
            saves: list[tuple[ast.Call, ast.expr]] = []
            for step in scene.steps(root):
                name = scene.called(step.call)
                if flow.method(step.call) in _WAITS:
                    saves.clear()
                elif name == "torch.save":
                    path = flow.argument(step.call, 1, "f")
                    some = any(True for _ in rank_tests(scene, step.call)) or any(
                        True for _ in rank_tests(scene, step.top)
                    )
                    if path is not None and some:
                        saves.append((step.call, path))
                elif name == "torch.load" and step.call not in told:
                    found = self._saved(scene, step.call, saves)
                    if found is not None and not any(True for _ in rank_tests(scene, step.top)):
                        told.add(step.call)
                        says = f"one rank saves it on line {found.lineno}, and nothing waits for that"
                        yield self.at(step.call, says, scene)

    def _saved(self, scene: Scene, load: ast.Call, saves: list[tuple[ast.Call, ast.expr]]) -> ast.Call | None:
        path = flow.argument(load, 0, "f")
        if path is None or any(True for _ in rank_tests(scene, load)) or under_rank_test(scene, load):
            return None
        for save, written in saves:
            if flow.exclusive(save, load) and flow.named_function(save) is flow.named_function(load):
                continue
            if flow.same(path, written) or _alike(scene, path, written):
                return save
        return None


def _alike(scene: Scene, a: ast.expr, b: ast.expr) -> bool:
    first = {value.value for value in scene.values(a) if isinstance(value, ast.Constant)}
    second = {value.value for value in scene.values(b) if isinstance(value, ast.Constant)}
    return bool(first) and first == second


class AllRanksWrite(Check):
    id = "all-ranks-write"
    title = "Every rank writes the same file"
    why = """All processes open the same path and write at the same time. The last one wins, or the file is a
    mixture that cannot be loaded; on a shared file system this shows only at times."""
    fix = (
        "Write on rank 0 only: if torch.distributed.get_rank() == 0: ...",
        "Or put the rank into the name of the file.",
    )
    words = ("distributed", "Distributed")

    def run(self, scene: Scene) -> Iterator[Finding]:
        if distributed(scene) is None or scene.calls("torch.distributed.fsdp.FullyShardedDataParallel"):
            return
        for call in scene.index.calls:
            path = self._written(scene, call)
            if path is None or under_rank_test(scene, call) or _differs(scene, path):
                continue
            function = flow.named_function(call)
            if function is None or _runs_everywhere(scene, call):
                yield self.at(call, "no test of the rank, and no rank in the path", scene)

    def _written(self, scene: Scene, call: ast.Call) -> ast.expr | None:
        name = scene.called(call)
        if name == "torch.save":
            return flow.argument(call, 1, "f")
        if name in ("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter"):
            return flow.argument(call, 0, "log_dir") or flow.keyword(call, "logdir")
        if isinstance(call.func, ast.Name) and call.func.id == "open" and not scene.lookup(call.func):
            mode = flow.argument(call, 1, "mode")
            path = flow.argument(call, 0, "file")
            if isinstance(mode, ast.Constant) and str(mode.value)[:1] in ("w", "a") and path is not None:
                return path if _log_or_checkpoint(path) else None
        return None


def _log_or_checkpoint(path: ast.expr) -> bool:
    return bool(
        re.search(r"log|ckpt|checkpoint|metric|\.pth?\b", " ".join(flow.names_in(path)), re.IGNORECASE)
    )


def _runs_everywhere(scene: Scene, call: ast.Call) -> bool:
    """Is its function one that sets up the ranks, or called from one: here, not from somewhere unknown?"""
    function = flow.named_function(call)
    seen: set[ast.AST] = set()
    todo: list[ast.AST] = [function] if function is not None else []
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if any(_sets_up(scene, made) for made in flow.calls_under(one)):
            return True
        around = flow.up(one)
        if isinstance(around, ast.ClassDef):
            owner = scene.index.class_of[around]
            if any(
                _sets_up(scene, made)
                for method in owner.methods.values()
                for made in flow.calls_under(method)
            ):
                return True
        for caller in scene.callers(one):
            todo.append(flow.named_function(caller) or scene.tree)
    return False


def _sets_up(scene: Scene, call: ast.Call) -> bool:
    return scene.called(call) in (
        "torch.distributed.init_process_group",
        "torch.nn.parallel.DistributedDataParallel",
    )


def _differs(scene: Scene, path: ast.expr) -> bool:
    """Does the path have the rank in it, or something of the process that cannot be seen?"""
    todo: list[ast.AST] = [path]
    seen: set[ast.AST] = set()
    while todo and len(seen) < 40:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        words = " ".join(flow.names_in(node)).lower()
        if any(
            word in words for word in ("rank", "tmp", "temp", "buffer", "bytesio", "pid", "hostname", "/dev/")
        ):
            return True
        for one in ast.walk(node):
            if isinstance(one, ast.Name | ast.Attribute):
                todo += (
                    value for value in scene.values(one) if isinstance(value, ast.expr) and value is not one
                )
            if isinstance(one, ast.Name):
                todo += (
                    bind.value for bind in scene.lookup(one) if bind.how == "aug" and bind.value is not None
                )
    return False


_LOCAL = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_GLOBAL = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_GETS_LOCAL = ("torch.distributed.get_node_local_rank",)
_GETS_GLOBAL = ("torch.distributed.get_rank",)


class LocalRankAsGlobal(Check):
    id = "local-rank-as-global"
    title = "Local and global rank are taken for each other"
    why = """On one node they are the same number. On two, several processes claim the same global rank (the
    group never forms, or they load the same data), or a process asks for GPU 8 of a node that has eight:
    invalid device ordinal."""
    fix = (
        "The group and samplers take the global rank: RANK, torch.distributed.get_rank().",
        "Devices take the local one: LOCAL_RANK, or rank % torch.cuda.device_count().",
    )
    words = ("RANK", "get_rank", "PROCID", "LOCALID")

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.distributed.init_process_group"):
            yield from self._tell(scene, call, flow.keyword(call, "rank"), "local")
        for call in scene.calls("torch.utils.data.DistributedSampler"):
            yield from self._tell(scene, call, flow.argument(call, 2, "rank"), "local")
        if scene.calls("torch.multiprocessing.spawn"):
            return  # on one node both are one number
        for call in scene.calls("torch.cuda.set_device", "torch.cuda.device"):
            yield from self._tell(scene, call, flow.argument(call, 0, "device"), "global")
        for call in scene.calls("torch.nn.parallel.DistributedDataParallel"):
            given = flow.argument(call, 1, "device_ids")
            first = given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else None
            yield from self._tell(scene, call, first, "global")
        for call in scene.calls("torch.device"):
            yield from self._tell(scene, call, _numbered(call.args), "global")
        for call in scene.methods("cuda", "to"):
            if isinstance(call.func, ast.Attribute) and not scene.called(call) and call.args:
                yield from self._tell(scene, call, call.args[0], "global")

    def _tell(self, scene: Scene, call: ast.Call, given: ast.expr | None, wrong: str) -> Iterator[Finding]:
        if isinstance(given, ast.JoinedStr):
            given = _numbered([given])
        if given is None:
            return
        kinds = {_rank_kind(scene, value) for value in scene.values(given)}
        if kinds == {wrong}:
            wanted = "the global rank" if wrong == "local" else "a number of this node's own"
            yield self.at(call, f"it is given the {wrong} rank, and wants {wanted}", scene)


def _numbered(args: list[ast.expr]) -> ast.expr | None:
    """The number in ``f"cuda:{number}"`` or in ``"cuda", number``."""
    if len(args) == 2:
        return args[1]
    if len(args) == 1 and isinstance(args[0], ast.JoinedStr):
        parts = args[0].values
        if len(parts) == 2 and isinstance(parts[0], ast.Constant) and parts[0].value == "cuda:":
            return parts[1].value if isinstance(parts[1], ast.FormattedValue) else None
    return None


def _rank_kind(scene: Scene, value: object) -> str:
    """``local``, ``global`` or "" for where a number comes from."""
    if isinstance(value, ast.Call):
        name = scene.called(value)
        if name in _GETS_LOCAL + _GETS_GLOBAL:
            return "local" if name in _GETS_LOCAL else "global"
        if isinstance(value.func, ast.Name) and value.func.id == "int" and len(value.args) == 1:
            found = {_rank_kind(scene, one) for one in scene.values(value.args[0])}
            return found.pop() if len(found) == 1 else ""
        if name in ("os.environ.get", "os.getenv") and value.args:
            return _variable(value.args[0])
    if isinstance(value, ast.Subscript) and scene.name(value.value) == "os.environ":
        return _variable(value.slice)
    return ""


def _variable(node: ast.expr) -> str:
    name = node.value if isinstance(node, ast.Constant) else None
    return "local" if name in _LOCAL else "global" if name in _GLOBAL else ""
