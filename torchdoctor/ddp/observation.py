"""What the examination of a model saw, read from the plain data that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``reduced``: DDP averages its gradient; ``sparse``: DDP expects a sparse one."""

    name: str
    aliases: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    device: str
    trainable: bool
    reduced: bool
    ignored: bool
    sparse: bool
    uninitialized: bool

    @property
    def device_type(self) -> str:
        return self.device.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's program."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of the user's code. ``stage`` is forward, loss, loss-type, loss-grad or backward."""

    stage: str
    type: str
    message: str
    stack: tuple[Place, ...]
    traceback: str


@dataclass(frozen=True, slots=True)
class Output:
    """A differentiable tensor of forward's result. ``reaches``: the loss depends on it."""

    path: str
    reaches: bool


@dataclass(frozen=True, slots=True)
class Norm:
    """A batch norm in training mode that got one sample, or one value per channel."""

    name: str
    batch: int
    values: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One forward and backward. Numbers are indices into the reduced parameters.

    ``events`` are (parameter, graph task) in the order in which gradients were accumulated,
    ``early`` those of a backward that ran inside of forward; ``reachable`` from
    the outputs DDP finds, ``sunk`` from those it passes through its own node.
    """

    events: tuple[tuple[int, int], ...]
    early: tuple[int, ...]
    graded: frozenset[int]
    reachable: frozenset[int]
    sunk: frozenset[int]
    sink_runs: bool
    outputs: tuple[Output, ...]
    hidden: tuple[str, ...]
    sparse: frozenset[int]
    loss: str | None
    loss_finite: bool
    error: Failure | None
    buffers: tuple[str, ...]
    written: tuple[tuple[str, Place | None], ...]
    norms: tuple[Norm, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    frozen: tuple[str, ...]
    unfrozen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that was seen of a model and its batches."""

    torch: str
    parameters: tuple[Parameter, ...]
    training: bool
    grad_enabled: bool
    syncbn_cpu: tuple[str, ...]
    batches: tuple[Batch, ...]


def observation(data: Mapping[str, Any]) -> Observation:
    """The observation that ``child.examine`` returned, or wrote as JSON."""
    return Observation(
        torch=str(data["torch"]),
        parameters=tuple(
            Parameter(
                item["name"],
                tuple(item["aliases"]),
                tuple(item["shape"]),
                item["dtype"],
                item["device"],
                item["trainable"],
                item["reduced"],
                item["ignored"],
                item["sparse"],
                item["uninitialized"],
            )
            for item in data["parameters"]
        ),
        training=data["training"],
        grad_enabled=data["grad_enabled"],
        syncbn_cpu=tuple(data["syncbn_cpu"]),
        batches=tuple(_batch(item) for item in data["batches"]),
    )


def _batch(item: Mapping[str, Any]) -> Batch:
    return Batch(
        events=tuple((number, task) for number, task in item["events"]),
        early=tuple(item["early"]),
        graded=frozenset(item["graded"]),
        reachable=frozenset(item["reachable"]),
        sunk=frozenset(item["sunk"]),
        sink_runs=item["sink_runs"],
        outputs=tuple(Output(one["path"], one["reaches"]) for one in item["outputs"]),
        hidden=tuple(item["hidden"]),
        sparse=frozenset(item["sparse"]),
        loss=item["loss"],
        loss_finite=item["loss_finite"],
        error=failure(item["error"]),
        buffers=tuple(item["buffers"]),
        written=tuple((one["name"], place(one["at"])) for one in item["written"]),
        norms=tuple(Norm(one["name"], one["batch"], one["values"]) for one in item["norms"]),
        added=tuple(item["added"]),
        removed=tuple(item["removed"]),
        frozen=tuple(item["frozen"]),
        unfrozen=tuple(item["unfrozen"]),
    )


def failure(item: Mapping[str, Any] | None) -> Failure | None:
    """An exception as the child writes it down."""
    if item is None:
        return None
    return Failure(item["stage"], item["type"], item["message"], places(item["stack"]), item["traceback"])


def places(items: Iterable[Mapping[str, Any]]) -> tuple[Place, ...]:
    return tuple(found for found in map(place, items) if found is not None)


def place(item: Mapping[str, Any] | None) -> Place | None:
    return None if item is None else Place(item["file"], item["line"], item["function"], item["code"])
