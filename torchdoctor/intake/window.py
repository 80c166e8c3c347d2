"""The windows of a big input: which of its lines go to the readers, given the blocks with hot lines in them.

Head and tail are read, and what lies around hot lines. A window stays open as long as some stream is in the
middle of an event, so that a traceback of one rank between the lines of 64 others is read whole.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from torchdoctor.intake.scan import DIGITS, EQUAL, KEPT_LINE, Scanner, kind_of, whole_lines
from torchdoctor.intake.source import PIECE_BYTES, Tally, _decode, _pieces
from torchdoctor.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdoctor.intake.reader import Reader
    from torchdoctor.intake.router import Router
    from torchdoctor.intake.shares import Measure
    from torchdoctor.intake.stream import Stream

# The first window of a kind shows how the run went until then: rules look at 200 events before a failure.
BEFORE, FIRST_BEFORE, OPENERS = 3, 200, 40
AFTER, NOVEL_AFTER = 6, 2
# Of lines that stand alone, so many of one kind get a window; more are read by themselves, up to EQUAL.
WINDOWS = 8
KINDS = 4_000
_ALONE = (b" NCCL INFO ", b"Warning: ")
# So many lines may lie between two lines of one event when other ranks write at the same time.
REACH = 256
# A rank that goes on for ten steps has recovered (document.py); so many lines of it show that.
STREAM_LINES = 16
_HELD_BYTES = 4 << 20
# Of a line without end so many pieces are read at its beginning and at its end; one takes as long as 8 lines.
LINE_PIECES = 12
PIECE_COST = 8


class Block(NamedTuple):
    """A stretch of whole lines: number of the first, line ends in it, indices of the hot ones, its bytes."""

    first: int
    ends: int
    hot: list[int]
    load: Callable[[], bytes]
    size: int


def index_of(mark: int) -> int:
    """The index of a hot line, as ``Scanner.look`` marks it."""
    return mark if mark >= 0 else ~mark


def scanned(read: Iterator[bytes], scanner: Scanner) -> Iterator[Block]:
    """The blocks of a stream of bytes, looked at one by one."""
    number = 1
    for data in whole_lines(read):
        ends, hot = scanner.look(data)
        yield Block(number, ends, hot, partial(bytes, data), len(data))
        number += ends


class Feeder:
    """Hands the lines that count to the router, with their numbers."""

    def __init__(self, router: Router, tally: Tally, measure: Measure) -> None:
        self.router = router
        self.tally = tally
        self.measure = measure
        self.next = 1  # the first line not passed yet
        self.until = measure.head
        self.held: deque[Block] = deque()  # the last blocks, for the lines before a hot one and for the tail
        self.lines = self.bytes = 0
        self.openers: set[bytes] = set()  # kinds of lines that windows were opened for
        self.told: dict[bytes, int] = {}  # kinds of lines that stand alone -> how many came
        # streams in the middle of an event that began in the window: the event's reader, its last line
        self.busy: dict[Stream, tuple[Reader, int]] = {}
        self.left = measure.middle  # so many lines between head and tail may still be read

    def run(self, blocks: Iterable[Block]) -> None:
        """All blocks, then the tail."""
        total = 0
        for block in blocks:
            self.tally.bytes += block.size
            if (block.hot and self.left > 0) or self.next <= self._end():
                self._block(block)
            self._hold(block)
            total = block.first + block.ends
        if not self.held:
            return
        last = self.held[-1]
        if last.load().endswith(b"\n"):
            total -= 1
        self.tally.lines += total
        if self.left <= 0:
            self.tally.notes.append(
                f"more than {counted(self.measure.middle, 'line')} around failures: what stands between line "
                f"{self.next - 1:,} and the last {self._tail():,} was not read"
            )
        start = max(self.next, total - self._tail() + 1)
        self._recall(start)
        self.until = total
        for block in list(self.held):
            if block.first + block.ends >= self.next:
                self._block(block)

    def _tail(self) -> int:
        """How many lines at the end are read: with many ranks in one log, enough to see which went on."""
        return max(self.measure.tail, STREAM_LINES * len(self.router.streams))

    def _hold(self, block: Block) -> None:
        held = self.held
        held.append(block)
        self.lines += block.ends
        self.bytes += block.size
        while len(held) > 2 and (
            self.lines - held[0].ends > self._tail() or self.bytes - held[0].size > _HELD_BYTES
        ):
            gone = held.popleft()
            self.lines -= gone.ends
            self.bytes -= gone.size

    def _recall(self, start: int) -> None:
        """Pass over all lines before ``start``."""
        if start > self.next:
            gap = start - self.next
            self.router.keep.dropped += gap
            self.next = start
            self.busy.clear()
            self.router.pause()

    def _context(self, line: bytes) -> int:
        """How many lines before a hot one are read."""
        kind = line[:160].translate(None, DIGITS)
        if kind in self.openers or len(self.openers) >= OPENERS:
            return BEFORE
        self.openers.add(kind)
        return min(FIRST_BEFORE, self.measure.tail)

    def _told(self, line: bytes) -> int:
        """How many lines of this kind came so far, if it is one whose lines stand alone; else 0."""
        if len(line) > KEPT_LINE or not any(sign in line for sign in _ALONE):
            return 0
        kind = kind_of(line)
        count = self.told.get(kind, 0) + 1
        if count > 1 or len(self.told) < KINDS:
            self.told[kind] = count
        return count

    def _block(self, block: Block) -> None:
        lines = block.load().split(b"\n")
        if not lines[-1]:
            lines.pop()
        first = block.first
        for mark in block.hot:
            index = index_of(mark)
            hot = first + index
            if (
                index >= len(lines) or self.left <= 0
            ):  # the file was cut since it was looked at, or enough is read
                break
            times = self._told(lines[index])
            if times > EQUAL:
                continue
            self._window(lines, first, hot)
            passed = hot < self.next
            wide = mark >= 0 and times <= WINDOWS
            if not passed:
                start = max(self.next, hot - (self._context(lines[index]) if wide else 0))
                self._recall(start)
            if times <= WINDOWS:
                self.until = max(self.until, hot + (AFTER if mark >= 0 else NOVEL_AFTER))
            if not passed:
                if start < first:
                    self._before(start, first)
                self._feed(lines, first, hot)
        self._window(lines, first, first + len(lines) - 1)
        if len(lines) < block.ends:
            self.next = max(self.next, first + block.ends)

    def _window(self, lines: list[bytes], first: int, last: int) -> None:
        """The lines up to ``last`` as far as the window reaches; events in it make it longer or end it."""
        while self.next <= min(last, self._end()):
            stop = self.until if self.until >= self.next else min(self._end(), self.next + 7)
            self._feed(lines, first, min(last, stop))

    def _before(self, start: int, first: int) -> None:
        for block in list(self.held):
            if block.first <= first - 1 and block.first + block.ends >= start:
                lines = block.load().split(b"\n")
                self._feed(lines, block.first, first - 1)

    def _feed(self, lines: list[bytes], first: int, last: int) -> None:
        """The lines from the next one to ``last``, as far as they stand in this block."""
        router = self.router
        last = min(last, first + len(lines) - 1)
        number = max(self.next, first)
        while number <= last:
            raw = lines[number - first]
            self.left -= 1
            if len(raw) <= PIECE_BYTES // 2:
                router.physical(number, _decode(raw), False)
            else:
                joined = False
                for piece in _ends(list(_pieces(_decode(thinned(raw))))):
                    router.physical(number, piece, joined)
                    joined = True
                    self.left -= PIECE_COST
            self._follow(router.recent, number)
            number += 1
        self.next = max(self.next, number)

    def _follow(self, stream: Stream, number: int) -> None:
        """Note whether the stream is in the middle of an event that began in the window.

        Were others followed too, tracebacks one behind the other would keep the window open for ever.
        """
        reader = stream.reader
        if reader is not None and (
            number <= self.until
            or stream.chain is not None
            or (stream in self.busy and self.busy[stream][0] is reader)
        ):
            self.busy[stream] = (reader, number)
        elif self.busy:
            self.busy.pop(stream, None)

    def _end(self) -> int:
        """The last line of the window: later than planned while an event is being read."""
        return (
            max(self.until, max(line for _, line in self.busy.values()) + REACH) if self.busy else self.until
        )


def _ends(pieces: list[str]) -> list[str]:
    """The first and the last pieces of a long line: no event keeps more of it."""
    if len(pieces) <= 2 * LINE_PIECES:
        return pieces
    return pieces[:LINE_PIECES] + pieces[-LINE_PIECES:]


def thinned(raw: bytes) -> bytes:
    """A line that was redrawn repeatedly, with one of each of its states, and the last."""
    if raw.count(b"\r") < 64:
        return raw
    states = raw.split(b"\r")
    seen: dict[bytes, bytes] = {}
    for state in states[:-2]:
        seen.setdefault(state.translate(None, DIGITS), state)
    return b"\r".join((*seen.values(), *states[-2:]))
