"""Tensors in what forward() returned, as DistributedDataParallel finds them, and what their graph reaches.

Source: torch/nn/parallel/distributed.py (_find_tensors, _post_forward) and search_unused_parameters of
reducer.cpp.
"""

from __future__ import annotations

import dataclasses

import torch

MYPY = False
if MYPY:
    from collections.abc import Iterator
    from typing import Any

    Edge = tuple[Any, int]


def found(value: Any, path: str = "outputs") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors that find_unused_parameters=True starts from, with the expression that reaches each."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from found(item, f"{path}.{names[index]}" if names else f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from found(item, f"{path}[{key!r}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from found(getattr(value, field.name), f"{path}.{field.name}")


def hidden(value: Any, path: str = "outputs", depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in the attributes of other objects, which DDP does not look into."""
    if isinstance(value, (torch.Tensor, torch.nn.Module, type)) or depth > 3:
        return
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from hidden(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from hidden(item, f"{path}[{key!r}]", depth + 1)
    elif not dataclasses.is_dataclass(value) and hasattr(value, "__dict__"):
        for name, item in vars(value).items():
            if isinstance(item, torch.Tensor):
                yield f"{path}.{name}", item
            else:
                yield from hidden(item, f"{path}.{name}", depth + 1)


def sunk(value: Any) -> list[torch.Tensor]:
    """Tensors that DDP passes through its own node, so that outputs left out of the loss still deliver."""
    from torch.utils._pytree import tree_flatten

    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def edge(tensor: torch.Tensor) -> Edge | None:
    """The node that made a tensor, and which of the node's results it is. None for a leaf."""
    return None if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def walk(starts: list[Any]) -> tuple[dict[int, Any], set[tuple[int, int]]]:
    """All nodes behind these, by identity (kept alive by the dict), and all edges between them."""
    nodes: dict[int, Any] = {}
    edges: set[tuple[int, int]] = set()
    queue = [node for node in starts if node is not None]
    while queue:
        node = queue.pop()
        if id(node) in nodes:
            continue
        nodes[id(node)] = node
        for after, number in node.next_functions:
            if after is not None:
                edges.add((id(after), number))
                queue.append(after)
    return nodes, edges


def leaves(nodes: dict[int, Any]) -> list[torch.Tensor]:
    """The leaf tensors whose gradients these nodes accumulate."""
    return [node.variable for node in nodes.values() if hasattr(node, "variable")]
