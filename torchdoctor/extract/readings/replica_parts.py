"""What each replica of DataParallel got, as prints in forward tell: lost rows, lists that are not cut.

DataParallel cuts every tensor along dimension 0, those in a list one by one, and hands everything else whole
to each replica. So a list of strings has its full length beside a part of the pictures; a list of them has
its full length, too, and each picture a part of its channels; and a tensor of one row reaches one replica
only, with which the other parts of the batch are dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.model import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "replica_parts"

FACTS: dict[str, str] = {
    "replica_parts.whole": "str: what every replica got whole, beside an argument that was cut",
    "replica_parts.channels": "str: the replicas' parts of a tensor that was cut along its channels",
    "replica_parts.cut": "str: a tensor that is not batched and was cut all the same: part and whole",
    "replica_parts.lost": "str: rows that went in and rows that came out",
    "replica_parts.puzzled": "bool: somebody asks, or tells that results are wrong",
}

MOST_REPLICAS = 16
MESSAGE = 12  # words

_PATTERNS = {
    "wrapped": r"(?<!Distributed)\bDataParallel\b|\bnn\.DataParallel\b|\bdata_parallel\(",
    "replica": (
        r"(?i)(?<![\w])(?:cuda:|gpu[ _:#-]?|replica[ _:#-]{0,2}|device[ _:#-]{0,2}(?:cuda:)?"
        r"|card )(?P<replica>\d{1,2})(?!\d|[.,]\d)"
    ),
    "last": r"\bcuda:(?P<replica>\d{1,2})\W{0,3}$",
    "shape": (
        r"(?:torch\.Size\(|[\[(])\s*\[?(?P<dims>\d{1,7}(?:\s*,\s*\d{1,7}){0,5})\s*,?\s*\]?\s*[\])]"
        r"|(?<![\w.])(?P<times>\d{1,6}(?:\s?[x\u00d7]\s?\d{1,6}){1,5})(?![\w.])"
    ),
    "lengths": r"\[(?P<list>\d{1,6}(?: ?, ?\d{1,6}){2,63})\]",
    # "16 images", "legendas: 64", "len(caps) = 64"
    "count": (
        r"(?P<label>len\([^()]{1,30}\)|[^\W\d_][\w.]{0,24})\s?(?:is|=|:|->"
        r"|\s)\s?(?P<number>\d{1,6})(?![\w\]\)%]|[.:,]\d|\s?[x\u00d7/])"
        r"|(?<![\w.:,\[(])(?P<count>\d{1,6}) (?P<unit>[^\W\d_]{3,20})"
    ),
    "slice": r"\w\[:\s?(?:\w[\w.]*\.(?:size\(0\)|shape\[0\])|len\(\w[\w.]*\))\s?\]",
    "not-count": (
        r"(?i)^(?:step|epoch|iter\w*|batch_size|total|global|of|gpu|cuda|device|replica|rank|seed|lr|loss"
        r"|pid|mib|mb|gb|ms|dim|ndim|torch|v|first|card|size|version|line)$"
    ),
    "out": (
        r"(?i)\b(?:out(?:put)?s?|logits|pred\w*|result|sa[i\u00ed]da|sortie|ausgabe|uscita)\b|\u8f93\u51fa"
        r"|\u51fa\u529b|\ucd9c\ub825|\u0432\u044b\u0445\u043e\u0434"
    ),
    "in": (
        r"(?i)\b(?:in(?:put)?s?|images?|imgs?|x|batch|entrada|entr\u00e9e|eingabe)\b|\u8f93\u5165"
        r"|\u5165\u529b|\uc785\ub825|\u0432\u0445\u043e\u0434"
    ),
    # "32 rows back for a batch of 64", "I feed 64 and get 32"
    "told-lost": (
        r"(?i)(?<![\w.])(?P<out>\d{1,5}) (?:rows?|outputs?|predictions?|logits|results?|samples|Zeilen"
        r"|lignes|filas|linhas|righe)\b[^.\n]{0,40}?(?:batch(?: size)?|input|for|statt|instead"
        r"|au lieu)[^.\n\d]{0,24}(?P<in>\d{1,5})\b"
        r"|batch(?: size)?(?: of| is|=)? ?(?P<in2>\d{1,5})\b[^.\n]{0,60}?(?:get|got|only|back|comes?"
        r"|return\w*|output|nur|seulement|solo|s\u00f3)[^.\n\d]{0,24}(?P<out2>\d{1,5})\b"
    ),
    "half": (
        r"(?i)\b(?:half|a (?:half|third|quarter)|1/[2-8]) of (?:my|the|our|each) (?:batch|rows|samples"
        r"|images|outputs|predictions|data)|(?:die )?H\u00e4lfte (?:des|der) (?:Batch|Zeilen|Bilder)"
        r"|moiti\u00e9 d(?:u|es) (?:batch|lignes|images)|mitad del (?:batch|lote)|metade do (?:batch|lote)"
        r"|met\u00e0 del batch"
        r"|\u4e00\u534a\u7684?(?:batch|\u6837\u672c|\u6570\u636e)|batch\u7684\u4e00\u534a"
        r"|\u534a\u5206\u306e(?:\u30d0\u30c3\u30c1|\u51fa\u529b)|\u30d0\u30c3\u30c1\u306e\u534a\u5206"
        r"|\ubc30\uce58\uc758 \uc808\ubc18"
        r"|\u043f\u043e\u043b\u043e\u0432\u0438\u043d\w+ \u0431\u0430\u0442\u0447"
    ),
    # in words: "every GPU gets the whole list"
    "told-whole": (
        r"(?i)\b(?:each|every|both|all)(?: \w+)? (?:gpu|replica|card|device)s?\b[^.\n]{0,40}\b(?:whole|full"
        r"|entire|complete|all (?:the )?(?:\d+ )?)[^.\n]{0,20}\b(?:list|captions|strings|lengths|texts"
        r"|targets|boxes|names|dict)"
        r"|\b(?:list|captions|strings|lengths|texts|targets|boxes|dict)\b[^.\n]{0,40}\b(?:not (?:split|cut"
        r"|scattered|chunked|divided)|isn't (?:split|cut|scattered|divided)|whole|in full)\b"
    ),
    "healthy": r"(?i)\bas expected|expected overhead|wie erwartet|como esperado|comme pr\u00e9vu",
    "everywhere": (
        r"(?i)\b(?:on|in|for|per|auf|sur|en|em|su|na)? ?(?:every|each|both|all|jede[rm]?|beiden|allen|chaque"
        r"|cada|ogni|ka\u017cdej|\u043a\u0430\u0436\u0434\w+)\b[^.\n]{0,12}?(?:gpu|replica|r\u00e9plique"
        r"|card|karte|carte|tarjeta|placa|scheda|\u043a\u0430\u0440\u0442)"
        r"|\u6bcf(?:\u4e2a|\u5f20)? ?(?:GPU|\u5361)|\u5404 ?GPU|\uac01 ?GPU"
    ),
    "instead": (
        r"(?i)\b(?:instead of|rather than|not|statt|anstatt|anstelle|au lieu d|en (?:vez|lugar) de|em vez de"
        r"|invece di|zamiast|\u0432\u043c\u0435\u0441\u0442\u043e)|\u800c\u4e0d\u662f"
        r"|\u3067\u306f\u306a\u304f|\uc544\ub2c8\ub77c|of"
    ),
    "gpus": (
        r"(?i)(?<![\w.])(?P<number>[2-9]|1[0-6])\s?(?:x |\u00d7 ?)?(?:gpus?\b|cards?\b|karten\b|cartes\b"
        r"|tarjetas\b|placas\b|schede\b|replicas?\b|\u5f20|\u5361|V100|A100|P100|[23]080|[34]090|1080|T4\b"
        r"|RTX|GTX|Titan)"
        r"|(?P<word>two|three|four|eight|zwei|drei|vier|deux|trois|quatre|dos|tres|cuatro|dois|duas|quatro"
        r"|due|tre|quattro) (?:\w+ )?(?:gpus?|cards?|karten|cartes|tarjetas|placas|schede)\b"
        r"|device_ids\s?=\s?\[(?P<ids>[\d, ]{3,40})\]"
    ),
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Part:
    """What one replica printed: shapes of tensors and figures with a name, in order."""

    replica: int
    shapes: tuple[tuple[int, ...], ...]
    counts: tuple[tuple[str, int], ...]
    line: Line


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the parts; nothing for a model that each process wraps for itself."""
    passage = passage.spaced
    if stall.over(passage) or not stall.speaks(passage):
        return
    wrapped = next((line for line in passage.lines if _pattern("wrapped").search(line.text)), None)
    if wrapped is None or _pattern("healthy").search(passage.text):
        return
    parts = list(_parts(passage))
    found = False
    for name, shown in (
        ("whole", _whole(parts) or _counted(passage) or _sliced(passage) or _told_whole(passage)),
        ("cut", _cut(passage, parts) or _lists_cut(passage)),
        ("channels", _channels(parts)),
        ("lost", _lost(passage, parts)),
    ):
        if shown is not None:
            found = True
            yield shown[0].fact(f"replica_parts.{name}", shown[1])
    if found and (puzzled := _puzzled(passage)) is not None:
        yield puzzled.fact("replica_parts.puzzled", True)


