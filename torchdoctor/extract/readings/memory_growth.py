"""Figures of memory that rise step by step, on the GPU or in the host, until somebody asks why."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import sizes
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "memory_growth"

FACTS: dict[str, str] = {
    "memory_growth.gpu": "float: GPU memory at the last step over that at the first, rising to the end",
    "memory_growth.host": "float: host memory at the last step over that at the first, rising to the end",
    "memory_growth.asked": "bool: somebody asks about memory that grows",
    "memory_growth.kept": "str: code that keeps the graph or the outputs of each step",
    "memory_growth.workers": "bool: the loader has workers",
    "memory_growth.flat_without": "bool: without workers host memory does not grow",
    "memory_growth.objects": "bool: the dataset holds a large list or dict of Python objects",
}

FEWEST = 4
GROWTH = 1.3

_PATTERNS = {
    # the step of a line: "iter 300 | …", "batch 3000 | RAM 40.3 GB", "500 2739 MB"
    "step": (
        r"(?:^|\b(?:iter(?:ation)?|step|schritt|epoche|batch|it|epoch|i|image|request"
        r"|call)\b\s?[#:=\[(]?\s?)(?P<step>\d{1,9})(?![\d.]|\s?[GMK]i?B|\s?(?:workers?|gpus?|ranks?|samples?"
        r"|px|tokens?|threads?|images?)\b)"
    ),
    # torch.cuda.memory_allocated() as it is, with or without the step before it
    "bytes": (
        r"^\s*(?:(?:[A-Za-z]+[ :=#]{1,3})?(?P<step>\d{1,7})[ :,"
        r"|-]{1,4}(?:[A-Za-z_ ]{1,24}[ :=]{1,3})?)?(?P<bytes>\d{8,12})\s*$"
    ),
    "gpu": r"\bgpu\b|\u663e\u5b58|cuda|allocated|reserved|\bvram\b|memory_allocated",
    "host": (
        r"\bRSS\b|\brss\b|\bRAM\b|\bram\b|host mem|cpu mem|\bRES\b|\bUSS\b|\bPSS\b|main mem|virtual_memory"
    ),
    "gpu-query": r"memory_allocated\(|memory_reserved\(|max_memory_allocated\(|mem_get_info\(",
    "host-query": r"memory_info\(|ru_maxrss|virtual_memory\(|\brss\b",
    "asked": (
        r"\b(?:grow|increas|climb|creep|ris(?:e|es|ing)|leak|goes up|going up|w\u00e4chst|steigt|nimmt zu"
        r"|keeps? (?:growing|increasing"
        r"|going)|fills? up|explod|\u4e00\u76f4\u6da8|\u8d8a\u6765\u8d8a|\u4e0d\u65ad\u589e"
        r"|\u6301\u7eed\u589e|\u5897\u3048|\u0440\u0430\u0441\u0442[\u0451\u0435]\u0442|until .{0,30}(?:full"
        r"|out of memory))"
    ),
    "kept": (
        r"\b\w+\s*\+=\s*\w*loss\w*\s*(?:#|`|$)|\b\w*loss\w*\s*\+=\s*loss\b(?![.(\[])"
        r"|\b\w+\.append\(\s*(?:loss|out|outputs?|pred"
        r"|preds"
        r"|logits|y_hat|features?)\w*\s*\)"
        r"|retain_graph\s*=\s*True|create_graph\s*=\s*True"
    ),
    "workers": r"num_workers\s?[=:>]\s?(?:[1-9]|0\s*$)|\b\d{1,3} workers\b|num_workers\s?>\s?0",
    "none": r"num_workers\s?[=:]\s?0\b|without workers|no workers",
    "flat": (
        r"constant|stable|flat|konstant|w\u00e4chst nicht|\u5897\u3048\u307e\u305b\u3093"
        r"|\u5897\u3048\u306a\u3044|\u4e0d\u6da8|\u4e0d\u589e|\u6b63\u5e38|does(?:n't| not) (?:grow|increase"
        r"|happen|leak)|no (?:growth|leak|increase)"
        r"|stays|fine|normal|not grow"
    ),
    "objects": (
        r"(?:python |large |big |huge )?(?:list|dict)s? (?:of|with|holding|containing)\b|\blist of (?:dicts"
        r"|strings|tuples|str)|python (?:list|dict|objects?)"
        r"|self\.\w+\s*=\s*(?:list\(|\[|json\.load|pickle\.load)"
    ),
    "ps": r"^\s*(?P<pid>\d{2,8})\s+(?P<size>\d{1,9}(?:\.\d{1,3})?[KMG])\s+\S*python",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("host", "ps"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a series that rises to its end; nothing where it levels out, or nobody asks."""
    asked = passage.told(_pattern("asked")) or _asked(passage)
    if asked is None or not passage.personal:
        return
    told = False
    for name in ("gpu", "host"):
        rising = _rising(passage, name)
        if rising is not None:
            growth, line = rising
            told = True
            yield line.fact(f"memory_growth.{name}", round(growth, 2))
    if not told:
        return
    yield asked.fact("memory_growth.asked", True)
    for name in ("kept", "objects", "workers"):
        for line in passage.lines:
            if (found := _pattern(name).search(line.text)) is not None:
                value = found.group().strip(" #`") if name == "kept" else True
                yield line.fact(f"memory_growth.{name}", value)
                break
    flat = _flat(passage, rising[1] if rising is not None else None)
    if flat is not None:
        yield flat.fact("memory_growth.flat_without", True)


