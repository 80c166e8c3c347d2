"""What reading one input may take in all: one object that all its readers draw on."""

from __future__ import annotations

from time import process_time

GIB = 1 << 30
# What a file may unpack to. Logs shrink to a 10th, endless repetition to a 300th; bombs to a 1000th and less.
UNPACKED_BYTES = 8 * GIB
UNPACKED_RATIO = 300
UNPACKED_FREE = 64 << 20
MEMBERS = 4_096  # files that are read
ENTRIES = 20_000  # entries of archives that are looked at, folders and links too
NESTING = 3
# What decompressors that are open at the same time may hold: xz -9 needs 65 MiB, zstd --ultra -21 64 MiB.
WINDOW_BYTES = 104 << 20
ONE_WINDOW_BYTES = 70 << 20
# Work may take so long, and more for much data: far slower than logs are read.
SECONDS = 5.0
BYTES_A_SECOND = 50 << 20


class Budget:
    """Bytes, members, depth, memory of decompressors and processor time that one input may take.

    ``packed_bytes`` is the size of the input where it is a compressed file or an archive. What is asked for
    beyond what is left is refused; who is refused says so in a note.
    """

    __slots__ = ("_begun", "bytes_passed", "bytes_read", "depth", "entries", "limit", "members", "window")

    def __init__(self, packed_bytes: int | None = None) -> None:
        self.limit = limit_for(packed_bytes)
        self.bytes_read = 0
        self.bytes_passed = 0  # what was passed over to get to the next file of an archive
        self.members = MEMBERS
        self.entries = ENTRIES
        self.depth = 0
        self.window = WINDOW_BYTES
        self._begun = process_time()

    @property
    def bytes_left(self) -> int:
        return max(0, self.limit - self.bytes_read)

    def late(self) -> bool:
        """Did reading take longer than its bytes account for?"""
        return process_time() - self._begun > (
            SECONDS + (self.bytes_read + self.bytes_passed) / BYTES_A_SECOND
        )

    def take_window(self) -> int:
        """Memory for one more decompressor, in bytes; 0 when none is left. To be given back."""
        taken = min(ONE_WINDOW_BYTES, self.window)
        if taken < 1 << 20:
            return 0
        self.window -= taken
        return taken

    def refusal(self) -> str:
        """Why no more is unpacked; empty while there is something left."""
        if not self.bytes_left:
            return (
                f"unpacks to more than {self.limit >> 20} MiB, far more than a log of its size would; "
                "the rest was not read"
            )
        if self.late():
            return "unpacking took far longer than logs of its size need; the rest was not read"
        return ""


def limit_for(packed_bytes: int | None) -> int:
    """How many bytes a compressed file of a size may unpack to."""
    if packed_bytes is None:
        return UNPACKED_BYTES
    return min(UNPACKED_BYTES, UNPACKED_FREE + UNPACKED_RATIO * packed_bytes)
