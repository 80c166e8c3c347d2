"""Whose code a line is where two processes printed their tracebacks into one another.

Python writes a traceback line by line, so processes that share a pipe put the frame of one before the code of
the other. A frame that was printed twice in a row, a frame with two codes, and codes that are owed to frames
above show it. There, code is a frame's only where every frame that still waits for its code is that one.
"""

from __future__ import annotations

from torchdoctor.model import Frame

FILE = '  File "'
_Key = tuple[str, int | None, str]


class Codes:
    """What followed each frame of one traceback."""

    __slots__ = ("behind", "blind", "indent", "key", "known", "twice", "waiting", "woven")

    def __init__(self, headed: bool) -> None:
        self.behind: dict[_Key, set[str]] = {}  # the codes that came right behind a frame
        self.known: dict[_Key, set[str]] = {}  # the codes that are a frame's and no other's
        self.waiting: list[_Key] = []  # the frames whose code has not come
        self.twice: set[_Key] = set()
        self.key: _Key = ("", None, "")
        self.indent = -1  # of the code that came last; -1 behind a frame
        self.woven = False
        self.blind = not headed  # a code may be that of one of two frames, or of one that is not shown

    def frame(self, frame: Frame) -> None:
        key = (frame.file, frame.line, frame.function)
        if key == self.key and self.indent < 0:
            self.twice.add(key)
        self.key, self.indent = key, -1
        self.waiting.append(key)

    def code(self, text: str, indent: int) -> None:
        first, same = self.indent < 0, self.indent == indent
        self.indent = indent
        if first:
            self.behind.setdefault(self.key, set()).add(text)
        elif not self.waiting or not same or text[:1] in ")]}":
            return  # the next line of a statement
        else:
            self.woven = True
        half = text[: len(text) // 2]
        for part in (half, half) if half * 2 == text and self.waiting.count(self.key) > 1 else (text,):
            self._belongs(part)

    def _belongs(self, text: str) -> None:
        whose = next((key for key in self.waiting if text in self.known.get(key, ())), None)
        if whose is None and self.waiting:
            whose = self.waiting[-1]
            self.blind = self.blind or len(set(self.waiting)) > 1
            if not self.blind:
                self.known.setdefault(whose, set()).add(text)
        if whose is not None:
            self.waiting.remove(whose)

    def sure(self, frames: list[Frame]) -> list[Frame]:
        """The frames, without code that may be another process's."""
        differ = any(len(codes) > 1 for codes in self.behind.values())
        if not self.woven and not differ and self.twice.isdisjoint(self.behind):
            return frames
        known = {} if any(len(codes) > 1 for codes in self.known.values()) else self.known
        return [
            with_code(frame, "".join(known.get((frame.file, frame.line, frame.function), ())))
            for frame in frames
        ]


def with_code(frame: Frame, code: str) -> Frame:
    return Frame(frame.file, frame.line, frame.function, code[:300], frame.package, frame.at)
