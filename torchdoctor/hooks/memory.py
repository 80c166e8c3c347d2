"""What is in memory when an exception is raised: the tensors that the failing lines name, modes, the rank.

Metadata only: no ``repr``, property or method of the user's objects is called, no value is read, nothing is
imported, and a GPU is never touched.
"""

from __future__ import annotations

import inspect
import linecache
import os
import platform
import re
import sys
from typing import TYPE_CHECKING, Any

from torchdoctor.model import Fact, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from torchdoctor.model import FactSource, Frame

TENSORS = "memory.tensors"
_PATHS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KEYS = re.compile(r"""\[["'](\w+)["']\]""")
_TENSORS_SHOWN = 8
_BELOW = 12  # frames below the user's
_LINES = 20  # of one expression
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
    """(name, what it is) of each tensor that the user's line, of frame ``own``, names, then of those that the
    lines below it in the stack name: the raising one, then from the outside in.

    Each tensor once; a parameter has its name in the user's model: ``net.2.weight``.
    """
    stacks = [stack for one in _chain(error) if (stack := list(_frames(one)))]
    places = [(stack, at) for stack in stacks for at, one in enumerate(stack) if own and _is(one, own)]
    stack, at = places[-1] if places else (stacks[0][-1:] if stacks else [], 0)
    found: dict[str, str] = {}
    seen: list[object] = []
    modules: list[tuple[str, Any]] = []
    below = stack[at + 1 :][-_BELOW:]
    for trace in (*stack[at : at + 1], *below[-1:], *below[:-1]):
        for name, value in _named(trace):
            if trace is stack[at] and _is_a(value, "torch.nn", "Module"):
                modules.append((name, value))
            told = describe(value)
            if told is None or len(found) == _TENSORS_SHOWN or any(value is one for one in seen):
                continue
            if trace is not stack[at]:
                if name.startswith(_handed_on(trace)):
                    continue
                name = _in_model(value, modules) or name
            seen.append(value)
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


def _named(trace: TracebackType) -> Iterator[tuple[str, object]]:
    """What the failing expression names, as far as it is found without a call; also items of containers."""
    frame, code = trace.tb_frame, _code(trace)
    local, outer = frame.f_locals, frame.f_globals
    for path in dict.fromkeys(_PATHS.findall(code)):
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


def _handed_on(trace: TracebackType) -> tuple[str, ...]:
    """``args`` and ``kwargs`` of a wrapper: what they hold has better names in other frames."""
    code = trace.tb_frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[count : count + starred]


def _code(trace: TracebackType) -> str:
    """The line that was running, with those below it until its brackets are closed."""
    frame, number, code = trace.tb_frame, trace.tb_lineno, ""
    for line in range(number, number + _LINES):
        code += linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
        if sum(map(code.count, "([{")) <= sum(map(code.count, ")]}")):
            break
    return code[:2_000]


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
