"""What DistributedDataParallel would raise, worked out from what was seen on one process.

A small model of torch's reducer (torch/csrc/distributed/c10d/reducer.cpp: prepare_for_backward,
autograd_hook, mark_variable_ready, ensure_prior_reduction_finished) and of the node that DDP puts behind
forward's outputs (torch/nn/parallel/distributed.py: _DDPSink).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from torchdoctor.ddp.observation import Batch, Observation


class Setting(str, Enum):
    """The arguments of DDP that decide what it raises."""

    PLAIN = "find_unused_parameters=False"
    FIND_UNUSED = "find_unused_parameters=True"
    STATIC = "static_graph=True"


class Kind(str, Enum):
    """What is raised; the value is the catalog's rule where it has one."""

    UNUSED = "ddp-unused-parameters"
    TWICE = "ddp-ready-twice"
    NO_PARAMETERS = "ddp-no-grad-params"
    DEVICES = "ddp-parameters-on-devices"
    UNINITIALIZED = "ddp-uninitialized-parameters"
    GRAPH_CHANGED = "ddp-graph-changed"
    SPARSE = "ddp-sparse-gradient"
    SYNCBN = "syncbn-cpu"


@dataclass(frozen=True, slots=True)
class Raised:
    """DDP raises. ``iteration`` counts from 1; 0 is the wrapping. ``stage`` is wrap, forward or backward."""

    setting: Setting
    kind: Kind
    iteration: int
    stage: str
    parameters: tuple[str, ...]


def predict(seen: Observation, steps: int | None = None) -> dict[Setting, Raised | None]:
    """What is raised under each setting when the batches come in this order, repeatedly.

    None where nothing is raised within ``steps`` iterations (by default two rounds and one more).
    """
    if steps is None:
        steps = 2 * max(1, len(seen.batches)) + 1
    return {setting: _one(seen, setting, steps) for setting in Setting}


def _one(seen: Observation, setting: Setting, steps: int) -> Raised | None:
    wrapped = _wrap(seen, setting)
    if wrapped is not None:
        return wrapped
    run = _Run(seen, setting)
    for number in range(steps if seen.batches else 0):
        batch = seen.batches[number % len(seen.batches)]
        if batch.error is not None and batch.error.stage != "backward":
            raised = run.forward(number + 1)
            return raised  # afterwards the model itself raises, with or without DDP
        raised = run.forward(number + 1) or run.backward(number + 1, batch)
        if raised is not None or batch.error is not None:
            return raised
    return None


def _wrap(seen: Observation, setting: Setting) -> Raised | None:
    """What the constructor raises, in its own order."""
    held = [item for item in seen.parameters if not item.ignored]
    if not any(item.trainable for item in held):
        return Raised(setting, Kind.NO_PARAMETERS, 0, "wrap", ())
    if len({item.device_type for item in held}) > 1:
        rare = _fewest([(item.name, item.device_type) for item in held])
        return Raised(setting, Kind.DEVICES, 0, "wrap", rare)
    lazy = tuple(item.name for item in held if item.uninitialized)
    if lazy:
        return Raised(setting, Kind.UNINITIALIZED, 0, "wrap", lazy)
    return Raised(setting, Kind.SYNCBN, 0, "wrap", seen.syncbn_cpu) if seen.syncbn_cpu else None


def _fewest(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Names on all devices but the one that holds most."""
    devices = [device for _, device in pairs]
    most = max(dict.fromkeys(devices), key=devices.count)
    return tuple(name for name, device in pairs if device != most)


class _Run:
    """The reducer's state from one iteration to the next."""

    def __init__(self, seen: Observation, setting: Setting) -> None:
        self.names = tuple(item.name for item in seen.parameters if item.reduced)
        self.expects_sparse = {
            number for number, item in enumerate(p for p in seen.parameters if p.reduced) if item.sparse
        }
        self.all = frozenset(range(len(self.names)))
        self.setting = setting
        self.pending: tuple[int, ...] = ()
        self.counts: dict[int, int] | None = None  # of the first iteration, with static_graph

    def forward(self, iteration: int) -> Raised | None:
        return self._raised(Kind.UNUSED, iteration, "forward", self.pending) if self.pending else None

    def backward(self, iteration: int, batch: Batch) -> Raised | None:
        if self.setting is Setting.STATIC:
            return self._static(iteration, batch)
        if self.setting is Setting.FIND_UNUSED:
            fired = with_sink(batch)
            marked = self.all - batch.reachable
        else:
            fired = batch.events
            marked = frozenset()
        if not fired:
            return None  # no hook ran, so the reducer never began
        blind = sorted(marked & self.expects_sparse)
        if blind:
            return self._raised(Kind.SPARSE, iteration, "backward", blind)
        return self._mark(iteration, batch, fired, set(marked))

    def _mark(
        self, iteration: int, batch: Batch, fired: Sequence[tuple[int, int]], ready: set[int]
    ) -> Raised | None:
        unused = frozenset(ready)
        finished: int | None = None  # the graph task at whose end the iteration is closed
        for number, task in fired:
            if finished is not None and task != finished and finished != batch.task:
                break  # that task is over and the hooks are switched off: this gradient is not averaged
            if number in ready:
                again = [one for one in dict.fromkeys(n for n, _ in fired) if self._twice(one, fired, unused)]
                return self._raised(Kind.TWICE, iteration, "backward", again or [number])
            if (number in batch.sparse) != (number in self.expects_sparse):
                return self._raised(Kind.SPARSE, iteration, "backward", [number])
            ready.add(number)
            if ready >= self.all:
                finished = task
        self.pending = tuple(sorted(self.all - ready))
        return None

    @staticmethod
    def _twice(number: int, fired: Sequence[tuple[int, int]], unused: frozenset[int]) -> bool:
        times = sum(1 for other, _ in fired if other == number)
        return times > 1 or number in unused

    def _static(self, iteration: int, batch: Batch) -> Raised | None:
        if self.counts is None:
            counts: dict[int, int] = {}
            for number in (*batch.early, *(number for number, _ in with_sink(batch))):
                counts[number] = counts.get(number, 0) + 1
            self.counts = counts
            # at the end of this backward every parameter is marked, used or not
            odd = sorted(self.expects_sparse ^ batch.sparse) if counts else []
            return self._raised(Kind.SPARSE, iteration, "backward", odd) if odd else None
        left = dict(self.counts)
        for number, _ in batch.events:
            if left.get(number, 0) < 1:
                return self._raised(Kind.GRAPH_CHANGED, iteration, "backward", [number])
            left[number] -= 1
        self.pending = (
            tuple(sorted(number for number, count in left.items() if count > 0)) if batch.events else ()
        )
        return None

    def _raised(self, kind: Kind, iteration: int, stage: str, numbers: Sequence[int]) -> Raised:
        named = tuple(self.names[number] for number in numbers)
        return Raised(self.setting, kind, iteration, stage, named)


def with_sink(batch: Batch) -> tuple[tuple[int, int], ...]:
    """The hooks that run when all of forward's outputs pass through DDP's node."""
    if not batch.sink_runs:
        return batch.events
    have = {number for number, _ in batch.events}
    task = batch.events[-1][1] if batch.events else 0
    return (*batch.events, *((number, task) for number in sorted(batch.sunk - have)))
