"""The names of GPUs by index, as nvidia-smi lists them and as torch does."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "device_names"

FACTS: dict[str, str] = {
    "device_names.differ": "bool: an index is another card in torch than in nvidia-smi; both list that card",
    "device_names.by_torch": "str: what torch calls that index",
    "device_names.by_smi": "str: what nvidia-smi calls that index",
}

_PATTERNS = {
    "listed": r"^\s*GPU (?P<index>\d{1,2}): (?P<name>[^(\n]{3,60}?)\s*\(UUID",
    "row": (
        r"^\|\s{1,4}(?P<index>\d{1,2})\s{1,4}(?P<name>\S[^|]{2,60}?)\s{1,40}(?:On|Off"
        r"|N/A)\s*\|\s*[0-9A-F]{4,8}:"
    ),
    "csv": r"^\s*(?P<index>\d{1,2}), (?P<name>(?:NVIDIA|Tesla|GeForce|Quadro|TITAN)[^,\n]{2,60})(?:,|$)",
    "asked": r"get_device_(?:name|properties)\((?:[\"']cuda:)?(?P<index>\d{0,2})[\"']?\)",
    "bare": r"^\s*(?P<name>(?:NVIDIA|Tesla|GeForce|Quadro|TITAN)[^,:(\n]{2,50})$",
    "quoted": r"^\s*(?:_CudaDeviceProperties\(name=)?['\"](?P<name>[^'\"\n]{3,60})['\"]",
    "printed": (
        r"^\s*(?:cuda:|GPU ?|device ?|gpu ?)?(?P<index>\d{1,2})\s?[:=,)-]?\s(?P<name>(?:NVIDIA|Tesla|GeForce"
        r"|Quadro|TITAN)[^,(\n]{2,50})"
    ),
    "listing": (
        r"^\s*[\[(]\s*(?P<names>['\"][^'\"\n]{3,60}['\"](?:,\s*['\"][^'\"\n]{3,60}['\"]){1,15})\s*[\])]"
    ),
    # in words: "the 1080 is number 0", "GPU 1 is the A6000"
    "said": (
        r"\b(?P<model>[A-Z]{0,2}\d{2,4}(?: ?(?:Ti|Super|Ada))?)\b[^.\n;,\d]{0,40}?\b(?:is"
        r"|as|=|at|has|gets|shows up as"
        r"|listed as)\s*(?:listed |shown )?(?:as )?(?:the )?(?:number|index|[Gg][Pp][Uu]"
        r"|[Dd]evice|[Cc]ard|id|#|no\.?)?\s*#?"
        r"(?P<index>\d)\b"
        r"|\b(?:[Gg][Pp][Uu]|number|index|[Dd]evice|[Cc]ard|id|#)\s*#?(?P<index2>\d) (?:is |= ?|as "
        r"|being )(?:an? |the )?(?:\w+ ){0,3}?"
        r"(?P<model2>[A-Z]{0,2}\d{2,4}(?: ?(?:Ti|Super|Ada))?)\b"
    ),
    "one": r"CUDA_VISIBLE_DEVICES=[\"']?(?P<index>\d)(?![\d,])",
    "ordered": r"CUDA_DEVICE_ORDER\W{0,6}PCI_BUS_ID",
    "unset": r"environ|putenv",
    "hidden": r"CUDA_DEVICE_ORDER\W{0,6}PCI_BUS_ID|CUDA_VISIBLE_DEVICES['\"\]]{0,3}\s?=",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name])


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of an index that names two cards; nothing where the order or the visible cards were set."""
    if _pattern("hidden").search(passage.text):
        yield from _in_words(passage)
        return
    smi, torch = _by_smi(passage), _by_torch(passage)
    known = {_bare(name) for name, _ in smi.values()}
    for index, (name, line) in sorted(torch.items()):
        other = smi.get(index)
        if other is not None and _bare(other[0]) != _bare(name) and _bare(name) in known:
            yield line.fact("device_names.differ", True)
            yield line.fact("device_names.by_torch", name)
            yield other[1].fact("device_names.by_smi", other[0])
            return


