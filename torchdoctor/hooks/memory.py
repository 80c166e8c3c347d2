"""What is in memory when an exception is raised: the tensors that the failing lines name, modes, the rank.

Metadata only: no ``repr``, property or method of the user's objects is called, no value is read, nothing is
imported, and a GPU is never touched.
"""

from __future__ import annotations

import linecache
import os
import platform
import re
import sys
from typing import TYPE_CHECKING, Any

from torchdoctor.model import Fact, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType, TracebackType

    from torchdoctor.model import FactSource, Frame

TENSORS = "memory.tensors"
_PATHS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KEYS = re.compile(r"""\[["'](\w+)["']\]""")
_TENSORS_SHOWN = 8  # of one line
_ITEMS = 8  # of a list, tuple or dict
_MODULES = 5_000  # searched for the name of a parameter
_CHAIN = 32  # exceptions behind one
_TABLES = ("_parameters", "_buffers", "_modules")


class Memory:
    """The facts of this process, then those of ``rest``."""

    def __init__(self, rest: FactSource) -> None:
        self._rest = rest
        self._known = {fact.name: fact for fact in (*_versions(), *modes())}

    def names(self) -> Sequence[str]:
        return (*self._known, *self._rest.names())

    def fetch(self, name: str) -> Fact:
        return self._known.get(name) or self._rest.fetch(name)


def _versions() -> Iterator[Fact]:
    yield Fact.known("python.version", platform.python_version(), "sys")
    about = getattr(_loaded("torch"), "version", None)
    version = getattr(about, "__version__", None)
    if isinstance(version, str):
        yield Fact.known("torch.version", str(version), "torch.version")
        for name in ("cuda", "hip", "xpu"):
            built = getattr(about, name, None)
            fact = f"torch.{name}"
            yield Fact.known(fact, built, "torch.version") if isinstance(built, str) else Fact.absent(fact)


def modes() -> Iterator[Fact]:
    """``memory.grad_enabled`` (behind the failing frames, which are left by now), rank and world size."""
    torch = _loaded("torch")
    if torch is not None:
        try:
            yield Fact.known("memory.grad_enabled", bool(torch.is_grad_enabled()), "torch.is_grad_enabled")
        except Exception as error:
            yield Fact.unknown("memory.grad_enabled", Reason.CRASHED, detail=type(error).__name__)
    dist = _loaded("torch.distributed")
    try:
        if dist is not None and dist.is_available() and dist.is_initialized():
            yield Fact.known("memory.rank", int(dist.get_rank()), "torch.distributed")
            yield Fact.known("memory.world_size", int(dist.get_world_size()), "torch.distributed")
            return
    except Exception:
        pass  # a group that is being taken down; the launcher's variables say the same
    for name, variable in (("memory.rank", "RANK"), ("memory.world_size", "WORLD_SIZE")):
        value = os.environ.get(variable, "")
        if value.isascii() and value.isdecimal() and len(value) < 9:
            yield Fact.known(name, int(value), variable)


def tensors(error: BaseException, own: Frame | None) -> tuple[tuple[str, str], ...]:
    """(name, what it is) of each tensor that the user's line, of frame ``own``, or the raising line names.

    A parameter has its name in the user's model: ``net.2.weight``.
    """
    stacks = [stack for one in _chain(error) if (stack := list(_frames(one)))]
    places = [(stack, trace) for stack in stacks for trace in stack if own is not None and _is(trace, own)]
    stack, here = places[-1] if places else (stacks[0] if stacks else [], None)
    found: dict[str, str] = {}
    modules: list[tuple[str, Any]] = []
    for trace in filter(None, (here, *stack[-1:])):
        for name, value in _named(trace.tb_frame, trace.tb_lineno):
            if trace is here and _is_a(value, "torch.nn", "Module"):
                modules.append((name, value))
            told = describe(value)
            if told is not None and len(found) < 2 * _TENSORS_SHOWN:
                if trace is not here:
                    name = _in_model(value, modules) or name
                    if told in found.values() and name not in found:
                        continue  # most likely the user's tensor under the name of a parameter
                found.setdefault(name, told)
    return tuple(found.items())


def describe(value: object) -> str | None:
    """``float32 [4, 10] on cpu``; None for anything but a tensor."""
    if not _is_a(value, "torch", "Tensor"):
        return None
    torch: Any = _loaded("torch")
    tensor = torch.Tensor
    try:
        # the getters of C++, without what a subclass puts before them
        with torch._C.DisableTorchFunctionSubclass():
            dtype = str(tensor.dtype.__get__(value)).removeprefix("torch.")
            shape = ", ".join(str(int(size)) for size in tensor.shape.__get__(value))
            device = str(tensor.device.__get__(value))
    except Exception:
        return None  # one without a shape yet, or whose shape only its own class knows
    return f"{dtype} [{shape}] on {device}"


def _loaded(name: str) -> Any:
    return sys.modules.get(name)


def _is_a(value: object, module: str, name: str) -> bool:
    wanted = getattr(_loaded(module), name, None)
    return wanted is not None and wanted in type(value).__mro__


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and those behind it, the nearest first."""
    chain: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting and len(chain) < _CHAIN:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and not any(one is other for other in chain):
            chain.append(one)
            members = getattr(one, "exceptions", ()) if type(one).__name__.endswith("Group") else ()
            waiting += [one.__cause__, one.__context__, *members]
    return chain


def _frames(error: BaseException) -> Iterator[TracebackType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is(trace: TracebackType, frame: Frame) -> bool:
    return trace.tb_lineno == frame.line and frame.file == trace.tb_frame.f_code.co_filename


def _named(frame: FrameType, line: int) -> Iterator[tuple[str, object]]:
    """What the line of source names, as far as it is found without calling anything; items of containers."""
    code = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
    local, outer = frame.f_locals, frame.f_globals
    for path in dict.fromkeys(_PATHS.findall(code[:2_000])):
        first, *rest = path.split(".")
        if first not in local and first not in outer:
            continue
        value = local[first] if first in local else outer[first]
        name = first
        for part in rest:
            inner = _attribute(value, part)
            if inner is _MISSING:
                break
            value, name = inner, f"{name}.{part}"
        yield name, value
        if type(value) in (list, tuple):
            yield from ((f"{name}[{number}]", one) for number, one in enumerate(value[:_ITEMS]))
        elif type(value) is dict:  # its keys are data, but for those that the line spells
            keys = (key for key in _KEYS.findall(code) if key in value)
            yield from ((f"{name}[{key!r}]", value[key]) for key in keys)


_MISSING = object()


def _attribute(value: object, name: str) -> object:
    """An attribute out of the object's own dictionary, or a parameter, buffer or part of a module."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except Exception:
        return _MISSING
    if type(space) is not dict:
        return _MISSING
    for table in (space, *(space.get(name) for name in _TABLES)):
        if isinstance(table, dict) and dict.__contains__(table, name):
            return dict.__getitem__(table, name)
    return _MISSING


def _in_model(value: object, modules: list[tuple[str, Any]]) -> str | None:
    """The name of a parameter or buffer below one of the modules."""
    waiting, seen = list(modules), 0
    while waiting and seen < _MODULES:
        name, module = waiting.pop(0)
        seen += 1
        for table in _TABLES:
            parts = _attribute(module, table)
            for key, one in parts.items() if isinstance(parts, dict) else ():
                if one is value:
                    return f"{name}.{key}"
                if table == "_modules":
                    waiting.append((f"{name}.{key}", one))
    return None
