"""What two sizes in a message say of the batch: GPUs that share it make one a multiple of the other."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "batch.times": "int: how many times the smaller of two batches that meet in dimension 0 is in the larger",
}

_MEET = (
    r"size of tensor a \((\d{1,9})\) must match the size of tensor b \((\d{1,9})\) "
    r"at non-singleton dimension 0"
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The factor between two sizes of one message; absent where the larger is no multiple."""
    if (found := pattern(_MEET).search(event.text[:400])) is not None:
        small, large = sorted((int(found[1]), int(found[2])))
        yield "times", large // small if small and large % small == 0 else None