def _puzzled(passage: Passage) -> Line | None:
    if (line := passage.told(says("worse"))) is not None:
        return line
    # a long message with code in it passes for code
    return next(
        (
            line
            for line in passage.lines
            if "?" in line.text and (line.voice is not Voice.CODE or len(line.text.split()) >= MESSAGE)
        ),
        None,
    )


def _parts(passage: Passage) -> Iterator[Part]:
    for line in passage.of(Voice.PRINTED, Voice.SAID, Voice.CODE):
        named = list(_pattern("replica").finditer(line.text))
        if not named or (line.voice is Voice.CODE and len(named) < 2):
            continue
        for one, two in zip(named, [*named[1:], None], strict=True):
            text = line.text[one.end() : two.start() if two is not None else one.end() + 200]
            part = Part(int(one.group("replica")), tuple(_shapes(text)), tuple(_counts(text)), line)
            if part.shapes or part.counts:
                yield part
    yield from _devices_last(passage)


def _devices_last(passage: Passage) -> Iterator[Part]:
    """``print('forward', x.shape, x.device)``: the device is the last word, alike words stand before it."""
    found: dict[str, list[Part]] = {}
    for line in passage.of(Voice.PRINTED):
        named = _pattern("last").search(line.text)
        first = _pattern("shape").search(line.text)
        if named is not None and first is not None and first.end() <= named.start():
            part = Part(int(named.group("replica")), tuple(_shapes(line.text[: named.start()])), (), line)
            if part.shapes:
                found.setdefault(line.text[: first.start()].strip(), []).append(part)
    for parts in found.values():
        if len({part.replica for part in parts}) > 1:
            yield from parts


