"""Which parts of torch were replaced by something that is not torch's.

Runs in the examined interpreter: standard library only, syntax of Python 3.6. Keeps a copy of the names of
torch's public modules and classes (references, no tensors) and compares.
"""

import os
import sys
import types

MYPY = False
if MYPY:
    from collections.abc import Iterable, Iterator
    from typing import Any

_MODULES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.parallel",
    "torch.optim", "torch.optim.lr_scheduler", "torch.autograd", "torch.autograd.grad_mode", "torch.cuda",
    "torch.cuda.amp", "torch.amp", "torch.backends.cuda", "torch.backends.cudnn", "torch.utils.data",
    "torch.utils.checkpoint", "torch.utils.cpp_extension", "torch.distributed",
    "torch.distributed.distributed_c10d", "torch.multiprocessing", "torch.serialization", "torch.jit",
    "torch.linalg", "torch.fft", "torch.special", "torch.random", "torch.hub", "torch.onnx", "torch.compiler",
    "torch.nn.modules.module", "torch.distributed.fsdp", "torch.utils.tensorboard", "torch._C._nn",
)  # fmt: skip
# Modules whose classes are watched as well: a method put onto nn.Linear changes every model.
_CLASSES_OF = frozenset((
    "torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.nn.parallel",
    "torch.cuda.amp", "torch.amp", "torch.distributed.fsdp",
))  # fmt: skip
_SPECIAL = frozenset((
    "__call__", "__init__", "__new__", "__getattr__", "__setattr__", "__torch_function__", "__getitem__",
    "__setitem__", "__iter__", "__len__", "__add__", "__mul__", "__matmul__", "__repr__", "__deepcopy__",
    "__reduce_ex__", "__format__", "__bool__", "__eq__", "__enter__", "__exit__", "__setstate__", "__array__",
))  # fmt: skip
_ABSENT = object()


class Patches:
    """The state of torch's namespaces at one time; ``changes`` tells what differs and moves on to now."""

    def __init__(self, torch: "Any") -> None:
        self.folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.spaces = {}  # type: dict[str, tuple[Any, dict[str, Any]]]
        self._by_name = {}  # type: dict[str, list[str]]
        self._known = {}  # type: dict[int, str]
        self._pending = list(_MODULES)
        self._add("torch.Tensor", torch.Tensor)
        self.extend()

    def extend(self) -> None:
        """Take in the modules of torch that were imported since."""
        for name in list(self._pending):
            module = sys.modules.get(name)
            if module is None:
                continue
            self._pending.remove(name)
            self._add(name, module)
            for key, value in sorted(vars(module).items()) if name in _CLASSES_OF else ():
                if isinstance(value, type) and value.__module__.startswith("torch") and key[0] != "_":
                    self._add(name + "." + key, value)

    def _add(self, name: str, space: "Any") -> None:
        if id(space) in self._known:
            return  # torch.nn.Module is also torch.nn.modules.module.Module
        self._known[id(space)] = name
        content = dict(vars(space))
        self.spaces[name] = (space, content)
        for key in content:
            if not key.startswith("__") or key in _SPECIAL:
                self._by_name.setdefault(key, []).append(name)

    def changes(self, names: "Iterable[str] | None" = None) -> "Iterator[tuple[str, Any, Any, bool]]":
        """Name, old and new value of what was replaced, or added to a class; and is it foreign to torch?

        With ``names`` only attributes of these names are compared, in a fifth of the 0.2 ms that all take.
        What is not foreign may be torch's own doing: it makes some of its names when they are first used.
        """
        if names is None:
            for name, (space, kept) in list(self.spaces.items()):
                if _differ(vars(space), kept):
                    yield from self._compare(name, space, kept)
            return
        suspects = {}  # type: dict[str, None]
        for key in names:
            for name in self._by_name.get(key, ()):
                space, kept = self.spaces[name]
                if vars(space).get(key, _ABSENT) is not kept.get(key, _ABSENT):
                    suspects[name] = None
        for name, (space, kept) in self.spaces.items():
            if len(vars(space)) != len(kept):
                suspects[name] = None
        for name in suspects:
            yield from self._compare(name, *self.spaces[name])

    def _compare(
        self, name: str, space: "Any", kept: "dict[str, Any]"
    ) -> "Iterator[tuple[str, Any, Any, bool]]":
        now = dict(vars(space))
        self.spaces[name] = (space, now)
        for key, value in now.items():
            before = kept.get(key, _ABSENT)
            if before is value or (key.startswith("__") and key not in _SPECIAL):
                continue
            if before is _ABSENT:
                # modules gain submodules and lazily made names all the time; classes do not
                if isinstance(space, type) and self._matters(value):
                    yield name + "." + key, _inherited(space, key), value, not self._is_torchs(value)
            elif self._matters(before) or self._matters(value):
                foreign = not (self._is_torchs(value) and self._is_torchs(before))
                yield name + "." + key, before, value, foreign
        for key in sorted(set(kept) - set(now)):
            if self._matters(kept[key]) and (not key.startswith("__") or key in _SPECIAL):
                yield name + "." + key, kept[key], None, isinstance(space, type)

    @staticmethod
    def _matters(before: "Any") -> bool:
        return callable(before) or isinstance(before, (types.ModuleType, property, staticmethod, classmethod))

    def _is_torchs(self, value: "Any") -> bool:
        """Was it made by torch? functools.wraps copies names but not code, so code is asked first."""
        inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        code = getattr(inner, "__code__", None)
        if code is not None:
            return bool(code.co_filename.startswith(self.folder))
        if isinstance(inner, types.ModuleType):
            return inner.__name__.partition(".")[0] in ("torch", "functorch")
        module = inner.__module__ if isinstance(inner, type) else type(inner).__module__
        if module in ("builtins", "functools"):
            module = getattr(inner, "__module__", None) or module
        if module == "builtins":
            # methods and slots of types made in C: their type tells
            module = getattr(getattr(inner, "__objclass__", None), "__module__", None) or module
        return str(module).partition(".")[0] in ("torch", "functorch", "torchgen")


def _inherited(space: type, key: str) -> "Any":
    """What the class had under this name by its bases, which an attribute of its own now hides."""
    for base in space.__mro__[1:]:
        if base is not object and key in vars(base):
            return vars(base)[key]
    return None


def _differ(now: "Any", kept: "dict[str, Any]") -> bool:
    try:
        return bool(now != kept)
    except Exception:  # a value that cannot be compared stands where another stood
        return True
