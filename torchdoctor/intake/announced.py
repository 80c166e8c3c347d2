"""An exception whose message announces the traceback of another one, which then stands below it.

scikit-learn ("Below are more details about the failures"), submitit ("failed during processing with trace:"),
Spark ("Please see the stack trace below.") and others paste what a job, a fold or a worker raised. A person
who writes of one failure after another does so, too: his tracebacks begin in his own script, those of a job
in the package that ran it.
"""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.model import EventKind, RelationKind

MOST_BETWEEN = 6  # lines of text between the message and the traceback
MOST_LINES = 14

_ANNOUNCES = (
    r"(?i)\b(?:(?:stack ?)?trace(?:back)?|errors?|failures?|exceptions?|reasons?|causes?|details)\b"
    r"[^.!?]{0,60}(?::|\bbelow\b.?|\bfollows?\b.?)\s*$|\bfollowing (?:error|exception|reason)s?\b.{0,20}:\s*$"
)
_SOMEBODY = r"(?i)\b(?:i|i'm|i've|me|my|we|our|now|then|again|instead|next|another)\b"


def link_announced(drafts: list[Draft]) -> None:
    """Make such exceptions wrappers of the ones below them."""
    for index, outer in enumerate(drafts):
        if not _in_package(outer, -1):
            continue
        said = [part.strip() for part in outer.parts if part.strip()][-1:]
        for draft in drafts[index + 1 : index + 2 + MOST_BETWEEN]:
            if draft.stream != outer.stream or draft.line > outer.end_line + MOST_LINES:
                break
            if draft.kind is EventKind.LOG and not draft.level and not draft.time:
                said.append(draft.text())
                continue
            if _in_package(draft, 0) and draft.headed and not _tied(outer, draft) and _announce(said):
                outer.link(RelationKind.WRAPS, draft)
            break


def _in_package(draft: Draft, place: int) -> bool:
    """Is it a traceback with a class whose first or last frame is of a package?"""
    return (
        draft.kind is EventKind.EXCEPTION
        and draft.type is not None
        and len(draft.frames) > 1
        and bool(draft.frames[place].package)
    )


def _tied(outer: Draft, draft: Draft) -> bool:
    return any(to is outer for _, to in draft.links) or any(to is draft for _, to in outer.links)


def _announce(said: list[str]) -> bool:
    """Does the last line above the traceback that is no rule announce it, and does nobody speak?"""
    words = [text.strip() for text in said if text.strip(" -=*_#\n")]
    if not words or any(pattern(_SOMEBODY).search(text) for text in words[1:]):
        return False  # what stands first is the message itself
    return bool(pattern(_ANNOUNCES).search(words[-1]))
