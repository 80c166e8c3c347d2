"""How an input ended: well, badly, or unknown because it is cut or says nothing of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.progress import is_step
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import goodness, is_failure
from torchdoctor.intake.ending.got_over import (
    came_later,
    caught,
    ended_services,
    left,
    of_another,
    of_child,
    tried_between,
)
from torchdoctor.model import Ending, EventKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.elements import Draft

_LAST = 8  # events at the end of an input among which its good end is looked for
_MOST = 400
# what servers of HTTP log of a request that they answered
_ANSWERED, _ANSWERED_BADLY = r'HTTP/[\d.]+" 2\d\d\b', r'HTTP/[\d.]+" [45]\d\d\b'
_OF_RUNS = (EventKind.LOG, EventKind.LAUNCHER, EventKind.SCHEDULER)


def ending_of(drafts: list[Draft]) -> tuple[Ending, int]:
    """(ending, index of the line that says it ended well or -1), by the last failure and what follows it."""
    failure = good = -1
    steps = strength = 0
    for index in range(len(drafts) - 1, max(-1, len(drafts) - _MOST), -1):
        draft = drafts[index]
        if is_failure(draft) and not came_later(drafts, index):
            failure = index
            break
        if draft.kind in _OF_RUNS and not draft.quoted:
            text = draft.text()
            if good < 0 and len(drafts) - index <= _LAST and "systemd[" not in draft.stream:
                strength = goodness(text)
                good = index if strength else good
            steps += is_step(text)
    if good >= 0 and failure >= 0 and "prompt executed" in drafts[good].text().lower():
        good = -1  # ComfyUI says so after a failed prompt, too
    if _exited_badly(drafts) or _service_failed(drafts):
        return Ending.BAD, -1
    if good >= 0 and pattern(_ANSWERED).search(drafts[good].text()) and _refused(drafts[:good]):
        return Ending.UNKNOWN, -1
    if good == failure + 1 and failure >= 0 and rows.STATUS.search(drafts[good].text()):
        return Ending.UNKNOWN, -1  # the program's own last word was of a failure, though it exited with 0
    if failure < 0:
        return (Ending.GOOD, good) if good >= 0 else (Ending.UNKNOWN, -1)
    if good > failure and (strength == 2 or steps >= 2):
        another = of_another(drafts, failure, good) or of_child(drafts, failure)
        if another and not tried_between(drafts, failure, good):
            return Ending.UNKNOWN, -1
        return Ending.GOOD, good
    if failure < len(drafts) - 2 and caught(drafts, failure):
        return Ending.GOOD, len(drafts) - 1
    return (Ending.BAD, -1) if steps < 3 else (Ending.UNKNOWN, -1)


def _refused(drafts: list[Draft]) -> bool:
    """Did a server raise on a request, and answer it with an error? That it answers the next is no end."""
    last = drafts[-_MOST:]
    return any(
        one.kind is EventKind.EXCEPTION and pattern(_ANSWERED_BADLY).search(behind.text())
        for one, behind in pairwise(last)
    )


def _service_failed(drafts: list[Draft]) -> bool:
    """Do only docker compose's words on the ends of services come last, and one of them failed?"""
    at = len(drafts)
    while at and left(drafts[at - 1]) is not None:
        at -= 1
    return at < len(drafts) and any(index >= at for index in ended_services(drafts))


def _exited_badly(drafts: list[Draft]) -> bool:
    """Does a launcher or a scheduler say last that the run failed? No good word outweighs that."""
    for draft in reversed(drafts[-_MOST:]):
        if draft.quoted or draft.recovered:
            continue
        if draft.kind in (EventKind.LAUNCHER, EventKind.SCHEDULER) and is_failure(draft):
            return True
        if is_step(draft.text()) or rows.AGAIN.search(draft.text()[:400]):
            return False
    return False
