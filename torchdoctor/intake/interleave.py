"""Lines in which two ranks wrote at once: cut at the second rank's tag, what is left of the first put back.

Processes that share a pipe write in pieces. ``[rank0]: Trace[rank1]: Traceback (most …):`` and, on the next
line, ``back (most …):`` are two lines of two ranks; the tags say which piece belongs to whom.
"""

from __future__ import annotations

from torchdoctor.patterns import pattern

_TAG = r"\[(?:rank|default)\d{1,6}\]:|\[\d{1,4},\d{1,6}\]<std(?:err|out|diag)>:"
_SAME = 3  # characters that a second tag of the same kind has in common with the first: "[ra", "[de", "[1,"


class Interleaved:
    """Takes lines in order and gives them back with the pieces of each rank together."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: tuple[int, str] | None = None  # the cut-off line of the rank that was interrupted

    def take(self, number: int, text: str) -> list[tuple[int, str]] | None:
        """The (line number, text) that the line stands for; None for the line as it is, the usual case."""
        cut = text[:1] == "[" and text.find(text[:_SAME], _SAME) > 0
        if self.held is None and not cut:
            once = _single(text) if ": : " in text or text[:4] == "    " else text
            return None if once is text else [(number, once)]
        found: list[tuple[int, str]] = []
        held, self.held = self.held, None
        if held is not None:
            if text and not cut and not pattern(_TAG).match(text) and not text.startswith("["):
                return [(held[0], held[1] + text)]
            found.append(held)
        pieces = _pieces(text) if cut else [text]
        if len(pieces) > 1:
            self.held = (number, pieces[0])
            pieces = pieces[1:]
        elif not found and pieces[0] == text:
            return None
        return found + [(number, piece) for piece in pieces]

    def rest(self) -> list[tuple[int, str]]:
        """What is still held back at the end of the input."""
        held, self.held = self.held, None
        return [held] if held is not None else []


# Python writes the last line of a traceback in pieces: the module, a dot, the class, a colon, the message
_TWICE = (
    r"(?:(?P<module>[\w.]{2,80})(?P=module)\.\.)?(?P<type>[A-Z]\w{2,60})(?P=type): : "
    r"(?P<message>.{1,2000})(?P=message)$"
)


def _single(text: str) -> str:
    """The line of a traceback that two processes wrote at once, piece by piece; other lines as they are."""
    half, odd = divmod(len(text), 2)
    if text[:4] == "    ":
        return (
            text[:half] if not odd and half > _SAME and text[:half] == text[half:] and text.strip() else text
        )
    found = pattern(_TWICE).match(text)
    if found is None:
        return text
    module = f"{found['module']}." if found["module"] else ""
    return f"{module}{found['type']}: {found['message']}"


def _pieces(text: str) -> list[str]:
    """The text cut before every further tag of the kind that it begins with."""
    first = pattern(_TAG).match(text)
    if first is None:
        return [text]
    pieces: list[str] = []
    start = 0
    end = first.end()
    speaks = False  # something besides tags stands in the piece
    for tag in pattern(_TAG).finditer(text, end):
        # a tag that follows a tag is the same process's second one; a blank before it is a quotation's
        speaks = speaks or bool(text[end : tag.start()].strip())
        end = tag.end()
        before = text[max(0, tag.start() - 2) : tag.start()]
        quoted = before[-1:] in " `(" or before in (" '", ' "')
        if tag[0] == first[0] and "<std" in tag[0]:
            continue  # mpirun tags each piece that a process writes
        if speaks and not quoted and tag[0][:_SAME] == text[:_SAME]:
            pieces.append(text[start : tag.start()])
            start = tag.start()
            speaks = False
    pieces.append(text[start:])
    if "<std" not in first[0] or text.count(first[0]) < 2:
        return pieces
    return [_once(piece, first[0]) for piece in pieces]


def _once(piece: str, tag: str) -> str:
    """The piece of a line with its tag at the beginning alone."""
    return tag + piece[len(tag) :].replace(tag, "") if piece.startswith(tag) else piece
