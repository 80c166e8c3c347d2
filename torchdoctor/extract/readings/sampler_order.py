"""A DistributedSampler whose epoch is never set, and epochs that come in the same order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.columns import Table, tables
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "sampler_order"

FACTS: dict[str, str] = {
    "sampler_order.unset": "bool: the code shuffles with a DistributedSampler, loops over epochs, sets none",
    "sampler_order.repeats": "bool: epochs show the same samples in the same order, by output or words",
}

_PATTERNS = {
    "sampler": r"DistributedSampler\(",
    "close": r"\)\s*(?:$|[,)#\]])|\)\n",
    "spoken": r"\bDistributedSampler\b",
    "loop": (
        r"\bfor\s+\w*(?:epoch|ep)\w*\s+in\b|\bfor\s+e\s+in\s+range|\bfor\s+\w+\s+in\s+range\([^)]{0,30}epoch"
        r"|\bwhile\s+\w*epoch"
    ),
    # a call that does its work: not in a comment, not always with the same number
    "set": r"^[^#\n]*\bset_epoch\(\s*(?!\d+\s*\))[\w.+ -]{1,40}\)",
    "unset": (
        r"#[^\n]{0,30}set_epoch|\b(?:no|not|never|without|nobody|neither|isn't|missing|forgot|don't|doesn't"
        r"|kein\w*|nicht|nie|ohne|pas|sans|sin|sem|senza|\u043d\u0435"
        r"|\u0431\u0435\u0437)\b[^.\n]{0,50}set_epoch"
        r"|set_epoch[^.\n]{0,40}\b(?:not|never|nowhere|missing|nicht|nirgends|nie|absent|jamais|nunca|mai"
        r"|\u043d\u0435)\b|set_epoch\(\s*\d+\s*\)"
        r"|(?:\u6ca1\u6709?|\u672a|\u4e0d)(?:\u8c03\u7528|\u5199|\u7528)?[^\n]{0,8}set_epoch"
        r"|set_epoch[^\u3002\n]{0,12}(?:\u6ca1|\u672a|\u547c\u3093\u3067\u3044\u306a"
        r"|\u547c\u3093\u3067\u307e\u305b\u3093|\u5fd8)"
        r"|(?:should|must|do|need|shall|muss|soll|faut|dois|debo|devo|\u9700\u8981"
        r"|\u5fc5\u8981)\b[^.\n]{0,30}set_epoch[^.\n]{0,40}\?"
    ),
    "epoch": (
        r"(?:\b(?:ep|epoch|epoche|\u00e9poque|\u00e9poca|epoca|\u044d\u043f\u043e\u0445\u0430)|\u8f6e\u6b21?"
        r"|\u30a8\u30dd\u30c3\u30af|\uc5d0\ud3ed)\s?[=:#\[]?\s?\d{1,5}\b\]?|^\s*\d{1,4}(?=:?\s+(?:tensor|\[))"
    ),
    # a list of numbers or names, or the hash of one
    "samples": (
        r"\d+(?:,? +\d+|,\d+){2,}|\[[^\]]{5,200}\]|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{6,64}\b"
        r"|\w+\.(?:jpe?g|png|npy|wav|tar|npz|txt|pt)\b"
    ),
    # numbers of samples, or names of files, and not what is measured
    "listed": (
        r"(?<![\d.])\d+(?:(?:,\s*|\s+)\d+(?![\d.])){3,}|(?:\w+\.(?:jpe?g|png|npy|wav|tar|npz|txt|pt)\b\W{1,4}){2,}"
        r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b"
    ),
    "sample-head": (
        r"md5|sha|hash|crc|check|\bids?\b|\bidx|ind(?:ex|ices)|order|sample|first|key|perm|file|digest"
        r"|\bbatch 0\b|Reihenfolge|ordre|orden|\u987a\u5e8f|\u9806"
    ),
    "rank-head": (
        r"^\W*(?:global_?|local_?)?(?:rank|proc(?:ess)?|gpu|replica|device|dev|worker|node|split"
        r"|world)\w*\W*$"
    ),
    "epoch-head": (
        r"^\W*(?:ep|epoch|epoche|\u00e9poque|\u00e9poca|epoca|\u044d\u043f\u043e\u0445\u0430|\u8f6e\u6b21?"
        r"|\u30a8\u30dd\u30c3\u30af|\uc5d0\ud3ed)\W*$"
    ),
    "ids": (
        r"\bids?\b|\bindi(?:ces|zes)|\bindexes\b|\bidxs?\b|\border\b|\bsamples?\b|file ?names?|permutation"
        r"|first batch|batches|sequence|md5|hash|Reihenfolge|Indizes|Dateinamen|ordre|indices"
        r"|orden|ordem|ordine|\u043f\u043e\u0440\u044f\u0434\u043e\u043a"
        r"|\u0438\u043d\u0434\u0435\u043a\u0441|\u7d22\u5f15|\u987a\u5e8f|\u6837\u672c|\u9806\u756a"
        r"|\u30a4\u30f3\u30c7\u30c3\u30af\u30b9|\uc21c\uc11c|\uc778\ub371\uc2a4"
    ),
    "same": (
        r"\b(?:same|identical)\s+(?:\w+ ){0,2}?(?:order|batch(?:es)?|ind(?:ices|exes)|samples?|sequence"
        r"|shape|pattern|spikes?|permutation)"
        r"|(?:order|batches|indices|samples|shuffl\w+)\b[^.\n]{0,50}\b(?:is|are|the|be) (?:always |exactly "
        r"|the )*(?:same|identical)"
        r"|(?:order|batches|indices|samples)\b[^.\n]{0,30}\b(?:same|identical)\b"
        r"|\u987a\u5e8f[^\n]{0,6}(?:\u4e00\u6837|\u76f8\u540c)|\u9806\u5e8f[^\n]{0,8}\u540c\u3058"
        r"|gleiche[nr]? Reihenfolge"
        r"|not (?:re)?shuffl|same (?:spikes|shape)|never (?:re)?shuffl"
    ),
    # "gets a.png, b.png as the first files in every epoch", where it is said that the epoch is never set
    "every": (
        r"(?:first|same)\b[^.\n]{0,40}\b(?:in|of|for|at) (?:every|each|all)\b[^.\n]{0,12}epoch|(?:ersten"
        r"|gleichen)\b[^.\n]{0,30}in jeder Epoche"
        r"|(?:premiers?|m\u00eames)\b[^.\n]{0,30}\u00e0 chaque \u00e9poque|(?:primer\w*"
        r"|mism\w+)\b[^.\n]{0,30}en cada \u00e9poca|\u6bcf\u4e2a\s?(?:epoch"
        r"|\u8f6e)[^\u3002\n]{0,20}(?:\u4e00\u6837|\u76f8\u540c)"
    ),
    # pytest shows the code of a test up to the line that did not hold
    "did-not-hold": r"^(?:\[\d{1,4}\]:? ?)?(?:E {2,}|FAILED \S{1,200}::\S{1,100} - )assert .* == ",
    "title": r"^[^\d|]{12,}$",
    "wanted": r"which is what I want|as (?:wanted|expected|intended)|on purpose",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("sampler", "spoken"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of code with a sampler for ranks; nothing where its epoch is set or it does not shuffle.

    Somebody shows that it is not as he wants it, or a test that did not hold does.
    """
    shown = passage.personal or passage.first(_pattern("did-not-hold"), Voice.PRINTED) is not None
    if not shown or _set(passage) or _in_order(passage.text):
        return
    sampler = passage.first(_pattern("sampler"))
    looped = passage.first(_pattern("loop")) is not None
    repeats = _told(passage) or _of_table(passage) or (_printed(passage) if looped or sampler else None)
    if not (sampler and looped):
        # told in words: the sampler, and what it gives in each epoch
        words = passage.of(Voice.SAID)
        spoken = next((line for line in words if _pattern("spoken").search(line.text)), None)
        sampler = sampler or (spoken if repeats is not None else None)
    if sampler is None or not (looped or repeats):
        return
    yield sampler.fact("sampler_order.unset", True)
    if repeats is not None:
        yield repeats.fact("sampler_order.repeats", True)