def _asked(passage: Passage) -> Line | None:
    """A sentence that says of memory, or of a process, that it grows."""
    for line in passage.sentences:
        named = any(_pattern(name).search(line.text) for name in ("gpu", "host"))
        if (named or says("memory").search(line.text)) and says("grows").search(line.text):
            return line
    return None


def _series(passage: Passage, name: str) -> Iterator[list[tuple[int, float, Line]]]:
    """Runs of lines with a step and an amount of this memory."""
    printed = any(_pattern(f"{name}-query").search(line.text) for line in passage.lines)
    announced = False  # "my GPU memory, every 100 steps:"
    run: list[tuple[int, float, Line]] = []
    processes: dict[str, list[tuple[int, float, Line]]] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        if name == "host" and (row := _pattern("ps").match(line.text)) is not None:
            amount = next(sizes(row.group("size")), None)
            if amount is not None:
                of = processes.setdefault(row.group("pid"), [])
                of.append((len(of), amount.value, line))
            continue
        if printed and (bare := _pattern("bytes").match(line.text)) is not None:
            number = int(bare.group("step") or len(run))
            if run and number <= run[-1][0]:
                yield run
                run = []
            run.append((number, float(bare.group("bytes")), line))
            continue
        step = _pattern("step").search(line.text.strip())
        named = _pattern(name).search(line.text) is not None
        if line.voice is Voice.SAID:
            announced = named and line.text.rstrip()[-1:] in (":", "\uff1a")
        named = named or (announced and not _other(line, name))
        amounts = list(sizes(line.text))
        if step is None or len(amounts) != 1 or not (named or (printed and not _other(line, name))):
            continue
        number = int(step.group("step"))
        if run and number <= run[-1][0]:
            yield run
            run = []
        run.append((number, amounts[0].value, line))
    yield run
    yield from processes.values()


def _other(line: Line, name: str) -> bool:
    return _pattern("host" if name == "gpu" else "gpu").search(line.text) is not None


def _rising(passage: Passage, name: str) -> tuple[float, Line] | None:
    for run in _series(passage, name):
        if len(run) < FEWEST or not _evenly(run):
            continue
        values = [amount for _, amount, _ in run]
        falls = sum(after < before * 0.995 for before, after in pairwise(values))
        whole = values[-1] - values[0]
        half = values[-1] - values[len(values) // 2]
        if falls == 0 and values[0] > 0 and values[-1] >= GROWTH * values[0] and half >= 0.3 * whole:
            return values[-1] / values[0], run[-1][2]
    return None


def _evenly(run: list[tuple[int, float, Line]]) -> bool:
    """Steps of a loop are evenly apart; sizes of batches that were tried double."""
    gaps = [after[0] - before[0] for before, after in pairwise(run)]
    return max(gaps) <= 1.5 * min(gaps)


def _flat(passage: Passage, last: Line | None) -> Line | None:
    """num_workers=0, with words that it is flat there, or above figures far below the last of the series."""
    highest = next(sizes(last.text), None) if last is not None else None
    for line in passage.lines:
        if not _pattern("none").search(line.text):
            continue
        if _pattern("flat").search(line.text):
            return line
        below = (one for near in passage.lines[line.at + 1 : line.at + 3] for one in sizes(near.text))
        lowest = next(below, None)
        if lowest is not None and highest is not None and lowest.value * GROWTH <= highest.value:
            return line
    return None