def _shapes(text: str) -> Iterator[tuple[int, ...]]:
    for found in _pattern("shape").finditer(text):
        dims = tuple(int(part) for part in re.findall(r"\d+", found.group("dims") or found.group("times")))
        if all(dims) and (len(dims) > 1 or "," in found.group() or "Size" in found.group()):
            yield dims


def _counts(text: str) -> Iterator[tuple[str, int]]:
    bare = _pattern("shape").sub(" ( ) ", text)
    for found in _pattern("count").finditer(bare):
        label, told = (
            found.group("label") or found.group("unit"),
            found.group("number") or found.group("count"),
        )
        if not _pattern("not-count").match(label):
            yield label.lower(), int(told)


def _replicas(parts: list[Part]) -> dict[int, Part]:
    """The last that each replica printed, of prints of the same kind."""
    return {part.replica: part for part in parts}


def _whole(parts: list[Part]) -> tuple[Line, str] | None:
    """A figure that is alike in all replicas, and as many times that of another one as there are replicas."""
    replicas = _replicas(parts)
    if not 2 <= len(replicas) <= MOST_REPLICAS:
        return None
    first = replicas[min(replicas)]
    rows = [shape[0] for shape in first.shapes] + [count for _, count in first.counts]
    for label, count in first.counts:
        alike = all((label, count) in part.counts for part in replicas.values())
        if alike and count > 1 and any(row and row * len(replicas) == count for row in rows):
            return first.line, f"{label}: {count} in each of {counted(len(replicas), 'replica')}"
    return None


def _told_whole(passage: Passage) -> tuple[Line, str] | None:
    for line in passage.sentences:
        if (found := _pattern("told-whole").search(line.text)) is not None:
            return line, found.group()[:100]
    return None


_WORDS = {
    "two": 2, "zwei": 2, "deux": 2, "dos": 2, "dois": 2, "duas": 2, "due": 2,
    "three": 3, "drei": 3, "trois": 3, "tres": 3, "tre": 3,
    "four": 4, "vier": 4, "quatre": 4, "cuatro": 4, "quatro": 4, "quattro": 4, "eight": 8,
}  # fmt: skip


def _gpus(passage: Passage) -> set[int]:
    """The numbers of GPUs that are told."""
    found: set[int] = set()
    for hit in _pattern("gpus").finditer(passage.text):
        if hit.group("ids"):
            found.add(len(re.findall(r"\d+", hit.group("ids"))))
        else:
            found.add(int(hit.group("number") or 0) or _WORDS[hit.group("word").lower()])
    return found


def _counted(passage: Passage) -> tuple[Line, str] | None:
    """``8 images but 24 boxes on every GPU``: one is cut, the other comes whole."""
    gpus = _gpus(passage)
    for line in passage.sentences:
        if not _pattern("everywhere").search(line.text):
            continue
        counts = list(_counts(line.text))
        for _, one in counts:
            for label, two in counts:
                if one > 1 and any(two == one * number for number in gpus if number > 1):
                    return line, f"{label}: {two}, beside {one}"
    return None


