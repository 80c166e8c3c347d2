"""The output of a program that still runs, in bounded memory: head, tail, and what lies around hot lines.

What is kept is read as a file of all of it would be: line numbers count every line that was printed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from torchdoctor.intake.lines import literals_of
from torchdoctor.intake.scan import BLOCK_BYTES, Scanner
from torchdoctor.intake.shares import Measure
from torchdoctor.intake.source import is_binary
from torchdoctor.intake.window import FIRST_BEFORE, REACH, Block, index_of
from torchdoctor.model import counted

HEAD_BYTES = Measure().whole
TAIL_BYTES = 4 << 20
HOT_BYTES = 6 << 20
_LONGEST = 8 * BLOCK_BYTES  # a line without end is cut there
_NOTHING: Callable[[], bytes] = bytes


class Output:
    """What a program has printed on each of its streams. Threads may put, one a stream, while another reads.

    ``triggers`` gives the texts by which a line is worth keeping; asked when a stream outgrows its head.
    """

    label = "<output>"  # as an input

    def __init__(self, triggers: Callable[[], Iterable[str]] = tuple, streams: int = 2) -> None:
        self._lock = threading.Lock()
        self._triggers = triggers
        self._scanner: Scanner | None = None
        self._streams = [_Stream(self._look) for _ in range(streams)]
        self._last = b""

    def put(self, stream: int, data: bytes) -> None:
        """Take what was printed on one of the streams."""
        with self._lock:
            self._streams[stream].put(data)

    def finish(self, words: str) -> None:
        """Say how the program ended, as a launcher does in the last line of its log."""
        self._last = words.encode() + b"\n"

    @property
    def open_line(self) -> bool:
        """Is the last line on the last stream that was written to without its end?"""
        return any(one.bytes and not one.ended for one in self._streams)

    def read(self) -> tuple[bytes | None, list[Block], list[str]]:
        """Everything when it is small, else blocks whose dropped ones are empty; then what must be said."""
        with self._lock:
            shown = [one for one in self._streams if one.bytes and not one.binary]
            notes = ["binary data that was printed is left out"] * any(one.binary for one in self._streams)
            if all(one.small for one in shown) and sum(one.bytes for one in shown) <= HEAD_BYTES:
                return b"".join(_closed(one.whole) for one in shown) + self._last, [], notes
            blocks = [block for one in shown for block in one.all()]
        if self._last:
            blocks.append(Block(0, 1, [0], partial(bytes, self._last), len(self._last)))
        number, found = 1, []
        for block in blocks:
            found.append(block._replace(first=number))
            number += block.ends
        return None, found, notes

    def text(self) -> Iterator[bytes]:
        """What was kept, with one line for each stretch that was not."""
        whole, blocks, _ = self.read()
        if whole is not None:
            yield whole
        for block in blocks:
            data = block.load()
            yield data or f"[not kept: {counted(block.ends, 'line')}]\n".encode()

    def _look(self, data: bytes) -> tuple[int, list[int]]:
        if self._scanner is None:
            self._scanner = Scanner(literals_of(self._triggers()))
        return self._scanner.look(data)


class _Stream:
    """One stream: the first and the last blocks, and those between that hold hot lines."""

    def __init__(self, look: Callable[[bytes], tuple[int, list[int]]]) -> None:
        self.bytes = 0
        self.ended = True
        self.binary = False
        self._look = look
        self._rest: list[bytes] = []  # until it is enough for a block; all of it while it is small
        self._waiting = 0
        self._kept: list[Block] = []  # head and middle
        self._head = HEAD_BYTES
        self._hot = HOT_BYTES
        self._before: Block | None = None  # the last block that left the tail
        self._tail: deque[Block] = deque()
        self._tail_bytes = 0
        self.small = True

    @property
    def whole(self) -> bytes:
        return b"".join(self._rest)

    def put(self, data: bytes) -> None:
        if not self.bytes:
            self.binary = is_binary(data[:8192])
        self.bytes += len(data)
        if self.binary or not data:
            return
        self.ended = data.endswith(b"\n")
        self._rest.append(data)
        self._waiting += len(data)
        if self.small and self.bytes <= HEAD_BYTES:
            return
        self.small = False
        if self._waiting >= BLOCK_BYTES:
            self._cut()

    def _cut(self) -> None:
        data = b"".join(self._rest)
        start = 0
        while len(data) - start >= BLOCK_BYTES:
            cut = data.rfind(b"\n", start, start + BLOCK_BYTES) + 1 or data.find(b"\n", start) + 1
            if not cut and len(data) - start < _LONGEST:
                break
            cut = min(cut or len(data), start + _LONGEST)
            self._block(data[start:cut])
            start = cut
        self._rest = [data[start:]]
        self._waiting = len(data) - start

    def _block(self, data: bytes) -> None:
        ends, hot = self._look(data)
        block = Block(0, ends, hot, partial(bytes, data), len(data))
        if self._head > 0:
            self._head -= len(data)
            self._kept.append(block)
            return
        self._tail.append(block)
        self._tail_bytes += len(data)
        while self._tail_bytes > TAIL_BYTES and len(self._tail) > 1:
            gone = self._tail.popleft()
            self._tail_bytes -= gone.size
            self._retire(gone, self._tail[0])

    def _retire(self, block: Block, following: Block) -> None:
        """Keep of a block that leaves the tail what events in it, or near its ends, may reach."""
        lines = range(block.ends + 1)
        needed = [(index_of(mark) - FIRST_BEFORE, index_of(mark) + REACH) for mark in block.hot]
        if following.hot:
            needed.append((block.ends + index_of(following.hot[0]) - FIRST_BEFORE, block.ends))
        if self._before is not None and self._before.hot:
            needed.append((0, index_of(self._before.hot[-1]) - self._before.ends + REACH))
        self._before = block._replace(load=_NOTHING)
        low = max(0, min((low for low, _ in needed), default=0))
        high = min(lines.stop, max((high for _, high in needed), default=0))
        if high <= low or self._hot <= 0:
            self._drop(block.ends, block.size)
            return
        text = block.load().split(b"\n")
        kept = b"\n".join(text[low:high]) + (b"\n" if high < len(text) else b"")
        before = sum(map(len, text[:low])) + low
        self._hot -= len(kept)
        self._drop(low, before)
        hot = [mark - low if mark >= 0 else ~(~mark - low) for mark in block.hot]
        ends = kept.count(b"\n")
        self._kept.append(Block(0, ends, hot, partial(bytes, kept), len(kept)))
        self._drop(block.ends - low - ends, block.size - before - len(kept))

    def _drop(self, ends: int, size: int) -> None:
        if not size:
            return
        last = self._kept[-1] if self._kept else None
        if last is not None and last.load is _NOTHING:
            self._kept[-1] = last._replace(ends=last.ends + ends, size=last.size + size)
        else:
            self._kept.append(Block(0, ends, [], _NOTHING, size))

    def all(self) -> list[Block]:
        rest = b"".join(self._rest)
        found = [*self._kept, *self._tail]
        if rest:
            rest = _closed(rest)
            ends, hot = self._look(rest)
            found.append(Block(0, ends, hot, partial(bytes, rest), len(rest)))
        return found


def _closed(data: bytes) -> bytes:
    """Whole lines: what another stream printed does not go on in the last one."""
    return data if not data or data.endswith(b"\n") else data + b"\n"
