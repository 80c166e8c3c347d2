"""The ranks have different numbers of batches, by words, figures or code, and the program hangs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import rank_branch, stall
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.rank_figures import ranks_of, series
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "uneven_loops"

FACTS: dict[str, str] = {
    "uneven_loops.told": "str: what shows that ranks have different numbers of batches: words, figures, code",
    "uneven_loops.hangs": "bool: the same text says that the program hangs or waits till a timeout",
}

UNLIKE = 2.0  # times: figures that are further apart are not two shares of one data set
IN_EPOCH = 3  # steps: who is at an earlier one has just begun the next epoch

_PATTERNS = {
    "uneven": (
        r"\b(?:uneven|unequal)(?:ly)? (?:\w+ ){0,3}?"
        r"(?:data|inputs?|batch(?:es)?|lengths?|sizes?|shards?|splits?"
        r"|number|amounts?|distribut\w+|divid\w+)\b"
        r"|\bnumbers? of (?:\w+ )?(?:batches|samples|steps|iterations)\b[^.\n]{0,60}"
        r"\b(?:differ(?:s|ent)?|unequal|uneven|not (?:be )?(?:the )?(?:same|equal))\b"
        r"|\bdifferent (?:numbers?|lengths?|amounts?) of (?:\w+ )?(?:batches|samples|steps|iterations|data)\b"
        r"|\bnot (?:distributed|divided|split|sharded)[^.\n]{0,20}\b(?:equal(?:ly)?|evenly)\b"
        r"|\b(?:rank|gpu|process)\b[^.\n]{0,20}\b(?:does not|doesn't) have any (?:more )?batches"
        r"|\b(?:one|some|a|rank|gpu|process) (?:rank|gpu|process|\d)\w*\b[^.\n]{0,40}\b(?:has|have|had|gets?"
        r"|got|sees?|runs? out)"
        r" (?:of )?(?:one |a few |a couple of |\d{1,3} |two |three )?(?:(?:more|fewer"
        r"|less) )?(?:batch(?:es)?|samples|steps|iterations)"
        r" (?:more|fewer|less|earlier|before|than)\b"
        r"|\b(?:one|some|a) (?:rank|gpu|process)\w*\b[^.\n]{0,40}\b(?:has|have|gets?|sees?) (?:one |a few )?"
        r"(?:more|fewer|less) (?:batch(?:es)?|samples|steps|iterations)\b"
        r"|\bruns? out of (?:data|batches|samples)\b[^.\n]{0,40}\b(?:before|first|earlier|sooner)\b"
    ),
    "timeout": r"\btime(?:s|d)? ?outs?\b",
    "ranks": (
        r"\b(?:ranks?|DDP|DistributedDataParallel|torchrun|NCCL|multi-?GPU|accelerate|gpus|processus"
        r"|processes|Prozess\w*|proces[oi]s?|Rang|rangs?)\b"
        r"|\u8fdb\u7a0b|\u30d7\u30ed\u30bb\u30b9|\u30e9\u30f3\u30af|\ud504\ub85c\uc138\uc2a4|\ub7ad\ud06c"
        r"|\u043f\u0440\u043e\u0446\u0435\u0441\u0441\w*|\u0440\u0430\u043d\u0433\w*"
    ),
    # what a library offers or plans, no failure of the writer's own
    "offered": r"\b(?:join\(|Join API|context manager|feature request|proposal|RFC|pitch)\b",
    # what stands behind, or before, a number of batches
    "unit": (
        r"^\W*(?:\w+[- ])?(?:(?:mini-?)?batch(?! ?size)\w{0,4}|steps|iterations|iters|lots|lotes|Batches"
        r"|batchs|\u4e2a ?batch|\u6b65|\u4e2a\u6279|\u30d0\u30c3\u30c1|\u30b9\u30c6\u30c3\u30d7|\ubc30\uce58"
        r"|\u0431\u0430\u0442\u0447|\u0448\u0430\u0433\u043e\u0432|bat?ch)\b"
    ),
    "counted": (
        r"(?:\blen\([^#]{1,40}\)|(?:batches|num_batches|n_batches|steps_per_epoch|max_steps|n_steps"
        r"|num_steps|steps|iterations|iters|lots|lotes|\u30d0\u30c3\u30c1(?:\u6570)?"
        r"|\ubc30\uce58(?: ?\uc218)?"
        r"|\u0431\u0430\u0442\u0447\u0435\u0439)(?: ?\([^)#]{0,20}\))?)\W{0,4}(?:(?:is|are|of|ist|=+|:"
        r"|->)\W{0,3})?$"
    ),
    "head": (
        r"(?:batch(?:es|s)\b|\bsteps\b|\biterations\b|\biters\b|\blots\b|\blotes\b|\blen\(|num_batches"
        r"|\u6279\u6b21|batch ?\u6570|\u30d0\u30c3\u30c1\u6570|\ubc30\uce58 ?\uc218"
        r"|\u0431\u0430\u0442\u0447\u0435\u0439|\u0448\u0430\u0433\u043e\u0432)"
    ),
    "no-count": r"batch[ _-]?size|/s\b|per second|it/s|\bms\b",
    # a rank that is through with its epoch, and one that is in it
    "left": (
        r"\bleft (?:the |its )?loop|\bfinished\b|\b(?:epoch|loop)\b[^|]{0,24}\b(?:done|finished|complete[d]?"
        r"|ended|over)\b"
        r"|\bend of epoch|\bexhausted|StopIteration|termin[\u00e9o]|\bbeendet|\bfertig|\bfini[e]?\b"
        r"|\bbarrier\b"
        r"|\bwaiting (?:at|in|for)|entering (?:validation|barrier|eval)|\bvalidat|\beval|\u7ed3\u675f"
        r"|\u5b8c\u6210|\u7d42\u4e86|\u5b8c\u4e86|\uc644\ub8cc|\u0437\u0430\u0432\u0435\u0440\u0448"
        r"|\u0437\u0430\u043a\u043e\u043d\u0447"
    ),
    "position": (
        r"\b(?:step|batch|iter(?:ation)?|it|schritt|pas|paso|passo|\u0448\u0430\u0433"
        r"|\u7b2c)[\s_:=#]{0,3}(?P<at>\d{1,8})(?:/\d{1,8})?\b"
        r"|(?<![\w./])(?P<here>\d{1,8})/\d{1,8}(?![\w/])"
    ),
    # what gives each rank its own number of them
    "source": (
        r"\[(?:\w+\.)?(?:rank|local_rank|get_rank\(\))\s*::\s*|\bIterableDataset\b|split_by_node"
        r"|\bwebdataset\b|\bwds\.\w"
        r"|\bWebDataset\(|\.shard\(|islice\([^)]{0,60}rank|batch_sampler\s?=|\bBatchSampler\b|max_tokens"
        r"|token budget|bucket"
        r"|drop_last\s?=\s?False|array_split|skips? (?:broken|bad|corrupt|unreadable|invalid)|(?:filter"
        r"|drop)s? (?:out )?"
        r"(?:broken|bad|corrupt|unreadable|invalid|empty|short|long)|return None|collate_skip|safe_collate"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("source", "counted", "unit"))


def read(passage: Passage) -> Iterator[Fact]:
    """Both facts, where a person tells of ranks that hang; nothing where a library is described."""
    passage = passage.spaced
    if (
        not (stall.speaks(passage) or _noted(passage))
        or stall.over(passage)
        or not _pattern("ranks").search(passage.text)
    ):
        return
    if _pattern("offered").search(passage.text):
        return
    hangs = stall.told(passage) or passage.told(_pattern("timeout"))
    if hangs is None:
        return
    shown = _in_words(passage) or _in_figures(passage)
    if shown is None and next(rank_branch.read(passage), None) is None:
        shown = _left(passage) or _by_source(passage)
    if shown is None:
        return
    line, text = shown
    yield line.fact("uneven_loops.told", " ".join(text.split())[:100])
    yield hangs.fact("uneven_loops.hangs", True)


def _noted(passage: Passage) -> bool:
    """A note that begins with the hang, without a word of who writes it, beside what the ranks print."""
    first = passage.lines[0] if passage.lines else None
    return (
        first is not None
        and not passage.lesson
        and first.voice is Voice.SAID
        and stall.told(passage) is not None
        and says("hangs").search(first.text) is not None
        and len({rank for line in passage.of(Voice.PRINTED, Voice.SHELL) for rank in ranks_of(line)[0]}) > 1
    )


def _in_words(passage: Passage) -> tuple[Line, str] | None:
    for line in passage.sentences:
        if (found := _uneven(line.text)) is not None:
            return line, found.group()
    return None


def _uneven(text: str) -> re.Match[str] | None:
    """Words for it; those that are not only said of batches must stand beside a rank or a batch."""
    found = _pattern("uneven").search(text)
    beside = _pattern("ranks").search(text) or says("batches").search(text)
    return found or (says("uneven").search(text) if beside else None)


def _in_figures(passage: Passage) -> tuple[Line, str] | None:
    for one in series(passage):
        values = one.values.values()
        if not one.differ or min(values) < 1 or max(values) > UNLIKE * min(values):
            continue
        if all(value == int(value) for value in values) and _is_count(one.label):
            told = ", ".join(f"rank {rank}: {value:.0f}" for rank, value in sorted(one.values.items())[:6])
            return one.line, f"batches of {told}"
    return None


def _is_count(label: str) -> bool:
    """Is a figure the number of batches of an epoch, and not the one that a rank is at?"""
    before, hole, after = label.partition("#")
    if _pattern("no-count").search(label):
        return False
    if not hole:
        return bool(_pattern("head").search(label))
    return bool(_pattern("unit").match(after) or _pattern("counted").search(before))


def _left(passage: Passage) -> tuple[Line, str] | None:
    """Some ranks are through with their epoch, and the last that others print is a step."""
    last: dict[int, Line] = {}
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        ranks, _ = ranks_of(line)
        short = len(line.text) <= stall.REMARK and (
            _pattern("left").search(line.text) or _pattern("position").search(line.text)
        )
        if line.voice is Voice.PRINTED or short:
            last.update(dict.fromkeys(ranks, line))
    left = {rank for rank, line in last.items() if _pattern("left").search(line.text)}
    inside = {
        rank: line
        for rank, line in last.items()
        if rank not in left
        and (found := _pattern("position").search(line.text)) is not None
        and int(found.group("at") or found.group("here")) >= IN_EPOCH
    }
    if not left or not inside or len(left) + len(inside) < len(last):
        return None
    rank, line = min(inside.items())
    return (
        line,
        f"rank {rank} is still at: {line.text.strip()[:60]}; done: {', '.join(map(str, sorted(left)[:8]))}",
    )


def _by_source(passage: Passage) -> tuple[Line, str] | None:
    """Shares of the data that nobody makes equal, and a hang that comes at the end of an epoch."""
    if passage.told(says("epoch end")) is None or not says("each time").search(passage.text):
        return None
    for line in passage.lines:
        found = _pattern("source").search(line.text)
        if found is not None and "DistributedSampler(" not in passage.code:
            return line, line.text.strip() if line.voice is Voice.CODE else found.group()
    return None
