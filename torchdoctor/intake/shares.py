"""How much of each input is read in full."""

from __future__ import annotations

from torchdoctor.records import Record, record


@record(frozen=True, slots=True)
class Measure(Record):
    """How much of each input is read in full: all up to ``whole`` bytes, else head and tail, in lines.

    ``novel``: lines in the middle that are read because they are new; ``middle``: all that are read there.
    """

    whole: int = 1 << 20
    head: int = 300
    tail: int = 1_200
    novel: int = 2_000
    middle: int = 40_000


def measure_for(files: int) -> Measure:
    """For many files each gets its share, so that a folder costs little more than one file of its size."""
    if files <= 8:
        return Measure()
    return Measure(
        max(1 << 14, min(1 << 20, (1 << 23) // files)),
        max(12, min(300, 20_000 // files)),
        max(24, min(1_200, 40_000 // files)),
        max(20, min(2_000, 20_000 // files)),
        max(400, min(40_000, 400_000 // files)),
    )
