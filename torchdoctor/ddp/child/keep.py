"""Everything of a model and its process that a forward and a backward may change, put back afterwards.

No parameter is copied beforehand: what writes into one is seen below autograd, and only then is it copied.
"""

from __future__ import annotations

import os
import random
import sys
from collections import OrderedDict

import torch

MYPY = False
if MYPY:
    from collections.abc import Iterable, Iterator
    from typing import Any

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # before torch 1.13
    TorchDispatchMode = None  # type: ignore[assignment, misc]

# Buffers up to so many bytes are copied at once: batch norm changes its own without saying so in its schema.
EAGER_BYTES = 1 << 20
_CONTAINERS = (dict, OrderedDict, list, set)
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def storage_of(tensor: torch.Tensor) -> int | None:
    """What tells one storage from another; None for a tensor without any."""
    try:
        found = tensor.untyped_storage()._cdata
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    return int(found)


def place() -> dict[str, Any] | None:
    """The innermost line of the user's own code."""
    import linecache

    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_TORCH, _HERE, "<")):
            code = linecache.getline(file, frame.f_lineno).strip()[:200]
            return {"file": file, "line": frame.f_lineno, "function": frame.f_code.co_name, "code": code}
        frame = frame.f_back  # type: ignore[assignment]
    return None


class Written:
    """Which watched tensors are written to, where, and what they held before."""

    def __init__(self) -> None:
        self.names: dict[int, list[tuple[str, str, torch.Tensor]]] = {}
        self.saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.seen: list[dict[str, Any]] = []

    def watch(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        key = storage_of(tensor)
        if key is not None:
            self.names.setdefault(key, []).append((kind, name, tensor))

    def before_write(self, tensor: torch.Tensor) -> None:
        key = storage_of(tensor)
        if key is None or key not in self.names:
            return
        at = place()
        for kind, name, kept in self.names[key]:
            self.save(kept)
            self.seen.append({"kind": kind, "name": name, "at": at})

    def save(self, tensor: torch.Tensor) -> None:
        if id(tensor) not in self.saved:
            with torch.no_grad():
                self.saved[id(tensor)] = (tensor, tensor.detach().clone())

    def put_back(self) -> None:
        for tensor, before in self.saved.values():
            if tensor.shape == before.shape and tensor.device.type != "meta":
                tensor.data.copy_(before)


if TorchDispatchMode is not None:

    class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        supports_higher_order_operators = True  # flex attention and the like pass through

        def __init__(self, written: Written) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self._written = written
            self._writes: dict[Any, tuple[tuple[int, str], ...]] = {}

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func not in self._writes:
                schema = getattr(func, "_schema", None)
                arguments = schema.arguments if schema is not None else ()
                self._writes[func] = tuple(
                    (index, item.name)
                    for index, item in enumerate(arguments)
                    if item.alias_info is not None and item.alias_info.is_write
                )
            for index, name in self._writes[func]:
                value = args[index] if index < len(args) else kwargs.get(name)
                for tensor in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(tensor, torch.Tensor):
                        self._written.before_write(tensor)
            return func(*args, **kwargs)


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Tensors in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 20 and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif depth < 20 and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth + 1)


_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class Kept:
    """``with Kept(modules, inputs)``: the state of modules, inputs, generators and modes is put back."""

    def __init__(self, modules: Iterable[torch.nn.Module], inputs: Any) -> None:
        self.modules = list(dict.fromkeys(part for module in modules for part in module.modules()))
        self.inputs = list(tensors_in(inputs))
        self.written = Written()
        self._grads: dict[int, tuple[torch.Tensor, Any]] = {}
        self._hooks: list[tuple[torch.Tensor, str, Any, list[Any]]] = []
        self._mode: Any = None
        self._stance: Any = None

    def __enter__(self) -> Kept:
        self._attributes = [(module, dict(module.__dict__)) for module in self.modules]
        self._containers = [
            (value, value.copy())
            for _, attributes in self._attributes
            for value in attributes.values()
            if type(value) in _CONTAINERS
        ]
        self._parameters = list(
            dict.fromkeys(p for m in self.modules for p in m._parameters.values() if p is not None)
        )
        self._requires = [(p, p.requires_grad) for p in self._parameters]
        self._data = [(p, storage_of(p), p.data) for p in self._parameters]  # aliases, not copies
        self._grad_mode = torch.is_grad_enabled()
        self._rng: list[tuple[Any, Any]] = [
            (torch.set_rng_state, torch.get_rng_state()),
            (random.setstate, random.getstate()),
        ]
        numpy = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            self._rng.append((numpy.random.set_state, numpy.random.get_state()))
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            self._rng.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
        for parameter in self._parameters:
            self.stash(parameter)
            # what the user hung on it (an optimizer step in backward, a logger) is not to run
            for name in _HOOKS:
                hooks = getattr(parameter, name, None)
                self._hooks.append((parameter, name, hooks, list(hooks.items()) if hooks else []))
                if hooks:
                    hooks.clear()
        for tensor in self.inputs:
            if tensor.is_leaf and tensor.requires_grad:
                self.stash(tensor)
            self.written.watch("input", "", tensor)
        for module in self.modules:
            for buffer in module._buffers.values():
                if buffer is None or buffer.device.type == "meta":
                    continue
                if buffer.numel() * buffer.element_size() <= EAGER_BYTES or TorchDispatchMode is None:
                    self.written.save(buffer)
        if TorchDispatchMode is not None:
            self._mode = _Watch(self.written)
            self._mode.__enter__()
        stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
        if stance is not None and "torch._dynamo" in sys.modules:
            self._stance = stance("force_eager")
            self._stance.__enter__()
        return self

    def stash(self, tensor: torch.Tensor) -> None:
        """Take a leaf's gradient away until the end; what comes into its place is dropped."""
        if id(tensor) not in self._grads:
            self._grads[id(tensor)] = (tensor, tensor.grad)
            tensor.grad = None

    def __exit__(self, *error: object) -> None:
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
        torch.set_grad_enabled(self._grad_mode)
        for container, before in self._containers:
            if isinstance(container, list):
                container[:] = before
            else:
                container.clear()
                container.update(before)
        for module, attributes in self._attributes:
            module.__dict__.clear()
            module.__dict__.update(attributes)
        for parameter, storage, data in self._data:
            if storage_of(parameter) != storage:
                parameter.data = data
        self.written.put_back()
        for parameter, requires in self._requires:
            if parameter.requires_grad != requires:
                parameter.requires_grad_(requires)
        for tensor, grad in self._grads.values():
            tensor.grad = grad
        for hung, name, hooks, pairs in self._hooks:
            if hooks is not None:
                hooks.clear()
                hooks.update(pairs)
            elif getattr(hung, name, None) is not None:  # hung on it meanwhile
                setattr(hung, name, None)
        for setter, state in self._rng:
            setter(state)
