"""Styled text in lines of a given width, for a terminal.

Rich tells how wide unusual characters are, nothing else: it takes as long to import as torchdoctor itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.patterns import pattern

# ECMA-48, select graphic rendition
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
# one cell each, whatever the terminal: Latin, Greek, Cyrillic, punctuation, arrows, boxes, our marks
_NARROW = (
    r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u2193\u2212\u2260\u2264\u2265"
    r"\u2500-\u259f\u2713\u2717]*"
)


class Styled:
    """Runs of text, each in one style: names of ``_CODES`` with spaces between them, "" for none."""

    __slots__ = ("plain", "runs")

    def __init__(self, text: str = "", style: str = "") -> None:
        self.plain = text
        self.runs: tuple[tuple[str, str], ...] = ((text, style),) if text else ()

    @property
    def cells(self) -> int:
        return cells(self.plain)

    def __add__(self, other: Styled | str) -> Styled:
        return _of(self.runs + (Styled(other) if isinstance(other, str) else other).runs)

    def __getitem__(self, place: slice) -> Styled:
        return _of(tuple(self._cut_out(*place.indices(len(self.plain))[:2])))

    def _cut_out(self, start: int, stop: int) -> Iterator[tuple[str, str]]:
        for text, style in self.runs:
            if part := text[max(start, 0) : max(stop, 0)]:
                yield part, style
            start, stop = start - len(text), stop - len(text)

    def rstrip(self) -> Styled:
        return self[: len(self.plain.rstrip())]

    def cut(self, width: int, ellipsis: str) -> Styled:
        """What fits into so many cells with an ellipsis behind it."""
        width = min(width - cells(ellipsis), self.cells)
        kept = self[: max(width, 0)] if _narrow(self.plain) else self[: _fitting(self.plain, width)]
        return kept + Styled(ellipsis, self.runs[-1][1] if self.runs else "")

    def wrapped(self, width: int) -> list[Styled]:
        """Lines of at most so many cells, broken between words, and within those that are longer."""
        starts = [0, *_breaks(self.plain, width)]
        return [self[at:end] for at, end in zip(starts, [*starts[1:], len(self.plain)], strict=True)]

    def ansi(self) -> str:
        """The text with the escape sequences of its styles."""
        return "".join(
            f"\x1b[{';'.join(_CODES[name] for name in style.split())}m{text}\x1b[0m" if style else text
            for text, style in self.runs
        )


def _of(runs: tuple[tuple[str, str], ...]) -> Styled:
    made = Styled("".join(text for text, _ in runs))
    made.runs = runs
    return made


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if _narrow(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _narrow(text: str) -> bool:
    return text.isascii() or pattern(_NARROW).fullmatch(text) is not None


def _fitting(text: str, width: int) -> int:
    """How many characters of a text fit into so many cells."""
    return max((at for at in range(len(text) + 1) if cells(text[:at]) <= width), default=0)


def _breaks(text: str, width: int) -> Iterator[int]:
    """Where lines begin, besides the first."""
    used = 0
    for word in pattern(r"\s*\S+\s*").finditer(text):
        start, size = word.start(), cells(word.group().rstrip())
        if size <= width - used:
            used += cells(word.group())
        elif size > width:
            pieces = _chopped(word.group(), width)
            for piece in pieces:
                if start:
                    yield start
                start += len(piece)
            used = cells(pieces[-1])
        else:
            if used and start:
                yield start
            used = cells(word.group())


def _chopped(text: str, width: int) -> list[str]:
    if _narrow(text):
        return [text[at : at + width] for at in range(0, len(text), width)]
    from rich.cells import chop_cells

    return chop_cells(text, width)
