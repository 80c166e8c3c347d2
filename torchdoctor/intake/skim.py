"""Small inputs are read line by line; of big ones head, tail and what lies around hot lines.

What the prefilter (``scan.py``) passes over is like lines that were read before.
"""

from __future__ import annotations

import os
from itertools import chain, islice
from time import process_time
from typing import TYPE_CHECKING, BinaryIO

from torchdoctor.intake.lines import literals_of
from torchdoctor.intake.shares import measure_for
from torchdoctor.intake.source import (
    PIECE_BYTES,
    Tally,
    _decode,
    _decoder,
    encoding_of,
    is_binary,
    physical_lines,
    piece,
    start,
)
from torchdoctor.intake.times import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdoctor.intake.inputs import Input
    from torchdoctor.intake.router import Router
    from torchdoctor.intake.scan import Scanner
    from torchdoctor.intake.window import Block

# By so many lines it is learned what lines begin with.
HEAD_LINES = 80
# From here on several processors scan a file; below, a child costs more than it saves.
SPLIT_BYTES = 64 << 20
STREAM_BYTES = 8 << 30
STREAM_SECONDS = 60
CHANGED = "the file changed while it was read; what stood in it meanwhile was read"
NOVEL = (
    "so many lines unlike any before that not all were looked at: of the rest only the last were read, and "
    "those like earlier ones that name a failure"
)


class Skim:
    """What the inputs of one incident share: the measure, and the shapes of lines that were seen."""

    def __init__(self, triggers: Callable[[], Iterable[str]] = tuple) -> None:
        self.measure = measure_for(1)
        self.passed: dict[str, int] = {}  # input -> lines of it that were read and not kept
        self._triggers = triggers
        self._scanner: Scanner | None = None

    def share(self, files: int) -> None:
        """Says that the next input is one of so many."""
        self.measure = measure_for(files)

    def literals(self) -> list[bytes]:
        return literals_of(self._triggers())

    def scanner(self) -> Scanner:
        """The scanner, at the beginning of another file."""
        from torchdoctor.intake.scan import Scanner

        if self._scanner is None:
            self._scanner = Scanner(self.literals())
        self._scanner.novel = self.measure.novel
        self._scanner.restart()
        self._scanner.spent = False
        return self._scanner

    def read_kept(
        self, whole: bytes | None, blocks: list[Block], notes: list[str], router: Router, tally: Tally
    ) -> None:
        """What was kept of the output of a program, as ``Output.read`` gives it."""
        tally.notes += notes
        if whole is not None:
            feed(router, physical_lines(whole, tally), tally)
            return
        from torchdoctor.intake.window import Feeder

        lines = [_decode(line) for line in blocks[0].load()[: 1 << 16].split(b"\n")[:HEAD_LINES]]
        router.prime([line for line in lines if len(line) < PIECE_BYTES])
        Feeder(router, tally, self.measure).run(blocks)

    def read(self, file: BinaryIO, item: Input, router: Router, tally: Tally) -> None:
        """All of a small input, and of a big one what counts, goes to the router."""
        whole = self.measure.whole
        path = item.path
        size = regular_size(file) if path is not None else 0  # 0 for files that the kernel makes up, too
        head = start(file, whole + 1, tally)
        if (
            path is not None
            and len(head) <= whole
            and (regular_size(file) != size or (size and size != len(head)))
        ):
            tally.notes.append(CHANGED)
        if len(head) <= whole:
            feed(router, physical_lines(head, tally), tally)
            return
        if is_binary(head[:8192]):
            tally.binary = True
            tally.bytes = len(head)
            return
        self._big(file, head, path, router, tally)

    def _big(self, file: BinaryIO, head: bytes, path: str | None, router: Router, tally: Tally) -> None:
        from torchdoctor.intake.window import Feeder, scanned

        read = chunks(file, head, tally, path is None)
        encoding = encoding_of(head)
        if encoding != "utf-8":
            read = _widened(read, _decoder(encoding, tally))
        else:
            lines = [_decode(line) for line in head[: 1 << 16].split(b"\n")[:HEAD_LINES]]
            router.prime([line for line in lines if len(line) < PIECE_BYTES])
        feeder = Feeder(router, tally, self.measure)
        scanner = self.scanner()
        size = regular_size(file) if path is not None else 0
        if path is None or size < SPLIT_BYTES or encoding != "utf-8":
            feeder.run(scanned(read, scanner))
            changed = path is not None and tally.bytes != size and encoding == "utf-8"
        else:
            from torchdoctor.intake import parallel

            prime = min(len(head), 1 << 18)
            found = parallel.blocks(file, path, size, self.literals(), scanner, prime)
            try:
                feeder.run(found)
            finally:
                found.close()
            changed = regular_size(file) != size
        if scanner.exhausted and feeder.left > 0:
            tally.notes.append(NOVEL)
        if changed:
            tally.notes.append(CHANGED)


def regular_size(file: BinaryIO) -> int:
    """The size of an open file; 0 when it has none."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError, AttributeError):
        return 0


def feed(router: Router, lines: Iterable[tuple[int, str, bool]], tally: Tally) -> None:
    """All lines, once the first of them showed what lines begin with."""
    rest = iter(lines)
    head = list(islice(rest, HEAD_LINES))
    if _falls(head):
        from torchdoctor.intake.turned import in_order

        rest = iter(in_order([*head, *rest], tally))
        head = list(islice(rest, HEAD_LINES))
    router.prime([text for _, text, _ in head])
    for number, text, joined in chain(head, rest):
        router.physical(number, text, joined)


def _falls(head: list[tuple[int, str, bool]]) -> bool:
    """Does the second time of the first lines lie before the first? Then all are looked at."""
    first = ""
    for _, text, _ in head:
        at = stamp(text)
        if at is not None and at != first:
            if first:
                return at < first
            first = at
    return False


def _widened(read: Iterator[bytes], widen: Callable[[bytes, bool], bytes]) -> Iterator[bytes]:
    for data in read:
        yield widen(data, False)
    yield widen(b"", True)


def chunks(file: BinaryIO, head: bytes, tally: Tally, endless: bool = False) -> Iterator[bytes]:
    """The bytes of an open file behind its ``head``; damage ends them with a note.

    ``endless``: nothing says that there is an end, so there is a limit to their number, and to the work
    they may make (time that passes while a program still writes does not count).
    """
    yield head
    total = len(head)
    begun = process_time()
    while data := piece(file, 1 << 17, tally):
        total += len(data)
        yield data
        if endless and (total >= STREAM_BYTES or process_time() - begun > STREAM_SECONDS):
            tally.notes.append(
                f"reading stopped after {total >> 20:,} MiB: the end was not reached (the limit is "
                f"{STREAM_BYTES >> 30} GiB, or {STREAM_SECONDS} s of work); what came before was read"
            )
            return