def _sliced(passage: Passage) -> tuple[Line, str] | None:
    """``texts[:wav.size(0)]``, with words that there were as many times more of the one as GPUs."""
    gpus = _gpus(passage)
    spoken = (line for line in passage.sentences if "[:" in line.text)
    for line in (*passage.of(Voice.CODE, Voice.TYPED), *spoken):
        if _pattern("slice").search(line.text) is None:
            continue
        counts = list(_counts(_pattern("slice").sub(" ", line.text)))
        for _, one in counts:
            for label, two in counts:
                if one > 1 and any(two == one * number for number in gpus if number > 1):
                    return line, f"{label}: {two}, beside {one}"
    return None


def _cut(passage: Passage, parts: list[Part]) -> tuple[Line, str] | None:
    """A part of a tensor that is not of the batch, and the whole of it."""
    whole = {shape for line in passage.lines for shape in _shapes(line.text)}
    replicas = _replicas(parts)
    if len(replicas) >= 2:
        first = replicas[min(replicas)]
        rows = {shape[0] for shape in first.shapes}
        for shape in first.shapes if len(rows) > 1 else ():
            alike = all(shape in part.shapes for part in replicas.values())
            # the first is taken for the batch, unless a replica has one row of it, and many of another
            other = shape[0] != first.shapes[0][0] or shape[0] == 1
            if alike and other and (shape[0] * len(replicas), *shape[1:]) in whole:
                return first.line, f"{shape} of {(shape[0] * len(replicas), *shape[1:])}"
    gpus = _gpus(passage)
    for line in passage.sentences:
        if _pattern("everywhere").search(line.text) and _pattern("instead").search(line.text):
            shapes = list(_shapes(line.text))
            for one in shapes:
                for number in gpus:
                    if number > 1 and (one[0] * number, *one[1:]) in shapes:
                        return line, f"{one} of {(one[0] * number, *one[1:])}"
    return None


def _lists_cut(passage: Passage) -> tuple[Line, str] | None:
    """The lengths of tensors in a list, which the replicas print: those of one GPU, each cut in as many."""
    whole: set[str] = set()
    replicas: dict[int, tuple[tuple[int, ...], Line]] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID, Voice.CODE):
        named = _pattern("replica").search(line.text)
        for found in _pattern("lengths").finditer(line.text):
            whole.add(str([int(one) for one in found.group("list").split(",")]))
            if named is not None and named.end() <= found.start():
                replicas[int(named.group("replica"))] = tuple(map(int, found.group("list").split(","))), line
    lists = [one for one, _ in replicas.values()]
    if len(lists) < 2 or len({len(one) for one in lists}) > 1:
        return None
    summed = [sum(parts) for parts in zip(*lists, strict=True)]
    if str(summed) not in whole or len(set(summed)) == 1:
        return None
    shown, line = replicas[min(replicas)]
    return line, f"{list(shown)} of {summed}"


def _channels(parts: list[Part]) -> tuple[Line, str] | None:
    """Parts that are alike but for dimension 0, which add up to the channels of a picture."""
    replicas = _replicas(parts)
    shapes = [part.shapes[-1] for part in replicas.values() if part.shapes]
    if len(shapes) < 2 or len({shape[1:] for shape in shapes}) > 1 or len(shapes[0]) not in (3, 4):
        return None
    cut = sum(shape[0] for shape in shapes)
    if cut not in (3, 4) or min(shapes[0][-2:]) < 8:
        return None
    first = replicas[min(replicas)]
    return first.line, " and ".join(str(shape) for shape in shapes[:4])


def _lost(passage: Passage, parts: list[Part]) -> tuple[Line, str] | None:
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        for into in _pattern("in").finditer(line.text):
            out = _pattern("out").search(line.text, into.end())
            inputs = list(_shapes(line.text[into.end() : out.start()])) if out is not None else []
            outputs = list(_shapes(line.text[out.end() :])) if out is not None else []
            if inputs and outputs and _is_lost(inputs[0][0], outputs[0][0]):
                return line, f"{inputs[0][0]} rows in, {outputs[0][0]} out"
    for line in passage.sentences:
        told = _pattern("told-lost").search(line.text)
        if told is not None:
            rows_in = int(told.group("in") or told.group("in2"))
            rows_out = int(told.group("out") or told.group("out2"))
            if _is_lost(rows_in, rows_out):
                return line, f"{rows_in} rows in, {rows_out} out"
        if _pattern("half").search(line.text) and any((1,) in part.shapes for part in parts):
            return line, line.text.strip()[:100]
    return None


def _is_lost(rows_in: int, rows_out: int) -> bool:
    return 0 < rows_out < rows_in and rows_in % rows_out == 0 and rows_in // rows_out <= MOST_REPLICAS
