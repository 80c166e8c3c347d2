"""A Python error that a C++ program tells of: pybind11 writes its frames below it, behind ``At:``."""

from __future__ import annotations

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.frames import package_of
from torchdoctor.intake.traceback import DONE, TAKEN
from torchdoctor.model import EventKind, Frame
from torchdoctor.patterns import pattern

_TOLD = r"(?<![\w.])(?P<type>(?:[a-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception)): (?P<text>\S.*)"
_FRAME = r"\s+(?P<file>\S.*?)\((?P<line>\d{1,9})\): (?P<function>\S+)\s*$"
_NEAR = 2  # lines between the message and its frames


def reader_of(told: Draft | None, line: Line) -> PybindReader | None:
    """The reader of what follows ``At:``, where a message that names an exception stands above it."""
    if told is None or told.kind is not EventKind.LOG or not 0 < line.number - told.end_line <= _NEAR:
        return None
    found = pattern(_TOLD).search(told.parts[-1])
    return PybindReader(told, found["type"], found["text"]) if found is not None else None


class PybindReader:
    """Reads the frames, which come innermost first, and makes an exception of the message above them."""

    def __init__(self, told: Draft, kind: str, text: str) -> None:
        self.draft = told
        self.kind, self.text = kind, text

    def take(self, line: Line) -> int:
        found = pattern(_FRAME).match(line.body)
        if found is None:
            return DONE
        file = found["file"]
        self.draft.add_frame(
            Frame(file, int(found["line"]), found["function"], "", package_of(file), line.number)
        )
        return TAKEN

    def close(self) -> None:
        if not self.draft.frames:
            return
        self.draft.kind, self.draft.type = EventKind.EXCEPTION, self.kind
        self.draft.parts, self.draft.message_line = [self.text], self.draft.line
        self.draft.frames.reverse()
