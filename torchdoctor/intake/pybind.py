"""A Python error that a C++ program tells of: pybind11 writes its frames below it, behind ``At:``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.frames import package_of
from torchdoctor.intake.traceback import DONE, TAKEN
from torchdoctor.model import EventKind, Frame
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

_TOLD = r"(?<![\w.])(?P<type>(?:[a-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception)): (?P<text>\S.*)"
_FRAME = r"\s+(?P<file>\S.*?)\((?P<line>\d{1,9})\): (?P<function>\S+)\s*$"
_NEAR = 2  # lines between the message and its frames


def told_by(draft: Draft, line: Line) -> bool:
    """Does the line ``At:`` follow a message that names an exception?"""
    return (
        draft.kind is EventKind.LOG
        and 0 < line.number - draft.end_line <= _NEAR
        and pattern(_TOLD).search(draft.parts[-1]) is not None
    )


class PybindReader:
    """Reads the frames, which come innermost first, and makes an exception of the message above them."""

    def __init__(self, stream: Feed, told: Draft) -> None:
        self.stream = stream
        self.draft = told

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
        found = pattern(_TOLD).search(self.draft.parts[-1])
        if found is None or not self.draft.frames:
            return
        self.draft.kind, self.draft.type = EventKind.EXCEPTION, found["type"]
        self.draft.parts = [found["text"]]
        self.draft.message_line = self.draft.line
        self.draft.frames.reverse()
