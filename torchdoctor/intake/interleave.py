"""Lines in which two ranks wrote at once: cut at the second rank's tag, what is left of the first put back.

Processes that share a pipe write in pieces. ``[rank0]: Trace[rank1]: Traceback (most …):`` and, on the next
line, ``back (most …):`` are two lines of two ranks; the tags say which piece belongs to whom.
"""

from __future__ import annotations

from torchdoctor.intake.frames import with_code
from torchdoctor.model import Frame
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

FILE = '  File "'
MARKED = "<--- HERE"
_Key = tuple[str, int | None, str]
_TAG = r"\[(?:rank|default)\d{1,6}\]:|\[\d{1,4},\d{1,6}\]<std(?:err|out|diag)>:"
_SAME = 3  # characters that a second tag of the same kind has in common with the first: "[ra", "[de", "[1,"


def is_mark(code: str) -> bool:
    """Does a line below source hold nothing but the signs that mark a part of that?"""
    return not code.removesuffix(MARKED).strip("^~- ")


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


class Codes:
    """What followed each frame of one traceback, and whose code it is.

    Python writes a traceback line by line, so processes that share a pipe put the frame of one before the
    code of the other. A frame that was printed twice in a row, a frame with two codes, and codes that are
    owed to frames above show it. There, code is a frame's only where all frames that wait for code are it, or
    where each frame came as often and there are as many codes: each process prints both in the stack's order.
    """

    __slots__ = (
        "behind",
        "blind",
        "headed",
        "indent",
        "key",
        "known",
        "order",
        "said",
        "texts",
        "twice",
        "waiting",
        "woven",
    )

    def __init__(self, headed: bool) -> None:
        self.behind: dict[_Key, set[str]] = {}  # the codes that came right behind a frame
        self.known: dict[_Key, set[str]] = {}  # the codes that are a frame's and no other's
        self.waiting: list[_Key] = []  # the frames whose code has not come
        self.twice: set[_Key] = set()
        self.key: _Key = ("", None, "")
        self.indent = -1  # of the code that came last; -1 behind a frame
        self.said = ""  # the code that came last
        self.woven = False
        self.blind = not headed  # a code may be that of one of two frames, or of one that is not shown
        self.headed = headed
        self.order: dict[_Key, int] = {}  # how often each frame came, in the order of their first time
        self.texts: dict[str, None] = {}  # the codes, in that order

    def frame(self, frame: Frame) -> None:
        key = (frame.file, frame.line, frame.function)
        if key == self.key and self.indent < 0:
            self.twice.add(key)
        self.key, self.indent = key, -1
        self.order[key] = self.order.get(key, 0) + 1
        self.waiting.append(key)

    def code(self, text: str, indent: int) -> None:
        first, same = self.indent < 0, self.indent == indent
        self.indent, self.said = indent, text
        if first:
            self.behind.setdefault(self.key, set()).add(text)
        elif not self.waiting or not same or text[:1] in ")]}":
            return  # the next line of a statement
        else:
            self.woven = True
        half = text[: len(text) // 2]
        for part in (half, half) if half * 2 == text and self.waiting.count(self.key) > 1 else (text,):
            self._belongs(part)

    def mark(self, frame: Frame, signs: str, indent: int) -> Frame:
        """The frame with what the signs below the code mark of it."""
        if signs.endswith(MARKED):  # under the line that failed, of several that TorchScript quotes
            return with_code(frame, self.said)
        begin = indent - self.indent
        end = begin + len(signs)
        fits = 0 <= begin < end <= len(frame.code) and frame.code == self.said  # no further line's
        return replace(frame, marks=(begin, end)) if fits else frame

    def _belongs(self, text: str) -> None:
        self.texts[text] = None
        whose = next((key for key in self.waiting if text in self.known.get(key, ())), None)
        if whose is None and self.waiting:
            whose = self.waiting[-1]
            self.blind = self.blind or len(set(self.waiting)) > 1
            if not self.blind:
                self.known.setdefault(whose, set()).add(text)
        if whose is not None:
            self.waiting.remove(whose)

    def _in_order(self) -> dict[_Key, set[str]]:
        """The code of each frame where several processes printed one and the same stack; else nothing."""
        times = set(self.order.values())
        if not self.headed or times == {1} or len(times) > 1 or len(self.texts) != len(self.order):
            return {}
        return {key: {text} for key, text in zip(self.order, self.texts, strict=True)}

    def sure(self, frames: list[Frame]) -> list[Frame]:
        """The frames, without code that may be another process's."""
        differ = any(len(codes) > 1 for codes in self.behind.values())
        if not self.woven and not differ and self.twice.isdisjoint(self.behind):
            return frames
        known = {} if any(len(codes) > 1 for codes in self.known.values()) else self.known
        known = self._in_order() or known
        return [
            with_code(frame, "".join(known.get((frame.file, frame.line, frame.function), ())))
            for frame in frames
        ]
