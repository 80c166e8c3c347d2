"""Big inputs: the head, the tail, and what lies around hot lines go through the readers, the rest is counted.

What the prefilter (``scan.py``) passes over is like lines that were read before. A window around a hot line
stays open as long as some stream is in the middle of an event, so that a traceback of one rank between the
lines of 64 others is read whole.
"""

from __future__ import annotations

import os
from collections import deque
from functools import partial
from io import BytesIO
from itertools import chain, islice
from time import process_time
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from torchdoctor.intake import wrapped
from torchdoctor.intake.lines import _GATE
from torchdoctor.intake.scan import BLOCK_BYTES, DIGITS, Scanner, whole_lines
from torchdoctor.intake.source import (
    PIECE_BYTES,
    Tally,
    _decode,
    _decoder,
    _pieces,
    encoding_of,
    is_binary,
    physical_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdoctor.intake.inputs import Input
    from torchdoctor.intake.router import Router
    from torchdoctor.intake.stream import Stream

# By so many lines it is learned what lines begin with.
HEAD_LINES = 80
SPLIT_BYTES = 64 << 20  # from here on several processors scan a file; below, a child costs more than it saves
# The first windows show how the run went until then: growing memory, epochs, a finished validation.
BEFORE, FIRST_BEFORE, FIRST_WINDOWS = 3, 64, 24
SAMPLES = 64  # a line for about each 64th of what was read so far: what grew over the whole run shows in them
AFTER = 6
# So many lines may lie between two lines of one event when other ranks write at the same time.
REACH = 256
# A rank that goes on for ten steps has recovered (document.py); so many lines of it show that.
STREAM_LINES = 16
_HELD_BYTES = 4 << 20
STREAM_BYTES = 8 << 30
STREAM_SECONDS = 60
CHANGED = "the file changed while it was read; what stood in it meanwhile was read"
# Besides the words by which single lines are classified: what the parts of longer events hold.
_SIGNS = (
    "raceback", 'File "', "hread ", "frame #", "above exception", "from user code", "Root Cause", ".cpp:",
    "FrameSummary", "Exception Group", "Stack (most recent", "goodbye", "panic", "sigterm", "SIGTERM",
)  # fmt: skip


class Measure(NamedTuple):
    """How much of each input is read in full: all up to ``whole`` bytes, else head and tail, in lines."""

    whole: int = 1 << 20
    head: int = 300
    tail: int = 1_200
    novel: int = 2_000


def measure_for(files: int) -> Measure:
    """For many files each gets its share, so that a folder costs little more than one file of its size."""
    if files <= 8:
        return Measure()
    return Measure(
        max(1 << 14, min(1 << 20, (1 << 23) // files)),
        max(12, min(300, 20_000 // files)),
        max(24, min(1_200, 40_000 // files)),
        max(20, min(2_000, 20_000 // files)),
    )


class Skim:
    """What the inputs of one incident share: the measure, and the shapes of lines that were seen."""

    def __init__(self, triggers: Iterable[str] = ()) -> None:
        self.measure = measure_for(1)
        self.passed: dict[str, int] = {}  # input -> lines of it that were read and not kept
        self._triggers = triggers
        self._scanner: Scanner | None = None

    def share(self, files: int) -> None:
        """Says that the next input is one of so many."""
        self.measure = measure_for(files)

    def literals(self) -> list[bytes]:
        return [text.encode() for text in (*_GATE, *_SIGNS, *self._triggers)]

    def scanner(self) -> Scanner:
        """The scanner, at the beginning of another file."""
        if self._scanner is None:
            self._scanner = Scanner(self.literals())
        self._scanner.novel = self.measure.novel
        self._scanner.restart()
        return self._scanner

    def read(self, file: BinaryIO, item: Input, router: Router, tally: Tally) -> None:
        """All of a small input, and of a big one what counts, goes to the router."""
        whole = self.measure.whole
        head = start(file, whole + 1, tally)
        path = item.path
        if path is not None and len(head) <= whole and regular_size(file) != len(head):
            tally.notes.append(CHANGED)
        form = wrapped.form_of(head, len(head) <= whole) if wrapped.may_be(head) else None
        if form is not None:
            tally.notes.append(f"read as {form.name}: line numbers count the lines in it")
            file = cast("BinaryIO", wrapped.Lines(form.lines(chunks(file, head, tally))))
            head = start(file, whole + 1, tally)
            path = None
        if len(head) <= whole:
            feed(router, physical_lines(BytesIO(head), item.name, tally))
            return
        if is_binary(head[:8192]):
            tally.binary = True
            tally.bytes = len(head)
            return
        self._big(file, head, path, router, tally)

    def _big(self, file: BinaryIO, head: bytes, path: str | None, router: Router, tally: Tally) -> None:
        read = chunks(file, head, tally, path is None)
        encoding = encoding_of(head)
        if encoding != "utf-8":
            read = _widened(read, _decoder(encoding, tally))
        else:
            lines = [_decode(line) for line in head[: 1 << 16].split(b"\n")[:HEAD_LINES]]
            router.prime([line for line in lines if len(line) < PIECE_BYTES])
        feeder = Feeder(router, tally, self.measure)
        size = regular_size(file) if path is not None else 0
        if path is None or size < SPLIT_BYTES or encoding != "utf-8":
            feeder.run(scanned(read, self.scanner()))
            changed = path is not None and tally.bytes != size and encoding == "utf-8"
        else:
            from torchdoctor.intake import parallel

            prime = min(len(head), 1 << 18)
            found = parallel.blocks(file, path, size, self.literals(), self.scanner(), prime)
            try:
                feeder.run(found)
            finally:
                found.close()
            changed = regular_size(file) != size
        if changed:
            tally.notes.append(CHANGED)


def regular_size(file: BinaryIO) -> int:
    """The size of an open file; 0 when it has none."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError, AttributeError):
        return 0


def start(file: BinaryIO, size: int, tally: Tally) -> bytes:
    """The first bytes of a file, as many as asked for or all there are."""
    parts: list[bytes] = []
    while size > 0:
        data = piece(file, min(size, 1 << 18), tally)
        if not data:
            break
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def piece(file: BinaryIO, size: int, tally: Tally) -> bytes:
    """Some bytes of a file; none at its end, or, with a note, where it cannot be read."""
    try:
        data = file.read(size)
    except (OSError, ValueError) as error:  # a truncated archive, a disk error, a closed pipe
        tally.notes.append(f"reading stopped: {getattr(error, 'strerror', None) or error}")
        return b""
    if isinstance(data, bytes):
        return data
    return b"" if data is None else str(data).encode("utf-8", "replace")


def feed(router: Router, lines: Iterable[tuple[int, str, bool]]) -> None:
    """All lines, once the first of them showed what lines begin with."""
    rest = iter(lines)
    head = list(islice(rest, HEAD_LINES))
    router.prime([text for _, text, _ in head])
    for number, text, joined in chain(head, rest):
        router.physical(number, text, joined)


def _widened(read: Iterator[bytes], widen: Callable[[bytes, bool], bytes]) -> Iterator[bytes]:
    for data in read:
        yield widen(data, False)
    yield widen(b"", True)


class Block(NamedTuple):
    """A stretch of whole lines: number of the first, line ends in it, indices of the hot ones, its bytes."""

    first: int
    ends: int
    hot: list[int]
    load: Callable[[int], bytes]  # its first bytes, as many as asked for; all for -1
    size: int


def scanned(read: Iterator[bytes], scanner: Scanner) -> Iterator[Block]:
    """The blocks of a stream of bytes, looked at one by one."""
    number = 1
    for data in whole_lines(read):
        ends, hot = scanner.look(data)
        yield Block(number, ends, hot, partial(_first_of, data), len(data))
        number += ends


def _first_of(data: bytes, size: int) -> bytes:
    return data if size < 0 else data[:size]


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
        self.windows = 0
        self.sampled = 0  # bytes read when the last sample was taken
        self.busy: dict[Stream, int] = {}  # streams in the middle of an event, the line that each had last

    def run(self, blocks: Iterable[Block]) -> None:
        """All blocks, then the tail."""
        total = 0
        for block in blocks:
            self.tally.bytes += block.size
            if block.hot or self.next <= self._end():
                self._block(block)
            elif self.tally.bytes - self.sampled > max(1 << 20, self.tally.bytes // SAMPLES):
                self._sample(block)
            self._hold(block)
            total = block.first + block.ends
        if not self.held:
            return
        last = self.held[-1]
        if last.load(-1).endswith(b"\n"):
            total -= 1
        self.tally.lines += total
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
            pause(self.router)

    def _sample(self, block: Block) -> None:
        """The first line of a cold block."""
        line, end, _ = block.load(PIECE_BYTES // 2).partition(b"\n")
        if end and block.first >= self.next:
            self.sampled = self.tally.bytes
            self._recall(block.first)
            self._feed([line], block.first, block.first)

    def _block(self, block: Block) -> None:
        lines = block.load(-1).split(b"\n")
        if not lines[-1]:
            lines.pop()
        first = block.first
        for index in block.hot:
            hot = first + index
            self._window(lines, first, hot)
            if hot >= self.next:
                start = max(self.next, hot - (FIRST_BEFORE if self.windows < FIRST_WINDOWS else BEFORE))
                self.windows += 1
                self._recall(start)
                if start < first:
                    self._before(start, first)
                self._feed(lines, first, hot)
            self.until = max(self.until, hot + AFTER)
        self._window(lines, first, first + len(lines) - 1)

    def _window(self, lines: list[bytes], first: int, last: int) -> None:
        """The lines up to ``last`` as far as the window reaches; events in it make it longer or end it."""
        while self.next <= min(last, self._end()):
            stop = self.until if self.until >= self.next else min(self._end(), self.next + 7)
            self._feed(lines, first, min(last, stop))

    def _before(self, start: int, first: int) -> None:
        for block in list(self.held):
            if block.first <= first - 1 and block.first + block.ends >= start:
                lines = block.load(-1).split(b"\n")
                self._feed(lines, block.first, first - 1)

    def _feed(self, lines: list[bytes], first: int, last: int) -> None:
        """The lines from the next one to ``last``, as far as they stand in this block."""
        router = self.router
        last = min(last, first + len(lines) - 1)
        number = max(self.next, first)
        while number <= last:
            raw = lines[number - first]
            if len(raw) <= PIECE_BYTES // 2:
                router.physical(number, _decode(raw), False)
            else:
                joined = False
                for piece in _pieces(_decode(thinned(raw))):
                    router.physical(number, piece, joined)
                    joined = True
            stream = router.recent
            if stream.reader is not None:
                self.busy[stream] = number
            elif self.busy:
                self.busy.pop(stream, None)
            number += 1
        self.next = max(self.next, number)

    def _end(self) -> int:
        """The last line of the window: later than planned while an event is being read."""
        return max(self.until, max(self.busy.values()) + REACH) if self.busy else self.until


def thinned(raw: bytes) -> bytes:
    """A line that was redrawn again and again, with one of each of its states, and the last."""
    if raw.count(b"\r") < 64:
        return raw
    states = raw.split(b"\r")
    seen: dict[bytes, bytes] = {}
    for state in states[:-2]:
        seen.setdefault(state.translate(None, DIGITS), state)
    return b"\r".join((*seen.values(), *states[-2:]))


def pause(router: Router) -> None:
    """Lines are passed over: what is open ends here, nothing that follows stands directly behind it."""
    if router.held:
        router._release()
    for stream in router.streams.values():
        for _ in range(64):  # a reader may give lines back that open another
            if stream.reader is None:
                break
            stream.close()
    router.record = None
    router.before = ""
    router.runs = ("", 0)
    router.keep.bar = None


def chunks(file: BinaryIO, head: bytes, tally: Tally, endless: bool = False) -> Iterator[bytes]:
    """The bytes of an open file behind its ``head``; damage ends them with a note.

    ``endless``: nothing says that there is an end, so there is a limit to their number, and to the work
    they may make (time that passes while a program still writes does not count).
    """
    yield head
    total = len(head)
    begun = process_time()
    while data := piece(file, BLOCK_BYTES, tally):
        total += len(data)
        yield data
        if endless and (total >= STREAM_BYTES or process_time() - begun > STREAM_SECONDS):
            tally.notes.append(
                f"reading stopped after {total >> 20:,} MiB: no end in sight (the limit is "
                f"{STREAM_BYTES >> 30} GiB, or {STREAM_SECONDS} s of work); what came until then was read"
            )
            return
