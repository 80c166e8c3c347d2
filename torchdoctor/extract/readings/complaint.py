"""What somebody complains of in plain words: GPU memory that grows while he trains, a loss that is NaN.

No figures, no message and no code stand in such a text, often no more than two sentences. What is said of
other people, of a remedy, or of sizes that somebody chose himself is none.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "complaint"

FACTS: dict[str, str] = {
    "complaint.memory_grows": "bool: somebody says that GPU memory grows from step to step of his training",
    "complaint.loss_nan": "bool: somebody says that his loss is, or becomes, NaN",
    "complaint.scheduler_memory": "bool: somebody says that Slurm or Kubernetes ended his job for its memory",
}

FIGURES = 3  # lines

_PATTERNS = {
    "gpu": (
        r"\bgpus?\b|\bvram\b|\bcuda\b|\u663e\u5b58|\u986f\u5b58"
        r"|\u0432\u0438\u0434\u0435\u043e\u043f\u0430\u043c"
        r"|grafikspeicher|\bGB of gpu|nvidia-smi"
    ),
    # again and again, while the program does the same
    "steadily": (
        r"\b(?:keeps?|continu\w+|constantly|steadily|gradually|slowly|over time|every|each"
        r"|per|after (?:each|every|a few"
        r"|several|some)|as (?:the )?training|during (?:the )?training|while training|in training"
        r"|more and more|until"
        r"|immer|jede[rmns]?|st\u00e4ndig|bis|chaque|cada|ogni|\u043a\u0430\u0436\u0434)\b"
        r"|\u4e00\u76f4|\u4e0d\u65ad|\u6301\u7eed|\u8d8a\u6765\u8d8a|\u6bcf\u4e2a|\u6bcf\u6b21"
        r"|\u9010\u6e10|\u76f4\u5230|\u6bce\u56de|\u5f90\u3005|\uacc4\uc18d|\u3069\u3093\u3069\u3093"
    ),
    "leak": (
        r"memory leak|leaks? (?:gpu )?memory|leaking (?:gpu )?memory|\u663e\u5b58\u6cc4\u6f0f"
        r"|\u5185\u5b58\u6cc4\u6f0f|\u30e1\u30e2\u30ea\u30ea\u30fc\u30af|speicherleck"
        r"|fuite (?:de )?m\u00e9moire"
    ),
    "work": (
        r"train|\biter|\bepoch|\bstep|\bbatch|\bloop|finetun|fine-tun|\bprogram\b|inferenc"
        r"|\bruns?\b|\bcrash"
        r"|\u8bad\u7ec3|\u8fed\u4ee3|epoche|entra[i\u00ee]n|\u8f6e|\u5b66\u7fd2|\u5b78\u7fd2|\ud559\uc2b5"
    ),
    # sizes of somebody's own choice, other runs, remedies, and what is only supposed
    "chosen": (
        r"\b(?:larger|bigger|higher|increas\w+|more|doubl\w+) (?:the )?(?:batch|model|resolution"
        r"|image|input|sequence|context"
        r"|layers?|width|size)|\bbatch[ _]?size (?:from|to|increas)|\bif you\b|\bexpected\b"
        r"|\bfixed|\bsolved|\bno (?:memory )?leak"
        r"|\bno longer|\bas you increase|\bnot a leak|\bdoes(?:n't| not) (?:leak|grow|increase)"
        r"|gpu-util|utili[sz]ation|\bstable\b|\bconstant\b|\bflat\b|\u7a33\u5b9a"
        r"|\u89e3\u51b3\u4e86|\u5df2\u89e3\u51b3"
    ),
    # "at iter 200 it takes 3200mb, at iter 900 7 GB"
    "told-figures": (
        r"\b(?:iter\w*|epoch|step|batch) (?P<step>\d{1,9})\b[^.\d]{0,60}?"
        r"(?P<size>\d{1,6}(?:\.\d{1,3})?) ?(?P<unit>[MG])i?B\b"
    ),
    "loss": (
        r"\b(?:loss(?:es)?|lost value|perplexity|verlust|perte|p\u00e9rdida|perda)\b|\u635f\u5931"
        r"|loss|\u640d\u5931|\uc190\uc2e4|\u043b\u043e\u0441\u0441|\u043f\u043e\u0442\u0435\u0440"
    ),
    "no-number": (
        r"\b(?:is|are|was|be|became|becomes?|becoming|turns?|turned|goes|went|go|gets?|got"
        r"|getting|to|always|all|only|into|as"
        r"|equals?|shows?|reports?|=|ist|wird|est|devient|es)\s?(?:\w+ )?[`'\"*]{0,2}(?:nan"
        r"|inf)\b|\bnans? (?:loss|after|at|in|from|during|value)"
        r"|loss\s?[`'\"*]{0,2}(?:nan|inf)\b|loss\s?[=:]\s?(?:nan|inf)\b|(?:\u53d8\u6210|\u53d8\u4e3a|\u51fa\u73b0|\u662f"
        r"|\u4e3a|\u90fd\u662f|\u304c|\u0441\u0442\u0430\u043b\u0430?|\uac00)\s?(?:nan|inf)\b"
    ),
    # "killed because of a slurm out-of-memory error"
    "scheduler": r"\b(?:slurm|sbatch|kubernetes|k8s|kubelet|pods?)\b",
    "ended": (
        r"\b(?:killed|cancell?ed|evicted|ends?|ended|dies|died|crash\w*|terminated|stopped|gets?|got"
        r"|fails?|failed)\b[^.;]{0,60}\b(?:out[ -]of[ -]memory|oom|memory limit)\b"
        r"|\b(?:out[ -]of[ -]memory|memory limit)\b[^.;]{0,40}\b(?:killed|killing|kills|evicted)\b"
    ),
    "other": (
        r"\byour (?:colleague|student|teammate|friend)|"
        r"\bonce\b|loss is (?:fine|ok)\b|\b(?:if|in case|when) (?:the |your |it |a )?(?:loss"
        r"|gradients?)\b|\bto (?:avoid"
        r"|prevent|check|detect|skip)\b|\bfixed|\bsolved|\bno (?:more )?nan"
        r"|\bnot (?:be )?nan|\bwithout nan|\bisnan|\bnan_to_num|\busually|\byou (?:may|might"
        r"|can|could)|\bmay (?:be|become)"
        r"|\bmight|\bshould|\bwould|\b(?:i|we|it|you)'d\b|\bwithout (?:this|that|it)\b|[{}]"
        r"|^(?:can|could|is it possible)\b|tensorflow|\bkeras\b|\btf\.|\bjax\b"
    ),
    # a program of another framework, by its name or as its code is written
    "elsewhere": r"tensorflow|\bkeras\b|\btf[.\d]|\bK\.set_|\bjax\b|\bflax\b|mxnet|\bpaddle",
    "torch": r"torch|\bnn\.Module\b|\.backward\(|deepspeed|\blightning\b|accelerate",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


@cache
def _memory() -> re.Pattern[str]:
    return re.compile(source("memory"), re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of complaints; nothing where nobody speaks of himself."""
    figures = sum(any(map(str.isdigit, line.text)) for line in passage.of(Voice.PRINTED))
    if not passage.personal:
        return
    # a word that Chinese or Korean letters touch has no end of its own: "loss\u4e3anan\u7684"
    lost = next((line for line in passage.spaced.sentences if _loses(line.text)), None)
    if lost is not None and not _elsewhere(passage.text) and (figures < FIGURES or passage.asked):
        yield lost.fact("complaint.loss_nan", True)
    for line in passage.sentences:
        killed = _pattern("scheduler").search(line.text) and _pattern("ended").search(line.text)
        if killed and not _pattern("other").search(line.text):
            yield line.fact("complaint.scheduler_memory", True)
            break
    if figures >= FIGURES:
        return  # with figures other readings decide
    grows = next(filter(None, map(_grows, passage.sentences)), None)
    if grows is not None and _pattern("work").search(passage.text):
        yield grows.fact("complaint.memory_grows", True)


