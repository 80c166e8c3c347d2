"""Pinned host memory against what the machine has: sums of it, free memory, swap in use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.amounts import amounts, placed
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.swapping import Memory, ram, told_swapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "pinned"

FACTS: dict[str, str] = {
    "pinned.swapping": "bool: figures show much swap in use, or hardly any memory available",
    "pinned.told_swapping": "bool: somebody says that the machine swaps",
    "pinned.share": "float: pinned memory of all processes, as a share of the machine's memory",
    "pinned.bytes": "int: pinned memory of all processes that the text tells of",
    "pinned.fine_without": "bool: without pinning the machine does not swap, by figures or words",
}

# characters between "pinned" and its size: "pinned: 58 GB", "90 GB of the table, page-locked"
BEHIND, BEFORE = 16, 32

_PATTERNS = {
    "processes": (
        r"(?<![\w.])(?P<number>\d{1,3})\s*(?:ranks|processes|procs|Prozesse|processus|procesos|gpus?\b|GPUs"
        r"|x\b"
        r"|workers per node)"
        r"|--nproc[_-]per[_-]node[ =](?P<torchrun>\d{1,3})"
    ),
    "pinned": (
        r"[Pp]inned|\b[Pp]ins\b|[Pp]age-?locked|host_memory_stats|Mlocked|Unevictable|VmLck|VmPin"
        r"|host allocator|cudaHost(?:Alloc|Register)|gepinnt|verrouill\u00e9|fijada|fixada|bloccata"
        r"|bloqueada"
        r"|\u9501\u9875|\u9875\u9501\u5b9a|\u56fa\u5b9a\u5185\u5b58|\u30da\u30fc\u30b8\u30ed\u30c3\u30af"
        r"|\u30d4\u30f3\u7559\u3081|\u0437\u0430\u043a\u0440\u0435\u043f\u043b|\.pin_memory\(\)"
    ),
    # "8 ranks x 22.6 GiB": of all of them
    "product": (
        r"(?<![\w.])(?P<number>\d{1,3})\s*(?:[^\W\d]{1,12}\s*)?[x\u00d7*]\s*"
        r"(?P<size>\d{1,4}(?:[.,]\d{1,2})?\s?[MGT]i?[Bo])"
    ),
    "sentence": r"(?<=[A-Za-z)])[.;,]\s+",
    "per-process": (
        r"\brank\b|per (?:rank|process|gpu)|each|every rank|the others|\bjede[rs]?\b|\bchacun|\bcada\b"
    ),
    "on": (
        r"pin_memory[\"'`]?\s*(?:[=:]|auf|to|is|\u00e0)?\s*[`\"']?[Tt]rue|pin_memory\(\)|\b[Pp]inned"
        r"|[Pp]age-?locked|pin_memory (?:on|an|is on|enabled)\b"
        r"|with pin_memory\b|cudaHost(?:Alloc|Register)|gepinnt|pin_memory\s?(?:\u6253\u5f00|\u5f00\u542f"
        r"|\u3092\u6709\u52b9)|\u9501\u9875\u5185\u5b58|\u30da\u30fc\u30b8\u30ed\u30c3\u30af"
    ),
    "without": (
        r"pin_memory[\"'`]?\s*(?:[=:]|is|set to|to|auf|\u00e0|en|su|\u8bbe\u4e3a|\u6539\u6210|\u6539\u4e3a"
        r"|\u3092)?\s*[`\"']?[Ff]alse"
        r"|[Ww]ithout (?:the )?[`\"']?(?:--)?(?:pin|page-?lock)|not pinn|[Uu]npinned|[Nn]o pinning"
        r"|pinning (?:off|disabled|removed)"
        r"|pin_memory (?:off|aus)|[Oo]hne (?:Pin|pin)|[Ss]ans (?:pin|\u00e9pingl)|[Ss]in (?:pin|fijar)"
        r"|[Ss]em pin|[Ss]enza pin"
        r"|\u0431\u0435\u0437 pin|(?:\u5173\u6389|\u5173\u95ed|\u53bb\u6389|\u4e0d\u7528)\s?pin"
        r"|pin_memory(?:\(\)|\s?=\s?True)?[`\"' ]{0,2}(?:\u3092|\u304b\u3089)?\s?"
        r"(?:\u5916|\u3084\u3081|\u6d88\u3057|\u524a|\u53bb\u6389|\u62ff\u6389)"
        r"|pin_memory\s?(?:\u5173|\u3092\u5207|\u3092\u7121\u52b9|\u306a\u3057)|pin_memory\(\) (?:removed"
        r"|gone|weg)|--disable-pinned-memory|[Pp]inned memory (?:is |was )?(?:off|disabled|aus)\b"
        r"|[Dd]isabl\w+ (?:the )?pinned|(?:removed?|removing|dropp\w+|entfern\w+) (?:the )?[`\w.]*pin_memory"
    ),
    "fine": (
        r"\u56fa\u307e\u3089|\u30b9\u30ef\u30c3\u30d7(?:\u3057|\u3055\u308c|\u304c\u51fa|\u306f\u51fa)\u306a"
        r"|\u4e0d\u5361|\u4e0d\u518d\u5361|\u6ca1\u6709? ?swap"
        r"|no swap|not swap|without swap|swap (?:stays|is|remains) (?:at )?(?:0|empty|unused|flat)"
        r"|\bconstant\b|\bstable\b|\bfine\b|\bnormal"
        r"|swap (?:usage )?(?:stays|is|remains|bleibt|reste)\b[^.\n\d]{0,16}\b\d{1,3} ?M[Bio]"
        r"|\b\d+ ?Gi?B (?:is |are )?(?:available|free)\b"
        r"|\bgone\b|disappear|goes away|\bflat\b|no problem|never (?:swap|touch)"
    ),
    "locked": r"(?:^|\s)(?:Mlocked|Unevictable|VmLck|VmPin):?\s+(?P<kib>\d+) kB",
    "less": (
        r"(?i:swap)\s?(?:[=:]|at|bei|\u00e0|en|is|ist|stays at|bleibt bei)?\s?0\b|"
        r"(?i:swap\w*|auslager\w*)\b[^.\n]{0,40}\b(?:redescend|retombe|diminue|baisse|vide|drops?|falls?"
        r"|goes (?:down|back)|shrinks?|is gone|untouched|isn't (?:touched|used)|empty|sinkt|f\u00e4llt|leer"
        r"|baja|vac\u00edo|cai|vazio|scende|vuoto"
        r"|\u043f\u0430\u0434\u0430\u0435\u0442|\u043f\u0443\u0441\u0442)\w*|swap[^\n]{0,12}(?:\u4e0b\u964d"
        r"|\u964d\u5230|\u4e0d\u518d|\u51cf|\u6e1b|\u4e0b\u304c|\u7a7a)|\b(?:faster|schneller|plus vite"
        r"|m\u00e1s r\u00e1pido|mais r\u00e1pido|pi\u00f9 veloce"
        r"|\u0431\u044b\u0441\u0442\u0440\u0435\u0435)\b|\u66f4\u5feb|\u901f\u304f"
    ),
    "divided": r"/\s*(?:2\s?\*\*\s?(?P<power>30|20|40)|1024\s?\*\*\s?(?P<of>[234])|1e(?P<e>9|6))",
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a machine that swaps while memory is pinned; nothing where nobody pins."""
    if not any(_pattern("on").search(line.text) for line in passage.lines):
        return
    memory = Memory(passage)
    if memory.swapping is not None:
        yield memory.swapping.fact("pinned.swapping", True)
    told = told_swapping(passage) if passage.personal else None
    if told is not None:
        yield told.fact("pinned.told_swapping", True)
    found = _pinned(passage)
    if found is not None and memory.total:
        amount, line = found
        yield line.fact("pinned.bytes", int(amount))
        yield line.fact("pinned.share", round(amount / memory.total, 2))
    without = _fine_without(passage)
    if without is not None:
        yield without.fact("pinned.fine_without", True)


