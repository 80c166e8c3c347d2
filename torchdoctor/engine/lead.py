"""The head of a report: the cause on the rank that failed first, or what a link says it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.model import Role, Severity

if TYPE_CHECKING:
    from torchdoctor.engine.select import Chain
    from torchdoctor.model import Event


def led(found: list[Chain], own: Event) -> list[Chain]:
    """The chains, that of ``own`` first: the event that the first failing rank itself failed of.

    A cause that stands there is no consequence of what only tells that others were ended.
    """
    for chain in found:
        head, under = chain
        causes = [
            one
            for one in (head, *under)
            if one.role is Role.CAUSE and one.rule.severity is Severity.FATAL and own.id in one.events()
        ]
        if not causes:
            continue
        if head.role is not Role.CAUSE:
            rest = [one for one in (head, *under) if one is not causes[0]]
            return _ahead(found, chain, (causes[0], rest), own)
        return _ahead(found, chain, chain, own)
    return found


def _ahead(found: list[Chain], old: Chain, new: Chain, own: Event) -> list[Chain]:
    """``new`` in the place of ``old``, and first unless a cause of this rank, or of none, is so already."""
    first = found[0][0]
    stays = first.role is Role.CAUSE and any(one.event.rank in (None, own.rank) for one in first.occurrences)
    rest = [chain for chain in found if chain is not old]
    if stays and found[0] is not old:
        return [new if chain is old else chain for chain in found]
    return [new, *rest]
