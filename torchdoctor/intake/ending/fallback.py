"""Failures in whose place the same function took another way: what that met afterwards ended the run.

``try: self._vocab_of_file()`` and ``except: self._vocab_of_hub()``: the first exception only says that this
way was none. A handler that cleans up, or words what it caught anew, calls nothing that is named alike.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from torchdoctor.model import RelationKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.elements import Draft
    from torchdoctor.model import Frame

_CALLED = r"([A-Za-z_]\w{0,80})\("
_STEM = 4  # letters of the words that two names must begin with alike


def mark_replaced(drafts: list[Draft]) -> None:
    """Mark the exceptions during whose handling another way was tried, which failed of something else."""
    for draft in drafts:
        for kind, handled in draft.links:
            if kind is RelationKind.CONTEXT and handled.type != draft.type and _is_replaced(handled, draft):
                handled.recovered = True


def _is_replaced(handled: Draft, later: Draft) -> bool:
    """Does the frame that caught the one stand in the stack of the other, at the call of a like function?"""
    if not handled.frames:
        return False
    tried = handled.frames[0]
    for frame in later.frames[:-1]:
        if (frame.file, frame.function) == (tried.file, tried.function):
            return (frame.line or 0) > (tried.line or 0) and _alike(tried, frame)
    return False


def _alike(one: Frame, other: Frame) -> bool:
    first, second = (pattern(_CALLED).search(frame.code) for frame in (one, other))
    if first is None or second is None or other.code.startswith("with "):
        return False
    words = zip(first[1].split("_"), second[1].split("_"), strict=False)
    stem = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], words))
    return first[1] == second[1] or len(stem) >= _STEM