def _pinned(passage: Passage) -> tuple[float, Line] | None:
    """The largest amount of pinned memory that a line tells, times the processes where it is that of one."""
    best: tuple[float, Line] | None = None
    many = _processes(passage)
    for line in passage.lines:
        if not _pattern("pinned").search(line.text):
            continue
        each = many if _pattern("per-process").search(line.text) else 1
        if line.voice is Voice.TYPED:
            scale = _scale(line.text)
            answer = next(passage.answers(line, 1), None)
            number = re.match(r"\s*(\d{1,15}(?:\.\d+)?)\s*$", answer.text) if answer else None
            found = [(float(number.group(1)) * scale, answer)] if number and answer else []
            each = many
        elif (kib := _pattern("locked").search(line.text)) is not None:
            found, each = [(int(kib.group("kib")) * 1024.0, line)], 1
        else:
            parts = _pattern("sentence").split(line.text)
            told = [part for part in parts if _pattern("pinned").search(part)]
            found = [(amount, line) for part in told for amount in _product(part)]
            each = 1 if found else each
            found = found or [(amount, line) for part in told for amount in _locked(part)]
            if not found and len(parts) > 1:  # "each pins its shard, 52 GB per rank"
                found = [(amount, line) for amount in _locked(line.text)]
        for amount, where in found:
            if best is None or amount * each > best[0]:
                best = (amount * each, where)
    return best


def _scale(command: str) -> float:
    found = _pattern("divided").search(command)
    if found is None:
        return 1.0
    if found.group("power"):
        return float(2 ** int(found.group("power")))
    return 1024.0 ** int(found.group("of")) if found.group("of") else 10.0 ** int(found.group("e"))


def _processes(passage: Passage) -> int:
    found = _pattern("processes").search(passage.text)
    number = int(found.group("number") or found.group("torchrun")) if found else 1
    return number if 1 <= number <= 64 else 1


def _product(text: str) -> list[float]:
    """What is pinned in all, where a number of processes stands before the size of one."""
    return [
        int(found.group("number")) * size
        for found in _pattern("product").finditer(text)
        for size in amounts(found.group("size"))[:1]
    ]


def _locked(text: str) -> list[float]:
    """The sizes of a sentence that names pinned memory; the one beside the word where others stand."""
    for machine in reversed(list(ram(text))):
        text = text[: machine.start()] + " " * len(machine.group()) + text[machine.end() :]
    found = _pattern("pinned").search(text)
    if found is None:
        return amounts(text)
    sizes = placed(text)
    behind = [size for start, _, size in sizes if 0 <= start - found.end() <= BEHIND]
    before = [size for _, end, size in sizes if 0 <= found.start() - end <= BEFORE]
    return behind[:1] or before[-1:] or [size for _, _, size in sizes]


def _fine_without(passage: Passage) -> Line | None:
    """Words that without pinning nothing swaps or all is well, or that swap gets less."""
    said = sorted((*passage.sentences, *passage.of(Voice.PRINTED, Voice.SAID)), key=lambda line: line.at)
    for line in said:
        found = _pattern("without").search(line.text)
        if found is None or says("unchanged").search(line.text):
            continue
        around = (line.text[found.end() :], line.text[: found.start()])
        if any(_pattern("fine").search(text) or says("works").search(text) for text in around):
            return line
        if _pattern("less").search(line.text):
            return line
    return None
