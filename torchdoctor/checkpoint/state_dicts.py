"""Which tensors belong to one state dict, and what else a checkpoint holds: optimizers, whole modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchdoctor.checkpoint.contents import Contents, StateDict
from torchdoctor.checkpoint.pickled import Bag, Call, Global, Table
from torchdoctor.checkpoint.tensors import Tensor, children, pairs_of
from torchdoctor.model import counted

MAX_NODES: Final = 500_000
MAX_DEPTH: Final = 24  # nobody looks for weights deeper
MAX_STATES: Final = 200
_HOLDERS: Final = frozenset({Table, Call, Bag, list, tuple})


def find(contents: Contents) -> None:
    """Fill in the state dicts, optimizers and metadata of a pickled value."""
    seen: set[int] = set()
    path: list[str] = []
    walks: list[Iterator[tuple[str, object]]] = [iter([("", contents.root)])]
    nodes = 0
    while walks:
        step, value = next(walks[-1], (None, None))
        if step is None:
            walks.pop()
            del path[-1:]
            continue
        if type(value) not in _HOLDERS or id(value) in seen:
            continue
        nodes += 1
        if nodes > MAX_NODES or len(contents.states) >= MAX_STATES:
            contents.not_read.append(
                f"it holds more than {counted(nodes, 'value')}: the rest was not looked at"
            )
            return
        seen.add(id(value))
        place = tuple(one for one in (*path, step) if one not in ("", "."))
        if not _taken(value, place, contents) and len(walks) < MAX_DEPTH:
            if len(walks) > 1:
                path.append(step)
            walks.append(children(value))


def _taken(value: object, path: tuple[str, ...], contents: Contents) -> bool:
    """Keep a module, an optimizer or a state dict; True when nothing more is to be sought in it."""
    if _is_module(value):
        assert isinstance(value, Call)
        owner = _class_of(value)
        if not path:
            contents.owner = owner
        tensors = _of_module(value)
        if tensors:
            contents.states.append(StateDict(path, tensors, owner))
        return True
    pairs = pairs_of(value)
    if pairs is None:
        return False
    if _is_optimizer(pairs):
        contents.optimizers.append(".".join(path) or "the file itself")
        return True
    found = _direct(pairs)
    if found:
        contents.states.append(StateDict(path, found))
    return False


def _direct(pairs: list[tuple[object, object]]) -> dict[str, Tensor]:
    """The tensors that stand under names; nested dictionaries are state dicts of their own."""
    return {key: item for key, item in pairs if type(key) is str and isinstance(item, Tensor)}


def _is_optimizer(pairs: list[tuple[object, object]]) -> bool:
    names = {key for key, _ in pairs[:40] if type(key) is str}
    return {"state", "param_groups"} <= names or ("optimizer_state_dict" in names and "zero_stage" in names)


def _is_module(value: object) -> bool:
    return (
        isinstance(value, Call)
        and isinstance(value.state, Table)
        and _module_part(value, "_modules") is not None
    )


def _module_part(value: Call, name: str) -> list[tuple[object, object]] | None:
    return pairs_of(value.state.get(name)) if isinstance(value.state, Table) else None


def _class_of(value: Call) -> str:
    """The class of a pickled object; what protocol 2 and older write calls copyreg for it."""
    made = value.function
    if isinstance(made, Global) and made.path in ("copyreg._reconstructor", "copy_reg._reconstructor"):
        made = value.args[0] if isinstance(value.args, tuple) and value.args else None
    return made.path if isinstance(made, Global) else ""


def _of_module(module: Call) -> dict[str, Tensor]:
    """What state_dict() of a pickled nn.Module would give, from its parameters, buffers and submodules."""
    found: dict[str, Tensor] = {}
    pending: list[tuple[Call, str, int]] = [(module, "", 0)]
    nodes = 0
    while pending and nodes < MAX_NODES:
        current, prefix, depth = pending.pop()
        nodes += 1
        transient = (
            current.state.get("_non_persistent_buffers_set") if isinstance(current.state, Table) else None
        )
        left_out = {item for item in getattr(transient, "items", ()) or () if type(item) is str}
        for part in ("_parameters", "_buffers"):
            for name, item in _module_part(current, part) or ():
                if type(name) is str and isinstance(item, Tensor) and name not in left_out:
                    found[prefix + name] = item
        for name, item in reversed(_module_part(current, "_modules") or []):
            if type(name) is str and isinstance(item, Call) and depth < 100:
                pending.append((item, f"{prefix}{name}.", depth + 1))
    return found
