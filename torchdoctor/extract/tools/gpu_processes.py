"""Processes and their memory on each GPU, as nvidia-smi and gpustat list them.

A row reads ``|  0  N/A  N/A  62251  C  /usr/bin/python3  725MiB |``; before driver 450 the two N/A columns
(MIG instances) are missing. A rank that was given GPU k and also keeps some hundred MiB on GPU 0 has a
CUDA context there, or tensors that a checkpoint brought along. gpustat prints one line for each GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "process_table.gpu": "int: GPU of this row",
    "process_table.strays_on_gpu0": "int: processes with some memory on GPU 0 and more on another GPU",
    "process_table.bound": "bool: the text says that the ranks choose their GPU, by torch.cuda.set_device",
}

NEIGHBOURS = 200  # rows of one table stand close together
STRAY_SHARE = 0.5

_ROW = (
    r"\|\s+(?P<gpu>\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d{1,8})\s+[CG+M]{1,4}\s+"
    r"(?P<name>\S[^|]{0,200}?)\s+(?P<mib>\d{1,7})MiB"
)
# ``[0] Tesla V100 | 35'C, 0 % | 9012 / 16160 MB | user:python/62251(725M)``
_GPUSTAT = r"\[(?P<gpu>\d{1,3})\] [^|]{3,80}\|[^|]{3,60}\|\s*\d{1,7} / +\d{1,7} MB \|(?P<users>[^\n]{3,2000})"
_USER = r"/(?P<pid>\d{1,8})\((?P<mib>\d{1,7})M\)"


@dataclass(frozen=True, slots=True)
class Row:
    """One process on one GPU."""

    gpu: int
    pid: int
    used_bytes: int


def rows(text: str) -> Iterator[Row]:
    """The rows of the process table that a text holds."""
    if "|" not in text:
        return
    if "MiB" in text:
        for found in pattern(_ROW).finditer(text):
            yield Row(int(found.group("gpu")), int(found.group("pid")), int(found.group("mib")) * 1024**2)
    elif " MB |" in text:
        for line in pattern(_GPUSTAT).finditer(text):
            for user in pattern(_USER).finditer(line["users"]):
                yield Row(int(line["gpu"]), int(user["pid"]), int(user["mib"]) * 1024**2)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one row and its table; of a report of full memory, those of the table near it."""
    own = next(rows(event.text), None)
    if own is None:
        if "out of memory" in event.text and (table := _table(event, transcript)):
            yield "strays_on_gpu0", _strays(table)
        return
    yield "gpu", own.gpu
    yield "bound", any("set_device(" in one.text for one in transcript.events)
    yield "strays_on_gpu0", _strays(_table(event, transcript))


def _table(event: Event, transcript: Transcript) -> dict[tuple[int, int], int]:
    """(process, GPU) -> bytes, of the rows around an event."""
    near = transcript.events[max(0, event.id - NEIGHBOURS) : event.id + NEIGHBOURS]
    return {(row.pid, row.gpu): row.used_bytes for one in near for row in rows(one.text)}


def _strays(table: dict[tuple[int, int], int]) -> int:
    """Processes with a little memory on GPU 0 and more elsewhere; or however much, where each of several has
    GPU 0 and one of its own: a checkpoint that each rank loads there may be larger than what it then uses.
    """
    found = 0
    second: list[int] = []  # GPUs that one process shares with no other one
    for (pid, gpu), used in table.items():
        elsewhere = {place: other for (owner, place), other in table.items() if owner == pid and place != 0}
        if gpu != 0 or used <= 0 or not elsewhere:
            continue
        found += used <= STRAY_SHARE * max(elsewhere.values())
        second.extend(elsewhere if len(elsewhere) == 1 else ())
    return max(found, len(second) if len(second) >= 2 and len(set(second)) == len(second) else 0)