def _in_words(passage: Passage) -> Iterator[Fact]:
    """One card asked for by the number that nvidia-smi gives it, and another one that torch got."""
    if (
        not passage.personal
        or "nvidia-smi" not in passage.text
        or _pattern("ordered").search(passage.text)
        or _pattern("unset").search(passage.code)
    ):
        return
    told: dict[str, tuple[int, Line]] = {}
    for number, (listed, row) in _by_smi(passage).items():
        told.setdefault(_bare(listed), (number, row))
    for line in passage.of(Voice.SAID, Voice.PRINTED):
        for hit in _pattern("said").finditer(line.text):
            index = hit.group("index") or hit.group("index2")
            told.setdefault(hit.group("model") or hit.group("model2"), (int(index), line))
    if len(told) < 2 or len({index for index, _ in told.values()}) < 2:
        return
    asked: int | None = None
    for line in passage.lines:
        if (one := _pattern("one").search(line.text)) is not None:
            asked = int(one.group("index"))
        if asked is None:
            continue
        for name, answer in _answered(passage, line):
            got = next((one for one in told if re.search(rf"(?i)\b{re.escape(one)}\b", name)), None)
            wanted = next((model for model, (index, _) in told.items() if index == asked), None)
            if got is not None and wanted is not None and told[got][0] != asked:
                yield answer.fact("device_names.differ", True)
                yield answer.fact("device_names.by_torch", name)
                yield told[wanted][1].fact("device_names.by_smi", wanted)
                return


def _answered(passage: Passage, line: Line) -> Iterator[tuple[str, Line]]:
    if line.voice not in (Voice.TYPED, Voice.CODE, Voice.SHELL) or "get_device_name" not in line.text:
        return
    for answer in passage.lines[line.at + 1 : line.at + 2]:
        hit = _pattern("quoted").match(answer.text) or _pattern("bare").match(answer.text)
        if hit is not None and answer.voice is not Voice.TYPED:
            yield hit.group("name").strip(), answer


def _bare(name: str) -> str:
    return name.lower().replace("nvidia ", "").replace("geforce ", "").replace("tesla ", "").strip()


def _by_smi(passage: Passage) -> dict[int, tuple[str, Line]]:
    found: dict[int, tuple[str, Line]] = {}
    for line in passage.lines:
        for name in ("listed", "row", "csv"):
            if (hit := _pattern(name).match(line.text)) is not None:
                found.setdefault(int(hit.group("index")), (hit.group("name").strip(), line))
                break
    return found


def _by_torch(passage: Passage) -> dict[int, tuple[str, Line]]:
    found: dict[int, tuple[str, Line]] = {}
    listing = False
    for line in passage.lines:
        if line.voice in (Voice.TYPED, Voice.CODE):
            asked = _pattern("asked").search(line.text)
            listing = listing or "get_device_" in line.text
            if asked is not None and line.voice is Voice.TYPED:
                answer = next(passage.answers(line, 1), None)
                quoted = _pattern("quoted").match(answer.text) if answer is not None else None
                if answer is not None and quoted is not None:
                    found.setdefault(int(asked.group("index") or 0), (quoted.group("name"), answer))
            elif asked is not None and asked.group("index"):
                # a command: python -c "import torch; print(torch.cuda.get_device_name(0))"
                for below in passage.lines[line.at + 1 : line.at + 2]:
                    if below.voice is Voice.PRINTED and (bare := _pattern("bare").match(below.text)):
                        found.setdefault(int(asked.group("index")), (bare.group("name").strip(), below))
        elif listing and (names := _pattern("listing").match(line.text)) is not None:
            for index, name in enumerate(names.group("names").split(",")):
                found.setdefault(index, (name.strip(" '\""), line))
        elif (
            listing
            and line.voice is Voice.PRINTED
            and not _pattern("listed").match(line.text)
            and (hit := _pattern("printed").match(line.text)) is not None
        ):
            found.setdefault(int(hit.group("index")), (hit.group("name").strip(), line))
    return found
