"""How a run ended, and what it got over on its way. Nothing else says so.

``rows`` is the table of what programs print about it, ``event`` reads one line by it, ``how`` says how the
input ended, ``got_over`` marks the failures after which the same process went on, ``fallback`` those in whose
place it took another way, ``asked_for`` those that a test asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.ending.asked_for import mark_asked_for
from torchdoctor.intake.ending.got_over import mark_recovered
from torchdoctor.intake.ending.how import ending_of

if TYPE_CHECKING:
    from torchdoctor.intake.elements import Draft
    from torchdoctor.model import Ending

__all__ = ["judge"]


def judge(drafts: list[Draft]) -> Ending:
    """How the input ended; sets ``recovered`` on the drafts that its processes got over."""
    mark_asked_for(drafts)
    ending, good = ending_of(drafts)
    if any(draft.links for draft in drafts):
        from torchdoctor.intake.ending.fallback import mark_replaced

        mark_replaced(drafts)
    mark_recovered(drafts, ending, good)
    return ending