def _set(passage: Passage) -> bool:
    """Is the epoch set, by code or as far as the words tell? "I never call set_epoch" does not."""
    named = [line for line in passage.lines if "set_epoch" in line.text]
    if any(_pattern("set").search(line.text) for line in named if line.voice is Voice.CODE):
        return True
    told = [line.text for line in passage.sentences if "set_epoch" in line.text]
    shown = [line.text for line in named if line.voice is not Voice.SAID]
    return any(not _pattern("unset").search(text) for text in (*told, *shown))


def _in_order(text: str) -> bool:
    """Does each sampler of the code ask for no shuffling? That for validation may, beside one that trains."""
    calls = [text[found.end() : found.end() + 300] for found in _pattern("sampler").finditer(text)]
    ends = [_pattern("close").search(call) for call in calls]
    inside = [call[: end.start()] if end is not None else call for call, end in zip(calls, ends, strict=True)]
    return bool(inside) and all("shuffle=False" in call.replace(" ", "") for call in inside)


def _of_table(passage: Passage) -> Line | None:
    """The row of a table whose samples, or their hash, are those of another epoch of the same rank."""
    for table in tables(passage):
        own = table.column(_pattern("epoch-head"))
        if own is None:
            continue
        heads = table.head.cells
        shown = [at for at, head in enumerate(heads) if at != own and _pattern("sample-head").search(head)]
        shown = shown or [at for at in range(len(heads)) if at != own and _lists(table, at)]
        ranks = [at for at, head in enumerate(heads) if _pattern("rank-head").search(head)]
        seen: dict[tuple[str, ...], tuple[str, str]] = {}
        for row in table.rows if shown else ():
            rank, samples = tuple(row.cells[at] for at in ranks), " ".join(row.cells[at] for at in shown)
            epoch, before = seen.setdefault(rank, (row.cells[own], samples))
            if epoch != row.cells[own] and before == samples:
                return row.line
    return None


