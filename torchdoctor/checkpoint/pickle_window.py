"""The bytes of a pickle as its machine takes them: numbers, lines, and stretches that are measured only."""

from __future__ import annotations

from torchdoctor.checkpoint.pickled import KEEP_TEXT, MAX_KEPT_BYTES, Blob
from torchdoctor.checkpoint.stretch import Stretch
from torchdoctor.model import counted

_WINDOW = 1 << 18
_LINE_LIMIT = 1 << 12


class Damaged(Exception):
    """An instruction that cannot be carried out; ``cut_off`` when only the rest of the file is missing."""

    def __init__(self, words: str, cut_off: bool = False) -> None:
        super().__init__(words)
        self.cut_off = cut_off


class Spent(Exception):
    """A budget ran out."""


class Window:
    """A window that moves over the source; a pickle of many gigabytes is passed over, not read."""

    def __init__(self, source: Stretch, start: int) -> None:
        self.source = source
        self.window = b""
        self.base = start  # of the window, in the source
        self.at = 0  # in the window
        self.kept = 0  # bytes that what was built takes, roughly

    @property
    def position(self) -> int:
        return self.base + self.at

    def refill(self, count: int) -> None:
        """Let the window begin at the position, with at least ``count`` bytes in it."""
        self.base += self.at
        self.at = 0
        self.window = self.source.read(self.base, max(count, _WINDOW))
        if len(self.window) < count:
            raise Damaged(
                f"it ends at byte {self.base + len(self.window):,}, in the middle of an instruction",
                cut_off=True,
            )

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.window):
            self.refill(count)
        taken = self.window[self.at : self.at + count]
        self.at += count
        return taken

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def line(self) -> bytes:
        end = self.window.find(b"\n", self.at)
        if end < 0:
            if len(self.window) - self.at < _LINE_LIMIT:
                self.refill(0)
            end = self.window.find(b"\n", self.at, self.at + _LINE_LIMIT)
            if end < 0:
                over = self.base + len(self.window) >= self.source.size
                raise Damaged(f"a line without end at byte {self.position:,}", cut_off=over)
        line = self.window[self.at : end]
        self.at = end + 1
        return line

    def span(self, count: int) -> bytes | Blob:
        """So many bytes, or where they are when they are many."""
        if count > self.source.size - self.position:
            raise Damaged(
                f"{counted(count, 'byte')} are announced at byte {self.position:,}, and the file ends",
                cut_off=True,
            )
        if count <= KEEP_TEXT:
            self.keep(count + 40)
            return self.take(count)
        found = Blob(self.position, count)
        self.base += self.at + count
        self.at = 0
        self.window = b""
        self.keep(60)
        return found

    def keep(self, size: int) -> None:
        self.kept += size
        if self.kept > MAX_KEPT_BYTES:
            raise Spent(f"what it builds takes more than {MAX_KEPT_BYTES >> 20} MiB")
