"""The place that a listing with numbered lines shows: ``valid.py`` above ``22      out = net(img)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.frames import package_of
from torchdoctor.model import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdoctor.model import Evidence, Transcript

MOST_ABOVE = 60  # lines between the name of the file and the line

_HEAD = (
    r"^\s*(?:#+|//|[Ff]ile:?|={2,}|-{2,}|\*{2})?\s*[`*\"']{0,3}(?P<file>[\w./\\~-]{1,200}\.py)[`*\"']{0,3}"
    r"\s*:?(?:\s*[=*-]{2,})?\s*$"
)
_NUMBERED = r"^\s{0,8}(?P<line>\d{1,5})(?:[:|] ?|\t| {1,2})(?P<code>\s*\S.*)$"


def listed_frame(evidence: Iterable[Evidence], transcript: Transcript) -> Frame | None:
    """The first line of evidence that stands in such a listing."""
    for item in evidence:
        if item.line is None:
            continue
        above = [
            event
            for event in transcript.events
            if event.source == item.file and item.line - MOST_ABOVE <= event.line <= item.line
        ]
        numbered = None
        for event in reversed(above):
            if event.line <= item.line <= event.end_line:
                lines = event.text.split("\n")
                at = min(item.line - event.line, len(lines) - 1)
                if (numbered := pattern(_NUMBERED).match(lines[at])) is None:
                    break
                continue
            if (
                numbered is not None
                and (head := pattern(_HEAD).match(event.text)) is not None
                and not package_of(head["file"])
            ):
                code = numbered["code"].strip()
                return Frame(head["file"], int(numbered["line"]), "", code, "", item.line)
    return None
