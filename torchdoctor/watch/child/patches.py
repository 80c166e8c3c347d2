"""Which parts of torch were replaced by something that is not torch's.

Runs in the examined interpreter: standard library only, syntax of Python 3.6. Keeps a copy of the names of
torch's public modules and classes (references, no tensors) and compares.
"""

import os
import sys
import types

MYPY = False
if MYPY:
    from collections.abc import Iterator
    from typing import Any

_MODULES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.parallel",
    "torch.optim", "torch.optim.lr_scheduler", "torch.autograd", "torch.autograd.grad_mode", "torch.cuda",
    "torch.cuda.amp", "torch.amp", "torch.backends.cuda", "torch.backends.cudnn", "torch.utils.data",
    "torch.utils.checkpoint", "torch.utils.cpp_extension", "torch.distributed",
    "torch.distributed.distributed_c10d", "torch.multiprocessing", "torch.serialization", "torch.jit",
    "torch.linalg", "torch.fft", "torch.special", "torch.random", "torch.hub", "torch.onnx", "torch.compiler",
)  # fmt: skip
# Modules whose classes are watched as well: a method put onto nn.Linear changes every model.
_CLASSES_OF = (
    "torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.nn.parallel",
    "torch.cuda.amp", "torch.amp",
)  # fmt: skip


class Patches:
    """The state of torch's namespaces at one time; ``changes`` tells what differs and moves on to now."""

    def __init__(self, torch: "Any") -> None:
        self.folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.spaces = {}  # type: dict[str, tuple[Any, dict[str, Any]]]
        self.names = set()  # type: set[str]
        for name in _MODULES:
            module = sys.modules.get(name)
            if module is not None:
                self._add(name, module)
        for name in _CLASSES_OF:
            module = sys.modules.get(name)
            for key, value in sorted(vars(module).items()) if module is not None else ():
                if isinstance(value, type) and value.__module__.startswith("torch") and key[0] != "_":
                    self._add(name + "." + key, value)
        self._add("torch.Tensor", torch.Tensor)

    def _add(self, name: str, space: "Any") -> None:
        content = dict(vars(space))
        self.spaces[name] = (space, content)
        self.names.update(key for key in content if not key.startswith("__") or key in _SPECIAL)

    def changes(self) -> "Iterator[tuple[str, Any, Any]]":
        """Name, former and present value of what was replaced, or added to a class, by foreign code."""
        for name, (space, kept) in self.spaces.items():
            present = vars(space)
            if present == kept:
                continue
            now = dict(present)
            self.spaces[name] = (space, now)
            for key, value in now.items():
                before = kept.get(key, self)
                if before is value or (key.startswith("__") and key not in _SPECIAL):
                    continue
                if before is self:
                    # modules gain submodules and lazily made names all the time; classes do not
                    if isinstance(space, type) and callable(value) and not self._is_torchs(value):
                        yield name + "." + key, None, value
                elif self._matters(before) and not self._is_torchs(value):
                    yield name + "." + key, before, value
            for key in set(kept) - set(now):
                if self._matters(kept[key]) and not key.startswith("__"):
                    yield name + "." + key, kept[key], None

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
        return str(module).partition(".")[0] in ("torch", "functorch", "torchgen")


_SPECIAL = frozenset((
    "__call__", "__init__", "__new__", "__getattr__", "__setattr__", "__torch_function__", "__getitem__",
    "__setitem__", "__iter__", "__len__", "__add__", "__mul__", "__matmul__", "__repr__", "__deepcopy__",
    "__reduce_ex__",
))  # fmt: skip
