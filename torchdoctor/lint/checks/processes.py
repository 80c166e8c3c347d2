"""What a process must do before it uses CUDA or joins a group, and in which order."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdoctor.lint import flow
from torchdoctor.lint.constants import constant
from torchdoctor.lint.contexts import distributed
from torchdoctor.lint.devices import on_cuda
from torchdoctor.lint.finding import Check, Edit, Finding, inserting
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_GROUP = "torch.distributed.init_process_group"


def variable_set(scene: Scene, node: ast.AST, names: tuple[str, ...]) -> str:
    """Which of some environment variables of this process a statement or call sets; "" for none."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if (
                isinstance(target, ast.Subscript)
                and scene.name(target.value) == "os.environ"
                and isinstance(target.slice, ast.Constant)
                and target.slice.value in names
            ):
                return str(target.slice.value)
    if not isinstance(node, ast.Call):
        return ""
    called = scene.called(node)
    if called in ("os.putenv", "os.environ.setdefault", "os.environ.__setitem__") and node.args:
        first = node.args[0]
        return str(first.value) if isinstance(first, ast.Constant) and first.value in names else ""
    if called == "os.environ.update":
        keys = [one.arg for one in node.keywords]
        for given in node.args:
            if isinstance(given, ast.Dict):
                keys += [str(key.value) for key in given.keys if isinstance(key, ast.Constant)]
        return next((one for one in keys if one in names), "")
    return ""


def settings(scene: Scene, names: tuple[str, ...]) -> list[tuple[ast.AST, str]]:
    """All statements and calls that set one of the variables, with its name, in the order of the source."""
    nodes: list[ast.AST] = [
        *scene.index.assigns,
        *scene.methods("putenv", "setdefault", "update", "__setitem__"),
    ]
    found = [(node, name) for node in nodes if (name := variable_set(scene, node, names))]
    return sorted(found, key=lambda one: flow.start(one[0]))


class LateVisibleDevices(Check):
    id = "late-visible-devices"
    title = "CUDA_VISIBLE_DEVICES is set after CUDA was initialised"
    why = """The CUDA runtime reads the variable once, when it is initialised or first asked for devices. Set
    later it does nothing: the process goes on to use the GPUs that it saw first, often GPU 0, beside
    somebody else."""
    fix = (
        "Set it in the shell or launcher: CUDA_VISIBLE_DEVICES=1 python train.py.",
        "Or set it in os.environ before anything touches CUDA, best before import torch.",
    )
    cause = "cuda-visible-set-late"
    words = _VISIBLE

    def run(self, scene: Scene) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        found = settings(scene, _VISIBLE)
        for root in (scene.tree, *scene.index.functions) if found else ():
            for setting, name in found:
                touch = self._before(scene, root, setting)
                if touch is not None and setting not in told:
                    told.add(setting)
                    says = f"{name} does nothing now: {ast.unparse(touch.func)[:60]}() on line {touch.lineno}"
                    yield self.at(setting, f"{says} came first", scene)

    def _before(self, scene: Scene, root: ast.AST, setting: ast.AST) -> ast.Call | None:
        """What touches CUDA before the setting when ``root`` runs."""
        place = flow.named_function(setting)
        at: ast.AST | None = None
        for step in scene.steps(root):
            if flow.named_function(step.call) is place and place is not None and step.call is not step.top:
                at = step.top
                break
        if at is None:
            if place is not (root if not isinstance(root, ast.Module) else None):
                at = self._call_of(scene, root, place)
                if at is None:
                    return None
            else:
                at = setting
        for step in scene.steps(root):
            if not _touches(scene, step.call):
                continue
            inner = flow.named_function(step.call) is place and place is not None
            if (
                inner
                and flow.start(step.call) < flow.start(setting)
                and not flow.exclusive(step.call, setting)
            ):
                if not flow.inside(step.call, setting):
                    return step.call
            elif (
                not inner
                and flow.start(step.top) < flow.start(at)
                and not flow.inside(step.top, at)
                and not flow.exclusive(step.top, at)
                and step.top is not at
            ):
                return step.call
        return None

    def _call_of(self, scene: Scene, root: ast.AST, place: ast.AST | None) -> ast.Call | None:
        """The call in ``root`` that leads to the function ``place``."""
        if place is None:
            return None
        for call in flow.calls_under(root):
            target = scene.target(call)
            if target is None:
                continue
            if target is place or any(scene.target(one) is place for one in scene.flat(target)):
                return call
        return None


