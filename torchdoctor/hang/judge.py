"""What each process waits for: the causes first, and only where there is none that it works or idles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from torchdoctor.hang import activity, building, own, ranks, workers
from torchdoctor.hang.look import Seen
from torchdoctor.hang.wait import Group, Wait

Judge = Callable[[Seen, Group], Iterator[Wait]]
# of one process the first of these that has something to say
_CAUSES: Final[tuple[Judge, ...]] = (
    own.debugger, own.stdin, building.lock, building.running, building.compiling, workers.fork,
    own.file_system, workers.loader,
    own.gil, own.lock_order, own.cuda_sync,
)  # fmt: skip
_OTHERWISE: Final[tuple[Judge, ...]] = (activity.slow, activity.idle)
_ORDER: Final = (
    "multiprocess-fork-hang",
    "hang-file-system",
    "hang-stdin",
    "hang-debugger",
    "extension-stale-lock",
    "hang-lock-order",
    "hang-gil",
    "dataloader-hang",
    "hang-cuda-sync",
    "dist-rendezvous-timeout",
    "hang-nccl-init",
    "collective-rank-branch",
)
INFO: Final = frozenset({"hang-build-running", "hang-compile-running", "hang-slow", "hang-idle"})


def judge(seen: Sequence[Seen], roots: Sequence[int]) -> tuple[list[Wait], list[Seen]]:
    """What was found, the answer first, and the processes of which nothing could be said.

    A process that works or idles is told only where nothing in its tree is wrong.
    """
    group = Group(seen)
    causes = [wait for one in seen for wait in _first(_CAUSES, one, group)]
    stands = ranks.stands_of(group)
    joined = list(ranks.together(stands))
    if joined:  # what does not end on the GPU of a rank that is waited for is NCCL's kernel
        late = {stand.seen.pid for stand in stands if stand.kind == "gpu"}
        causes = [wait for wait in causes if not (wait.rule == "hang-cuda-sync" and wait.pid in late)]
    found = [wait for wait in (*causes, *joined) if wait.rule not in INFO]
    if not found:
        found = [wait for wait in (*causes, *joined) if wait.rule in INFO]
    told = {wait.pid for wait in found}
    if not found:
        for one in seen:
            if one.pid in roots or one.second.parent not in {other.pid for other in seen}:
                found += _first(_OTHERWISE, one, group)
        told = {wait.pid for wait in found}
    unsaid = [one for one in seen if one.pid in roots and not _explained(one, group, told)]
    return sorted(found, key=lambda wait: _weight(wait)), unsaid


def _first(judges: Sequence[Judge], one: Seen, group: Group) -> list[Wait]:
    for one_judge in judges:
        found = list(one_judge(one, group))
        if found:
            return found
    return []


def _explained(one: Seen, group: Group, told: set[int]) -> bool:
    """It, something below it, or another rank of its job has an answer."""
    return (
        one.pid in told
        or any(other.pid in told for other in group.below(one))
        or (one.rank is not None and bool(told))
    )


def _weight(wait: Wait) -> tuple[int, int]:
    """Own causes before what ranks show together: a rank that stands elsewhere does so for a reason."""
    return (_ORDER.index(wait.rule) if wait.rule in _ORDER else len(_ORDER)), wait.pid