def _elsewhere(text: str) -> bool:
    return _pattern("elsewhere").search(text) is not None and not _pattern("torch").search(text)


def _loses(text: str) -> bool:
    """Does one of the sentences say it? People who ask in a hurry set no blank behind a full stop."""
    parts = re.split(r"(?<=\w\w)[.,](?=[A-Z])", text)
    return any(_no_number(part) and not _pattern("other").search(part) for part in parts)


def _grows(line: Line) -> Line | None:
    text = line.text
    if _pattern("chosen").search(text) or not _pattern("gpu").search(text):
        return None
    if _pattern("leak").search(text) or _figures_rise(text):
        return line
    rising = _memory().search(text) and says("grows").search(text) and _pattern("steadily").search(text)
    return line if rising else None


def _figures_rise(text: str) -> bool:
    told = list(_pattern("told-figures").finditer(text))
    steps = [int(found["step"]) for found in told]
    sizes = [float(found["size"]) * (1024 if found["unit"] in "Gg" else 1) for found in told]
    return len(told) >= 3 and steps == sorted(steps) and sizes == sorted(set(sizes))


def _no_number(text: str) -> bool:
    low = text.lower()
    return ("nan" in low or "inf" in low) and all(
        _pattern(name).search(text) is not None for name in ("loss", "no-number")
    )
