"""Literals that programs put together from their own and others' texts, as torch does with CUDA's errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from literal_programs import FORMAT, HOLE, Texts

LEAST_LITERAL = 16  # the pieces of anything shorter stand somewhere in any large program
_LEAST_PIECE = 9
_MOST_PLACES = 40  # of a piece
_TELLING = 16  # characters; or half of the literal
_MOST_PIECES = 3
_GAP = re.compile(r"[\W\d_]+")  # between pieces: punctuation of a format, and numbers put into it
_EDGE = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_LONGEST_LINE = 2000

# a piece at the end of a text, one that is a whole text, one at the beginning of a text
_FIRST, _WHOLE, _LAST = range(3)
Piece = tuple[int, str]


class Joints:
    """Collects the pieces of literals over several programs."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._splits = {
            literal: tuple(_splits(literal)) for literal in wanted if len(literal) >= LEAST_LITERAL
        }
        pieces = {piece for splits in self._splits.values() for split in splits for piece in split}
        self._wholes = {text for role, text in pieces if role == _WHOLE}
        self._firsts: dict[str, list[str]] = {}
        self._lasts: dict[str, list[str]] = {}
        for role, text in pieces:
            if role == _FIRST:
                self._firsts.setdefault(text[-_LEAST_PIECE:], []).append(text)
            elif role == _LAST:
                self._lasts.setdefault(text[:_LEAST_PIECE], []).append(text)
        self._places: dict[Piece, list[tuple[str, str]]] = {}  # program, file

    def read(self, program: str, texts: Texts) -> None:
        """Remembers where the pieces stand in a program."""
        position = 0
        for line in texts.whole.split("\n"):
            shown = line[:_LONGEST_LINE]
            if "%" in shown or "{" in shown:
                shown = FORMAT.sub(HOLE, shown)
            for text in (_EDGE.sub("", part) for part in shown.split(HOLE)):
                for piece in self._pieces_of(text):
                    places = self._places.setdefault(piece, [])
                    place = (program, texts.name_at(position))
                    if place not in places and len(places) < _MOST_PLACES:
                        places.append(place)
            position += len(line) + 1

    def _pieces_of(self, text: str) -> Iterator[Piece]:
        if text in self._wholes:
            yield _WHOLE, text
        for first in self._firsts.get(text[-_LEAST_PIECE:], ()):
            if text.endswith(first):
                yield _FIRST, first
        for last in self._lasts.get(text[:_LEAST_PIECE], ()):
            if text.startswith(last):
                yield _LAST, last

    def found(self) -> dict[str, str]:
        """literal -> its pieces and where each stands: the fewest, the longest, of one file if it can be."""
        result: dict[str, str] = {}
        for literal, splits in self._splits.items():
            whole = [split for split in splits if all(piece in self._places for piece in split)]
            if whole:
                best = min(whole, key=lambda split: (len(split), -min(len(text) for _, text in split)))
                result[literal] = " + ".join(
                    f"{text} ({program}: {file})"
                    for (_, text), (program, file) in zip(best, self._together(best), strict=True)
                )
        return result

    def _together(self, split: tuple[Piece, ...]) -> Iterator[tuple[str, str]]:
        """A place for each piece: the file, else the program, that holds most of them."""
        places = [self._places[piece] for piece in split]
        files = Counter(place for group in places for place in group)
        programs = Counter(program for group in places for program in {program for program, _ in group})
        for group in places:
            yield max(group, key=lambda place: (files[place], programs[place[0]]))


def _splits(literal: str) -> Iterator[tuple[Piece, ...]]:
    """The ways to cut a literal at its gaps, in which one piece is long enough to be no accident."""
    text = _EDGE.sub("", literal)
    enough = min(_TELLING, len(text) // 2)
    gaps = [gap.span() for gap in _GAP.finditer(text)]

    def cut(start: int, first_gap: int, before: tuple[Piece, ...]) -> Iterator[tuple[Piece, ...]]:
        if before and len(text) - start >= _LEAST_PIECE:
            yield (*before, (_LAST, text[start:]))
        if len(before) < _MOST_PIECES - 1:
            for number in range(first_gap, len(gaps)):
                end, following = gaps[number]
                if end - start >= _LEAST_PIECE:
                    piece = (_WHOLE if before else _FIRST, text[start:end])
                    yield from cut(following, number + 1, (*before, piece))

    for split in cut(0, 0, ()):
        if max(len(piece) for _, piece in split) >= enough:
            yield split
