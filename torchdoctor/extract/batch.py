"""What the sizes in a message say of the batch: GPUs that share it make one a multiple of the other.

Without one, flatten(1) keeps the channels in its place: their number times the rest is what the layer takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "batch.times": "int: how many times the smaller of two batches that meet in dimension 0 is in the larger",
    "batch.missing": "bool: the whole matrix that arrives, channels and positions, is one row of the layer",
}

_MEET = (
    r"size of tensor a \((\d{1,9})\) must match the size of tensor b \((\d{1,9})\) "
    r"at non-singleton dimension 0"
)
# "(64x144 and 9216x128)", and torch 0.4 to 1.6: "m1: [64 x 144], m2: [9216 x 128]"
_PRODUCT = r"(?:\(|m1: \[)(\d{1,9}) ?x ?(\d{1,9})(?: and |\], m2: \[)(\d{1,9}) ?x ?\d"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The factor between two sizes, absent where the larger is no multiple; whether a batch is missing."""
    if (found := pattern(_MEET).search(event.text[:400])) is not None:
        small, large = sorted((int(found[1]), int(found[2])))
        yield "times", large // small if small and large % small == 0 else None
    if (found := pattern(_PRODUCT).search(event.text[:400])) is not None:
        rows, columns, taken = (int(size) for size in found.groups())
        yield "missing", rows > 1 and rows * columns == taken and _of_picture(columns, event)


def _of_picture(columns: int, event: Event) -> bool:
    """Are they the positions of a picture? The widths of two models can have the same product by chance."""
    return isqrt(columns) ** 2 == columns or any("flatten(" in frame.code for frame in event.frames)
