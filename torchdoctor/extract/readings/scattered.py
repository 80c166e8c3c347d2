"""Shapes inside of a model under DataParallel: an argument that was cut along the wrong dimension."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "scattered"

FACTS: dict[str, str] = {
    "scattered.uneven": "bool: in one replica an argument keeps the whole batch in its second dimension",
    "scattered.replicas": "int: into how many parts the batch of the other argument was cut",
    "scattered.parallel": "bool: the model is wrapped in DataParallel",
}

_SHAPE = r"(?:torch\.Size\(\[|[\[(])\s*(\d{1,6}(?:\s*,\s*\d{1,6}){1,5})\s*[\])]"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(_SHAPE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of two shapes of one line, one cut along its batch, the other along something else."""
    wrapped = next((line for line in passage.lines if re.search(r"\bDataParallel\b", line.text)), None)
    if wrapped is None or not passage.personal or "DistributedDataParallel" in passage.text:
        return
    whole = {shape[0] for line in passage.lines for shape in _shapes(line.text)}
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        shapes = _shapes(line.text)
        for one in shapes:
            for two in shapes:
                parts, rest = divmod(two[1], one[0])
                if rest == 0 and 2 <= parts <= 16 and two[0] != one[0] and {two[1], two[0] * parts} <= whole:
                    yield line.fact("scattered.uneven", True)
                    yield line.fact("scattered.replicas", parts)
                    yield wrapped.fact("scattered.parallel", True)
                    return


def _shapes(text: str) -> list[tuple[int, ...]]:
    found = (tuple(int(part) for part in hit.group(1).split(",")) for hit in _pattern().finditer(text[:400]))
    return [shape for shape in found if shape[0] > 0]
