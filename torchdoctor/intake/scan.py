"""The block prefilter: which lines of a big input are worth reading, told at the speed of a text search.

Most of a big log is the same few lines with other numbers in them. So a block is stripped of its digits and
cut into lines, all in C; what was seen before costs one look-up in a set. A shape of line that is new is
looked at once: for the literals of the failure catalog, and for the words of failures in general. A line is
hot when it holds one of these, or, within a budget, when nothing like it came before.

Nothing but the standard library, and nothing of torchdoctor, is imported here: for a big file this module
is also run as a program by an interpreter of its own, one for each processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import RawIOBase
from itertools import islice

TYPE_CHECKING = False  # typing takes longer to import than a child to scan 2 MB
if TYPE_CHECKING:
    from typing import BinaryIO

# Two blocks fit into the second-level cache of a processor core: larger and smaller ones are slower.
BLOCK_BYTES = 1 << 17
DIGITS = b"0123456789"
SPENT = b"spent\n"
_HEX = b"abcdef"
# Bytes beyond ASCII count as letters, so that words of other languages stay whole.
_LETTERS = bytes(code if code >= 128 or chr(code).isalpha() or code == 95 else 32 for code in range(256))
_SHAPES = 100_000
_SHAPE_BYTES = 16_000_000
_WORDS = 200_000
_BARS = (b"%|", b"it/s", b"s/it", b"B/s")  # a progress bar looks new at each of its lengths
KEPT_LINE = 1_000  # a longer line is not remembered
EQUAL = 256  # so many hot lines of one shape are read, then no more of them
_NOVEL = 2_000  # so many lines that hold no known word are read because they are new
_NOVEL_EQUAL = 2
_ALIKE = 500  # so many hot lines with the same signs in them are read, however they differ otherwise
_CROWD = 16  # new lines in one block, beyond which those that differ in hexadecimal numbers only are alike
# Lines unlike any before may cost so much: a unit for each of their bytes, 64 for each new word in them. It
# is a hundred times what an honest log of 100 MB takes, and some seconds of work.
_CREDIT = 30_000_000
_WORD_COST = 64
_DATA_LINE = 4_096  # a line longer than this with next to no spaces in it is data, no message


def stripped(text: bytes) -> bytes:
    """The text without digits, white space folded: what literals and lines are compared by."""
    return b" ".join(text.translate(None, DIGITS).split())


def kind_of(line: bytes) -> bytes:
    """What a line has in common with its repeats: no digits, decimal or hexadecimal, no state of a bar."""
    if b"\r" in line:
        line = b"\r".join(state for state in line.split(b"\r") if not _is_bar(state)) or line
    return line.translate(None, DIGITS + _HEX)


def _is_bar(line: bytes) -> bool:
    return any(sign in line for sign in _BARS)


class Scanner:
    """Looks at one block of whole lines after the other; remembers which shapes of lines it has seen."""

    def __init__(self, literals: Iterable[bytes], novel: int = _NOVEL) -> None:
        self.exact: dict[bytes, list[bytes]] = {}  # whole word -> literals that hold it
        self.edge: dict[bytes, list[bytes]] = {}  # part of a word -> literals that hold it
        for literal in literals:
            self._take(stripped(literal))
        self.parts = list(self.edge)
        self.words: set[bytes] = set()
        self.signs: dict[bytes, list[bytes]] = {}  # word of the text -> literals that may stand there
        self.seen: set[bytes] = set()
        self.hot: set[bytes] = set()
        self.room = _SHAPE_BYTES
        self.counts: dict[bytes, int] = {}  # by kind
        self.worn: set[bytes] = set()
        self.kinds: dict[bytes, bool] = {}  # of the lines in a crowd: is it hot?
        self.alike: dict[bytes, int] = {}
        self.budget = self.novel = novel
        self.credit = _CREDIT
        self.spent = False  # in a part that was looked at before
        self.before = b""  # the block before, when nothing in it was hot
        self.before_ends = 0

    def _take(self, literal: bytes) -> None:
        """File a literal under the longest word that is sure to stand in the text as a word of its own."""
        spaced = literal.translate(_LETTERS)
        words = spaced.split()
        inner = words[(spaced[:1] != b" ") : len(words) - (spaced[-1:] != b" ")]
        best = max(inner, key=len, default=b"")
        if len(best) >= 4:
            self.exact.setdefault(best, []).append(literal)
            return
        best = max(words, key=len, default=b"")
        if len(best) >= 2:
            self.edge.setdefault(best, []).append(literal)

    def restart(self) -> None:
        """Begin with another file: shapes stay known, what was read of them is counted anew."""
        self.counts.clear()
        self.hot |= self.worn
        self.worn.clear()
        self.alike.clear()
        self.before = b""
        self.budget = self.novel
        self.spent = self.spent or self.credit <= 0
        self.credit = _CREDIT

    @property
    def exhausted(self) -> bool:
        """Were there so many lines unlike any before that not all of them were looked at?"""
        return self.spent or self.credit <= 0

    def look(self, block: bytes) -> tuple[int, list[int]]:
        """(line ends in the block, indices of its hot lines in order); ``~index`` for a line only new."""
        shape = block.translate(None, DIGITS)
        if shape == self.before:  # a program that says the same for ever
            return self.before_ends, []
        lines = shape.split(b"\n")
        unique = set(lines)
        fresh = unique - self.seen
        ends = len(lines) - 1
        wanted = unique & self.hot
        novel: set[bytes] = set()
        if fresh and self.credit > 0 and not self._redrawn(fresh):
            self.credit -= sum(map(len, fresh))
            hot, novel = self._judge(fresh)
            wanted |= hot | novel
        if not wanted:
            self.before, self.before_ends = shape, ends
            return ends, []
        self.before = b""
        found: list[int] = []
        counts = self.counts
        for index, line in enumerate(lines):
            if line not in wanted:
                continue
            kind = kind_of(line)
            count = counts.get(kind, 0) + 1
            if line in novel:
                if count > _NOVEL_EQUAL or self.budget <= 0:
                    continue
                self.budget -= 1
            elif count > EQUAL:
                wanted.discard(line)
                self.hot.discard(line)
                self.worn.add(line)
                continue
            if len(counts) < _SHAPES:
                counts[kind] = count
            found.append(~index if line in novel else index)
        for line in novel:
            counts.pop(kind_of(line), None)
        return ends, found

    def _redrawn(self, fresh: set[bytes]) -> bool:
        """Is there nothing in these lines but cold states that were seen before on lines of their own?"""
        states = set(b"\r".join(fresh).split(b"\r"))
        states.discard(b"")
        return states <= self.seen and states.isdisjoint(self.hot)

    def _judge(self, fresh: set[bytes]) -> tuple[set[bytes], set[bytes]]:
        """(the hot ones, the merely new ones) of lines not seen before."""
        old: list[bytes] = []
        for line in fresh:
            if b"\r" in line[:-1]:  # redrawn repeatedly: new if one of its states is
                drawn = set(line.split(b"\r"))
                drawn.discard(b"")
                states = drawn - self.seen
                if not states or (states != drawn and all(map(_is_bar, states))):
                    old.append(line)
                self._remember(states)
        fresh.difference_update(old)
        again = self._familiar(fresh) if len(fresh) > _CROWD else set()
        text = b"\n".join(line for line in fresh if len(line) <= _DATA_LINE or b" " in line[:_DATA_LINE])
        words = set(text.translate(_LETTERS).split())
        unknown = words - self.words
        if unknown:
            self.credit -= _WORD_COST * len(unknown)
            self._learn(unknown)
        signs = words & self.signs.keys()
        hot = {line for line in sorted(fresh) if self._tells(line, signs)} if signs else set()
        if len(fresh) > _CROWD:
            for line in sorted(fresh):
                if len(self.kinds) < _SHAPES and len(line) <= KEPT_LINE:
                    self.kinds.setdefault(kind_of(line), line in hot)
        cold = fresh - hot
        cold.discard(b"")
        self._remember(cold)
        hot |= again
        known = {line for line in hot if len(line) <= KEPT_LINE}
        known = set(islice(sorted(known), max(0, _SHAPES - len(self.hot))))
        self._remember(known)
        self.hot |= known
        if self.budget <= 0:
            return hot, set()
        return hot, {line for line in cold if not _is_bar(line)}

    def _familiar(self, fresh: set[bytes]) -> set[bytes]:
        """Take out the lines that are like earlier ones but for hexadecimal numbers; the hot ones of them."""
        again: set[bytes] = set()
        known: list[bytes] = []
        for line in sorted(fresh):  # the order of a set differs from run to run
            kind = kind_of(line)
            if kind not in self.kinds:
                continue
            known.append(line)
            if self.kinds[kind] and self.counts.get(kind, 0) < EQUAL:
                again.add(line)
        fresh.difference_update(known)
        return again

    def _remember(self, lines: set[bytes]) -> None:
        for line in sorted(lines):
            size = len(line)
            if size <= KEPT_LINE and self.room > size and len(self.seen) < _SHAPES:
                self.seen.add(line)
                self.room -= size

    def _learn(self, unknown: set[bytes]) -> None:
        text = b"\n".join(unknown)
        for word in unknown & self.exact.keys():
            self.signs[word] = list(self.exact[word])
        parts = [part for part in self.parts if part in text]
        if parts:
            for word in unknown:
                for part in parts:
                    if part in word and len(self.signs) < _WORDS:
                        self.signs.setdefault(word, []).extend(self.edge[part])
        if len(self.words) < _WORDS:
            self.words |= unknown

    def _tells(self, line: bytes, signs: set[bytes]) -> bool:
        if len(line) > _DATA_LINE and line.count(b" ") * 200 < len(line):
            return b"Traceback (most" in line or b"Error: " in line
        words = signs.intersection(line.translate(_LETTERS).split())
        if not words:
            return False
        key = b" ".join(sorted(words))
        count = self.alike.get(key, 0)
        if count >= _ALIKE:
            return False
        text = b" ".join(line.split())
        if not any(literal in text for word in words for literal in self.signs[word]):
            return False
        if len(self.alike) < _SHAPES:
            self.alike[key] = count + 1
        return True


def whole_lines(read: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line end, as far as there is one within 1 MiB; the last may not."""
    rest = b""
    for data in read:
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
            if len(rest) >= 8 * BLOCK_BYTES:
                yield rest
                rest = b""
    if rest:
        yield rest


