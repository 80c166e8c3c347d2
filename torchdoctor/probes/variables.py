"""Environment variables that change what torch, CUDA, NCCL or the loader do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

_NAMES = tuple(CATALOGUE["variables"])


def _look(context: Context) -> Iterator[Fact]:
    for name in _NAMES:
        yield told(name, partial(context.machine.variable, name[len("env.") :]), "environment")


PROBES = (Probe(_NAMES, Cost.FREE, _look),)
