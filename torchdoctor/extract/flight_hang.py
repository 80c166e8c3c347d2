"""What the flight records of several ranks say together: whom the others wait for, and what it does instead.

A rank that waits in one process group may be waited for in another one, so the ranks are followed from group
to group until one is found that waits for nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from torchdoctor.extract import once_a_text
from torchdoctor.extract.flight import Call, Record, records, sizes_differ, waited_at
from torchdoctor.model import Transcript
from torchdoctor.number import elements as elements_of
from torchdoctor.patterns import pattern
from torchdoctor.records import Record as Frozen
from torchdoctor.records import record as frozen

# calls that average gradients, or that gather parameters and average gradients of sharded ones
_TRAINING = (
    "all_reduce", "allreduce_coalesced", "reduce", "_reduce_scatter_base", "reduce_scatter",
    "reduce_scatter_tensor_coalesced", "_allgather_base", "all_gather_into_tensor_coalesced",
)  # fmt: skip
_BY_LIBRARY = (
    "torch/distributed/fsdp/",
    "torch/nn/parallel/distributed.py",
    "/deepspeed/",
    "/megatron/core/",
)
# calls that gather a state to save it, or spread one that was loaded
_OF_A_STATE = ("torch/distributed/checkpoint/", "/_state_dict_utils.py")
_LARGE = 1024  # elements; a loss, a metric or a flag that is averaged has fewer


@frozen(frozen=True, slots=True)
class Astray(Frozen):
    """A rank that is not in the call in which most others wait.

    ``call`` is where it waits itself, None for one that waits in none. ``shared`` tells whether the others
    make that call from the same line, too, so that it only came there early; None where nothing tells.
    """

    rank: int
    call: Call | None
    training: bool  # the others wait in a call of training
    shared: bool | None


class Waits:
    """The calls in which the ranks of a group wait, counted once for all of them."""

    def __init__(self, group: Sequence[Record]) -> None:
        self.heads = {id(record): record.calls[0] for record in group if record.pending}
        self.votes = Counter((call.seq, call.op) for call in self.heads.values())
        self.calls = {(call.seq, call.op): call for call in self.heads.values()}

    def of_others(self, record: Record) -> Call | None:
        """The call in which most of the other ranks wait; of as many the one with the highest number."""
        mine = self.heads.get(id(record))
        own = (mine.seq, mine.op) if mine is not None else None
        votes = [(count - (key == own), key) for key, count in self.votes.items()]
        count, key = max(votes, default=(0, (0, "")))
        return self.calls[key] if count > 0 else None


def is_training(call: Call) -> bool:
    """Does a step of training make this call, as far as its kind, size and frames tell?"""
    files = [frame.file.replace("\\", "/") for frame in call.event.frames]
    if any(part in file for file in files for part in _OF_A_STATE):
        return False
    if any(part in file for file in files for part in _BY_LIBRARY):
        return True
    return call.op in _TRAINING and (elements(call) >= _LARGE or (not call.place and elements(call) > 1))


def elements(call: Call) -> int:
    """How many elements the call's inputs have together."""
    shapes = pattern(r"\[([\d, ]*)\]").findall(call.input)
    return sum(map(elements_of, shapes))


@frozen(frozen=True, slots=True)
class Together(Frozen):
    """All records of a text: by process group, the ranks astray in each, and whom the others wait for."""

    groups: dict[str, list[Record]]
    astray: dict[tuple[str, int | None], Astray]
    roots: tuple[int, ...]
    circle: tuple[int, ...]
    sizes_differ: bool  # in some call in which a rank waits


@once_a_text
def together(transcript: Transcript) -> Together:
    """What the records say together."""
    everything = records(transcript)
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in everything:
        groups[record.group].append(record)
    odd: dict[tuple[str, int | None], Astray] = {
        (name, one.rank): one for name, group in groups.items() for one in _astray(group, everything)
    }
    uneven = any(
        sizes_differ(waited_at(seq, group))
        for group in groups.values()
        if len(group) > 1
        for seq in {call.seq for record in group for call in record.calls}
    )
    return Together(groups, odd, *last_waited_for(everything), uneven)


def _astray(group: Sequence[Record], everything: Sequence[Record]) -> Iterator[Astray]:
    waits = Waits(group)
    for record in group:
        there = waits.of_others(record)
        if record.rank is None or there is None:
            continue
        others = [one for one in group if one.rank not in (None, record.rank)]
        if record.pending and record.calls[0].seq < there.seq:  # it waits itself, in an earlier call
            made = _at(record.calls[0].seq, others)
            if made is None:
                continue
            there = made
        here = _at(there.seq, (record,))
        if here is not None and (here.op, here.place) == (there.op, there.place):
            continue
        if here is None and record.enqueued >= there.seq:
            continue  # called long ago, its entry is gone
        if here is not None:
            yield Astray(record.rank, here, is_training(there), _shared(here, record, others))
            continue
        elsewhere = next(
            (
                (other, other.calls[0])
                for other in everything
                if other.rank == record.rank and other.group != record.group and other.pending
            ),
            None,
        )
        if elsewhere is None:
            yield Astray(record.rank, None, is_training(there), None)
            continue
        mine, call = elsewhere
        peers = [one for one in everything if one.group == mine.group and one.rank != record.rank]
        yield Astray(record.rank, call, is_training(there), _shared(call, mine, peers))