def _lists(table: Table, at: int) -> bool:
    return all(_pattern("samples").search(row.cells[at]) for row in table.rows)


def _printed(passage: Passage) -> Line | None:
    """The second of two lines that list the same samples in different epochs.

    The number of the epoch stands in the line, or in the last line before it that has one.
    """
    seen: dict[str, str] = {}
    under = ""
    for line in passage.of(Voice.PRINTED):
        epoch = _pattern("epoch").search(line.text)
        if epoch is None:
            if not under or not _pattern("listed").search(line.text):
                continue
            rest, number = line.text.strip(), under
        elif _pattern("samples").search(line.text[epoch.end() :]):
            rest, number = line.text[: epoch.start()] + line.text[epoch.end() :], epoch.group()
        else:
            under = epoch.group()
            continue
        if seen.setdefault(rest, number) != number:
            return line
    return None


def _told(passage: Passage) -> Line | None:
    if _pattern("wanted").search(passage.text):
        return None
    denied = any(_pattern("unset").search(line.text) for line in passage.sentences)
    titles = (line for line in passage.of(Voice.PRINTED) if _pattern("title").match(line.text))
    for line in sorted((*passage.sentences, *titles), key=lambda line: line.at):
        text = line.text
        if denied and _pattern("every").search(text):
            return line
        if not says("epochs").search(text):
            continue
        if _pattern("same").search(text) or says("same order").search(text):
            return line
        if says("repeats").search(text) and (says("learning").search(text) or says("batches").search(text)):
            return line
        same = any(says(thing).search(text) for thing in ("stays", "repeats", "identical"))
        if same and _pattern("ids").search(text):
            return line
    return None
