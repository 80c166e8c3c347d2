"""A number that is one card for nvidia-smi and another for torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.extract.readings.card_lists import Numbered, by_smi, by_torch, in_words, same, visible
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.values import commands, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage
    from torchdoctor.model import Fact

NAMESPACE = "device_names"

FACTS: dict[str, str] = {
    "device_names.differ": "bool: an index is another card in torch than in nvidia-smi; both list that card",
    "device_names.by_torch": "str: what torch calls that index",
    "device_names.by_smi": "str: what nvidia-smi calls that index",
}

_PATTERNS = {
    "others": r"nvidia-smi|nvml|gpustat|nvtop",
    "ordered": r"CUDA_DEVICE_ORDER\W{0,6}PCI_BUS_ID",
    # set, not only read
    "chosen": (
        r"environ\[\s?['\"]CUDA_VISIBLE_DEVICES['\"]\s?\]\s{0,4}=(?!=)"
        r"|(?:environ\.(?:setdefault|update)|putenv)\([^\n]{0,20}CUDA_VISIBLE_DEVICES"
    ),
    "set": r"CUDA_VISIBLE_DEVICES['\"\]]{0,3}\s?=\s?['\"]?(?P<cards>\d{1,2}(?:,\d{1,2}){0,15})(?![\d,])",
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a number that names two cards; nothing where the order or the visible cards were set."""
    if _pattern("ordered").search(passage.text):
        return
    shown = values(passage)
    smi = by_smi(passage, commands(passage))
    named = passage.personal and _pattern("others").search(passage.text) is not None
    said = in_words(passage, torch=False) if named else {}
    chosen = _pattern("chosen").search("\n".join((passage.code, passage.text))) is not None
    if not chosen:
        some = "CUDA_VISIBLE_DEVICES=" in passage.text
        torch = by_torch(passage, shown, some)
        # a list of more cards than the variable names was printed without it
        cards = [len(one["cards"].split(",")) for one in _pattern("set").finditer(passage.text)]
        if max(cards, default=0) < max(2, len(torch)):
            yield from _differ(smi, torch)
        if not some and not _crossed(smi, torch) and passage.personal:
            listed = smi or said
            told = {**in_words(passage, torch=True), **torch}
            yield from _differ(listed, told)
    if len(both := {**said, **smi}) < 2:
        return
    for asked, value in visible(passage, shown):
        wanted = both.get(asked)
        got = next((number for number, (name, _) in both.items() if same(name, value.text)), None)
        if wanted is not None and got is not None and got != asked and not same(wanted[0], value.text):
            yield from _facts(value.text, value.line, wanted)
            return


def _differ(smi: Numbered, torch: Numbered) -> Iterator[Fact]:
    index = _crossed(smi, torch)
    if index:
        yield from _facts(*torch[index[0]], smi[index[0]])


def _crossed(smi: Numbered, torch: Numbered) -> list[int]:
    """The numbers whose card is another one for torch, of those that nvidia-smi lists under other numbers."""
    return [
        index
        for index, (name, _) in sorted(torch.items())
        if index in smi
        and not same(smi[index][0], name)
        and any(same(other, name) for at, (other, _) in smi.items() if at != index)
    ]


def _facts(name: str, line: Line, other: tuple[str, Line]) -> Iterator[Fact]:
    yield line.fact("device_names.differ", True)
    yield line.fact("device_names.by_torch", name)
    yield other[1].fact("device_names.by_smi", other[0])