def _at(seq: int, group: Sequence[Record]) -> Call | None:
    """The call that most of these records have at a number."""
    made = [call for record in group for call in (*record.done, *record.calls) if call.seq == seq]
    if not made:
        return None
    votes = Counter(call.op for call in made)
    return max(made, key=lambda call: votes[call.op])


def _shared(call: Call, record: Record, others: Sequence[Record]) -> bool | None:
    """Do the others make the call from the same line? False where the rank went on training after it."""
    making = sum((call.op, call.place) in one.places for one in others)
    if call.place and others and 2 * making >= len(others):
        return True
    after = [one for one in (*record.done, *record.calls) if one.seq > call.seq]
    if any(is_training(one) for one in after):
        return False
    return None


def last_waited_for(everything: Sequence[Record]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(ranks that wait for nobody while others wait for them, ranks that wait for each other in a circle).

    A rank without any record counts to the first: nobody knows what it does.
    """
    wanted: dict[int, set[int]] = {}
    known = {record.rank for record in everything if record.rank is not None}
    last: dict[tuple[str, int], int] = {
        (record.group, record.rank): record.enqueued for record in everything if record.rank is not None
    }
    for record in everything:
        if record.rank is None or not record.pending or record.seq is None:
            continue
        for member in record.members:
            if member != record.rank and last.get((record.group, member), -1) < record.seq:
                wanted.setdefault(record.rank, set()).add(member)
    waiting = {record.rank for record in everything if record.rank is not None and record.pending}
    roots = set().union(*wanted.values()) - waiting
    if roots:
        lost = roots - known
        return tuple(sorted(roots - lost or lost)), ()
    circle = dict(wanted)
    while ends := [rank for rank, others in circle.items() if not others & circle.keys()]:
        for rank in ends:
            del circle[rank]
    return (), tuple(sorted(circle))


def not_started(group: Iterable[Record]) -> tuple[int, ...]:
    """Ranks whose GPU has not begun the call that has begun on others: it is busy with something else."""
    heads = [(record.rank, record.calls[0]) for record in group if record.pending and record.rank is not None]
    if len({call.seq for _, call in heads}) != 1:
        return ()
    states = {call.state for _, call in heads}
    if states != {"started", "scheduled"}:
        return ()
    return tuple(sorted(rank for rank, call in heads if rank is not None and call.state == "scheduled"))


def whom(transcript: Transcript) -> tuple[tuple[int, ...], str, bool] | None:
    """The ranks for which the others wait, why in words, and whether records of their own say so."""
    seen = together(transcript)
    known = {record.rank for group in seen.groups.values() for record in group}
    if seen.roots:
        if not known & set(seen.roots):
            if len(seen.roots) > len(known):
                return None  # most records were not given
            why = "its flight record is not there, and the others wait for it in a collective"
            return seen.roots, why, False
        return seen.roots, _never_called(seen), True
    if seen.circle:
        return seen.circle, "they wait for each other in different process groups", True
    left = [(name, one) for (name, _), one in seen.astray.items() if one.training]
    if left and len(left) < len(known):
        _, one = left[0]
        where = f"{one.call.op} at {one.call.place or 'no line of the program'}" if one.call else "no call"
        return (
            tuple(sorted(one.rank for _, one in left)),
            f"the others wait in a step of training, it called {where} instead",
            True,
        )
    for group in seen.groups.values():
        late = not_started(group)
        if late and 2 * len(late) <= len(group):
            return late, "the collective has begun on the GPUs of the others, and not on its own", True
    return None


def _never_called(seen: Together) -> str:
    for group in seen.groups.values():
        for record in group:
            if record.rank in seen.roots:
                ahead = [one.seq for one in group if one.pending and one.seq is not None]
                if ahead and max(ahead) > record.enqueued:
                    return f"it never called collective {record.enqueued + 1}, in which others waited"
    return "others wait for it in a collective, and it waits in none"


def ended_loop(transcript: Transcript, group: str) -> tuple[bool | None, str]:
    """Did a rank leave the loop of training before the others? None where the records cannot tell; and why.

    True for one that waits in a call that the others make, too, at another time; False where none left
    training, or where it went on training after the call.
    """
    odd = [one for (name, _), one in together(transcript).astray.items() if name == group]
    left = [one for one in odd if one.training]
    if not left:
        return (False, "no rank left the calls of training") if odd else (None, "")
    told = {one.shared for one in left}
    one = left[0]
    if True in told:
        return True, "its call is one that the others make as well"
    if None not in told:
        return False, "it went on training after the call that the others do not make"
    if one.call is None:
        return None, f"whether rank {one.rank} had ended its loop or is busy: its record holds no later call"
    where = f" at {one.call.place}" if one.call.place else ""
    return None, (
        f"whether the others call {one.call.op}{where} as well, at the end of their loop: "
        "their records do not reach back to such a call"
    )
