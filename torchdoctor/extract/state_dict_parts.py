"""Which parts of a model the two lists of load_state_dict differ in, once no prefix explains them.

Names that agree are in neither list: a part that stands in both lists was renamed or is another variant, and
blocks that begin at 4 continue those that both have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from torchdoctor.extract import Found

_LEAST = 6  # names on each side, below which it is a layer and no model
_COMMON = 5  # a word in so many may be in both models, as norm or layers
_TOLD = 3  # parts
_COUNTER = "num_batches_tracked"  # never reported as missing

Name = Sequence[str]


def compared(
    missing: Sequence[Name], unexpected: Sequence[Name], cut_missing: bool, cut_unexpected: bool
) -> Iterator[Found]:
    """Facts of two lists of names, each in its words, that no prefix explains."""
    mine = [name for name in missing if name[-1] != _COUNTER]
    theirs = [name for name in unexpected if name[-1] != _COUNTER]
    deeper = _goes_on(theirs, mine), _goes_on(mine, theirs)
    yield "file_goes_on", deeper[0]
    yield "model_goes_on", deeper[1]
    other = _other_model(mine, theirs) if not any(deeper) else None
    yield "model_parts", other[0] if other else None
    yield "file_parts", other[1] if other else None
    # a part on either side is one part, renamed or of another kind
    yield "model_extra", _part(mine) if not cut_missing and (not theirs or deeper[0]) else None
    yield "file_extra", _part(theirs) if not cut_unexpected and (not mine or deeper[1]) else None


def _other_model(mine: Sequence[Name], theirs: Sequence[Name]) -> tuple[str, str] | None:
    """The first words of both, where next to no word is in both and the layers are of other kinds.

    Names of one order of weights and biases are those of one model, all of them renamed.
    """
    if min(len(mine), len(theirs)) < _LEAST:
        return None
    words = _inner(mine), _inner(theirs)
    if _COMMON * len(words[0] & words[1]) > min(map(len, words)):
        return None
    shorter = min(len(mine), len(theirs))
    if [one[-1] for one in mine[:shorter]] == [one[-1] for one in theirs[:shorter]]:
        return None
    firsts = _firsts(mine), _firsts(theirs)
    return (_told(firsts[0]), _told(firsts[1])) if not firsts[0].keys() & firsts[1].keys() else None


def _inner(names: Sequence[Name]) -> set[str]:
    return {word for name in names for word in name[:-1] if not word.isdigit()}


def _firsts(names: Sequence[Name]) -> Counter[str]:
    return Counter(name[0] for name in names)


def _told(parts: Counter[str]) -> str:
    """The largest parts, in the order of the model."""
    largest = {name for name, _ in parts.most_common(_TOLD)}
    return ", ".join(name for name in parts if name in largest)


def _goes_on(ones: Sequence[Name], others: Sequence[Name]) -> str | None:
    """The first block of a row of blocks that begins behind 1, and that the other side has none of."""
    rows: dict[tuple[str, ...], set[int]] = {}
    for name in ones:
        at = next((at for at, word in enumerate(name) if word.isdigit()), None)
        if at and len(name) > at + 2:
            rows.setdefault(tuple(name[:at]), set()).add(int(name[at]))
    for row, numbers in rows.items():
        first = min(numbers)
        whole = sorted(numbers) == list(range(first, first + len(numbers)))
        if first > 1 and whole and not any(tuple(name[: len(row)]) == row for name in others):
            return ".".join((*row, str(first)))
    return None


def _part(names: Sequence[Name]) -> str | None:
    """The module in which all of the names are, if it is one of its own and not a piece of every block."""
    if len(names) < 2 or not any(name[-1] == "weight" for name in names):
        return None
    shared = names[0][:-1]
    for name in names:
        while name[: len(shared)] != shared:
            shared = shared[:-1]
    if not shared or shared[-1].isdigit():
        return None
    of_blocks = any(name[len(shared)].isdigit() and len(name) > len(shared) + 2 for name in names)
    return None if of_blocks else ".".join(shared)