def main() -> None:
    """Scan parts of a file: the arguments come in by standard input, the hot lines go out by output.

    A line of numbers for each block: where it begins, its length, how many line ends it holds, and the
    indices of its hot lines. Cold blocks in a row come as one, up to 1 MiB. Behind a part whose credit was
    used up comes ``SPENT``.
    """
    import marshal
    import sys

    path, parts, prime, novel, literals = marshal.loads(sys.stdin.buffer.read())
    scanner = Scanner(literals, novel)
    out = sys.stdout.buffer
    with open(path, "rb", buffering=0) as file:
        scanner.look(file.read(prime))
        for first, end in parts:
            scanner.restart()
            begin = length = lines = 0
            for offset, block in part(file, first, end):
                ends, found = scanner.look(block)
                if length and (found or length >= 8 * BLOCK_BYTES):
                    out.write(b"%d %d %d\n" % (begin, length, lines))
                    length = lines = 0
                if found:
                    numbers = b" ".join(b"%d" % index for index in found)
                    out.write(b"%d %d %d %s\n" % (offset, len(block), ends, numbers))
                else:
                    begin = begin if length else offset
                    length += len(block)
                    lines += ends
            if length:
                out.write(b"%d %d %d\n" % (begin, length, lines))
            if scanner.exhausted:
                out.write(SPENT)
            out.flush()


def part(file: BinaryIO | RawIOBase, first: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The blocks of whole lines between two offsets that stand at line starts, with the place of each.

    A line longer than 1 MiB is cut. The file may be read elsewhere between two blocks.
    """
    at = first
    while at < end:
        file.seek(at)
        block = _next(file, end - at)
        if not block:
            return
        yield at, block
        at += len(block)


def _next(file: BinaryIO | RawIOBase, left: int) -> bytes:
    data = file.read(min(BLOCK_BYTES, left)) or b""
    if len(data) == left:
        return data
    while len(data) < 8 * BLOCK_BYTES:
        cut = data.rfind(b"\n") + 1
        if cut:
            return data[:cut]
        more = file.read(min(BLOCK_BYTES, left - len(data)))
        if not more:
            return data
        data += more
    return data


if __name__ == "__main__":
    main()
