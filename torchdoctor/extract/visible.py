"""What values of CUDA_VISIBLE_DEVICES mean on a machine of so many GPUs."""

from __future__ import annotations

from collections.abc import Collection

from torchdoctor.number import number

_FEWEST = 3  # one value, and another at the next try, are a person's


def hides_all(visible: str, count: int) -> bool | None:
    """Whether CUDA_VISIBLE_DEVICES hides all GPUs: CUDA stops at the first that is none. None for UUIDs."""
    first = visible.partition(",")[0].strip()
    if not first:
        return True
    index = number(first)
    return None if index is None else not 0 <= index < count


def workers_beyond(alone: Collection[str], count: int) -> int | None:
    """How many workers a program started, each with the next GPU alone; None where there is one for each.

    ``alone``: the values of a text that name one GPU. They are 0, 1, 2 … where a program hands them out.
    """
    indices = sorted(index for value in alone if (index := number(value)) is not None and index >= 0)
    handed_out = len(indices) >= _FEWEST and indices == list(range(len(indices)))
    return len(indices) if handed_out and len(indices) > count else None