def _touches(scene: Scene, call: ast.Call) -> bool:
    """Does a call initialise CUDA, or settle for good which devices there are?"""
    name = scene.called(call)
    if name.startswith("torch.cuda."):
        return name.removeprefix("torch.cuda.") in _TOUCHING
    if name == _GROUP:
        return "nccl" in str(constant(scene, flow.argument(call, 0, "backend")))
    return on_cuda(scene, call)


_TOUCHING = words(
    "is_available init set_device current_device get_device_name get_device_properties "
    "get_device_capability mem_get_info synchronize empty_cache Stream Event current_stream "
    "is_bf16_supported FloatTensor LongTensor"
)


class ProcessGroupNoDevice(Check):
    id = "process-group-no-device"
    title = "All ranks of a node use GPU 0"
    why = """"cuda" means the current device, and that is GPU 0 in every process until somebody sets it. NCCL
    then refuses (Duplicate GPU detected), hangs in the first barrier, or all ranks fill the memory of one
    GPU."""
    fix = (
        "Call torch.cuda.set_device(local_rank) before init_process_group().",
        'Or say it there: init_process_group("nccl", device_id=torch.device("cuda", local_rank)).',
    )
    words = ("init_process_group",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if scene.calls("torch.cuda.set_device", "torch.cuda.device") or settings(scene, _VISIBLE[:1]):
            return
        if scene.methods("set_device") or _numbered_device(scene):
            return
        used = next((call for call in scene.index.calls if self._bare(scene, call)), None)
        if used is None:
            return
        for call in scene.calls(_GROUP):
            backend = constant(scene, flow.argument(call, 0, "backend"))
            if "nccl" in str(backend) and flow.keyword(call, "device_id") is None and not flow.spread(call):
                function = flow.named_function(call)
                if function not in (None, flow.named_function(used)) and not scene.callers(function):
                    continue  # what else its caller sets is out of sight
                yield self.at(call, f"line {used.lineno} uses the current GPU, and nothing sets it", scene)

    def _bare(self, scene: Scene, call: ast.Call) -> bool:
        """Does it put something on the current GPU, whatever that is?"""
        if flow.method(call) == "cuda" and isinstance(call.func, ast.Attribute) and not scene.called(call):
            return not call.args and not call.keywords
        places = [*call.args[:1], flow.keyword(call, "device")]
        return on_cuda(scene, call) and any(_is_bare(scene, one) for one in places)


def _is_bare(scene: Scene, node: ast.AST | None) -> bool:
    for value in scene.values(node) if node is not None else ():
        if isinstance(value, ast.Constant) and value.value == "cuda":
            return True
        if (
            isinstance(value, ast.Call)
            and scene.called(value) == "torch.device"
            and len(value.args) == 1
            and _is_bare(scene, value.args[0])
        ):
            return True
    return False


def _numbered_device(scene: Scene) -> bool:
    """Is a GPU of one's own chosen anywhere: cuda:N, device_ids, a number?"""
    for call in scene.index.calls:
        if flow.keyword(call, "device_ids") is not None or flow.keyword(call, "device_id") is not None:
            return True
        if flow.method(call) in ("cuda", "to", "device") and any(
            not isinstance(one, ast.Constant) and not _is_bare(scene, one) and not _is_dtype(scene, one)
            for one in call.args[:1]
        ):
            return True
        if scene.called(call) == "torch.device" and len(call.args) == 2:
            return True
    return False


def _is_dtype(scene: Scene, node: ast.expr) -> bool:
    return scene.name(node).startswith("torch.")


class SyncbnAfterDdp(Check):
    id = "syncbn-after-ddp"
    title = "Batch norms are converted after the model was wrapped"
    why = """convert_sync_batchnorm makes new modules with new parameters. DistributedDataParallel has
    registered the old ones: the gradients of the new are never averaged, and the ranks drift apart."""
    fix = ("Convert first, wrap then: DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model), ...).",)
    words = ("convert_sync_batchnorm",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        for call in scene.calls("torch.nn.SyncBatchNorm.convert_sync_batchnorm"):
            given = flow.argument(call, 0, "module")
            if given is None:
                continue
            if isinstance(given, ast.Attribute) and given.attr == "module":
                given = given.value
            if scene.is_a(given, "ddp"):
                yield self.at(call, f"{ast.unparse(given)[:60]} is wrapped already", scene)


class LoadWithoutMapLocation(Check):
    id = "load-without-map-location"
    title = "torch.load() in a program of several ranks has no map_location"
    why = """A tensor is loaded to the device that it was saved from. With a checkpoint of rank 0 every
    process takes memory on GPU 0, which is full while the others have room, and keeps a context there."""
    fix = (
        'Load to the CPU: torch.load(path, map_location="cpu"); load_state_dict() copies to the device.',
        "Or to the process's own GPU: map_location=device.",
    )
    cause = "gpu0-memory-imbalance"
    words = ("load",)
    fixable = True

    def run(self, scene: Scene) -> Iterator[Finding]:
        several = distributed(scene) or next(iter(scene.calls("torch.multiprocessing.spawn")), None)
        if several is None or _cpu_only(scene):
            return
        for call in scene.calls("torch.load"):
            if flow.argument(call, 1, "map_location") is None and not flow.spread(call) and call.args:
                if self._no_tensors(call) or self._chosen(scene, call):
                    continue
                yield self.at(
                    call,
                    f"line {getattr(several, 'lineno', 1)} makes several ranks",
                    scene,
                    _to_cpu(scene, call),
                )

    def _chosen(self, scene: Scene, call: ast.Call) -> bool:
        """Does the other arm of a test around it load with a map_location? Then this one is meant so."""
        for test, arm in flow.guards(call):
            other = (test.orelse if arm == "body" else test.body) if isinstance(test, ast.If) else []
            for one in (made for statement in other for made in flow.calls_under(statement)):
                if scene.called(one) == "torch.load" and flow.argument(one, 1, "map_location") is not None:
                    return True
        return False

    def _no_tensors(self, call: ast.Call) -> bool:
        """Is it said to hold no tensor of a GPU: random states, schedules, settings?"""
        if any(_PLAIN.search(word) for word in flow.names_in(call.args[0]) - _OPTIONS):
            return True
        around = flow.up(call)
        if isinstance(around, ast.Call) and flow.method(around) == "load_state_dict":
            return bool(_PLAIN.search(ast.unparse(around.func)))
        return isinstance(around, ast.Assign) and any(
            _PLAIN.search(ast.unparse(one)) for one in around.targets
        )


_PLAIN = re.compile(
    r"rng|sched|scaler|metadata|args|config|vocab|token|meta\b|features|cached", re.IGNORECASE
)


# what holds the options of a program says nothing of the file that one of them names
_OPTIONS = words("args config cfg opt opts conf flags hparams self")


def _cpu_only(scene: Scene) -> bool:
    groups = scene.calls(_GROUP)
    backends = [constant(scene, flow.argument(call, 0, "backend")) for call in groups]
    return bool(groups) and all(one == "gloo" for one in backends)


def _to_cpu(scene: Scene, call: ast.Call) -> tuple[Edit, ...]:
    """The argument that is missing, where all that is loaded goes through load_state_dict()."""
    last = call.args[0]
    line, column = last.end_lineno, last.end_col_offset
    if line is None or column is None or isinstance(last, ast.GeneratorExp) or _in_parentheses(call):
        return ()
    return (inserting(line, column, ', map_location="cpu"'),) if _copied(scene, call) else ()


def _copied(scene: Scene, call: ast.Call) -> bool:
    if _in_load_state_dict(call):
        return True
    holder = flow.up(call)
    if not (isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Name)):
        return False
    name = holder.targets[0].id
    uses = [
        one
        for one in flow.walk(flow.named_function(call) or scene.tree)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    return bool(uses) and all(
        _in_load_state_dict(one) or isinstance(flow.up(one), ast.Subscript | ast.Compare) for one in uses
    )


def _in_load_state_dict(node: ast.AST) -> bool:
    return any(
        isinstance(parent, ast.Call) and flow.method(parent) == "load_state_dict" and child in parent.args
        for child, parent in flow.above(node)
    )


def _in_parentheses(call: ast.Call) -> bool:
    """Might the first argument stand in parentheses of its own? Then its end is not the place."""
    return call.func.end_lineno != call.args[0].lineno or (
        call.args[0].col_offset != (call.func.end_col_offset or 0) + 1
    )


class HashseedAtRuntime(Check):
    id = "hashseed-at-runtime"
    title = "PYTHONHASHSEED is set in the process that it is meant for"
    why = """Python reads the variable when it starts. Set later it changes nothing here: the order of sets,
    and what depends on hash() of strings, still differs from run to run. Only child processes see it."""
    fix = (
        "Set it before Python starts: PYTHONHASHSEED=0 python train.py.",
        "Or do not depend on hashes: sort sets before they are used.",
    )
    words = ("PYTHONHASHSEED",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        if any(scene.called(call).startswith("os.exec") for call in scene.index.calls):
            return
        for node, _ in settings(scene, ("PYTHONHASHSEED",)):
            yield self.at(node, "this process has its hash seed since it started", scene)
