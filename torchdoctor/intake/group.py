"""Exception groups of Python 3.11: tracebacks behind margins, members under a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.traceback import DONE, TAKEN
from torchdoctor.model import RelationKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

_MARGIN = r"^( *)([+|])(.*)$"
_DEPTH = 40


class GroupReader:
    """Feeds what stands behind each margin to a stream of its own."""

    def __init__(self, stream: Feed, line: Line) -> None:
        self.stream = stream
        self.levels: list[tuple[int, Feed, Draft | None]] = []
        self.tops: list[Draft] = []
        self.blank = 0
        self.take(line)

    def take(self, line: Line) -> int:
        found = pattern(_MARGIN).match(line.body)
        if not found:
            self.blank += 1
            return DONE if line.body.strip() or self.blank > 1 else TAKEN
        column, sign, rest = len(found[1]), found[2], found[3]
        if sign == "|":
            self._feed(line, column, rest[1:] if rest[:1] == " " else rest)
            return TAKEN
        rest = rest.strip()
        if "Exception Group Traceback" in rest:
            self._open(column, None)
            self._feed(line, column, "Traceback (most recent call last):")
            return TAKEN
        if rest.startswith("-+-") or rest.startswith("-+"):
            parent = self._finish(column)
            self._open(column + 2, parent)
            return TAKEN
        if rest[:3] == "---":
            parent = self._parent(column)
            self._finish(column)
            if any(c.isdecimal() for c in rest) or "..." in rest:
                self._open(column, parent)
            return TAKEN
        return DONE

    def _open(self, column: int, parent: Draft | None) -> None:
        if len(self.levels) < _DEPTH:
            self.levels.append((column, self.stream.fork(), parent))
            self.levels[-1][1].rank = self.stream.rank

    def _feed(self, line: Line, column: int, content: str) -> None:
        if not self.levels or self.levels[-1][0] < column:
            self._open(column, None)
        while len(self.levels) > 1 and self.levels[-1][0] > column:
            self._finish(self.levels[-1][0])
        if not self.levels:
            self._open(column, None)
        self.levels[-1][1].feed(Line(line.number, line.text, content, line.mark))

    def _parent(self, column: int) -> Draft | None:
        for level, _, parent in reversed(self.levels):
            if level == column:
                return parent
        return None

    def _finish(self, column: int) -> Draft | None:
        """Close the levels at and right of a column; the exception of the leftmost of them."""
        last: Draft | None = None
        while self.levels and self.levels[-1][0] >= column:
            _, stream, parent = self.levels.pop()
            stream.close()
            if stream.closed:
                last = stream.closed[-1]
                if parent is not None:
                    parent.link(RelationKind.GROUP, last)
                else:
                    self.tops.append(last)
        return last

    def close(self) -> None:
        self._finish(0)
        if self.tops:
            top = self.tops[0]
            if self.stream.chain is not None:
                kind, before = self.stream.chain
                self.stream.chain = None
                top.link(kind, before[-1])
            self.stream.closed = [top]
