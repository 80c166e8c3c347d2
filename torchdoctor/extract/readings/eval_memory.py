"""GPU memory that rises when validation begins, and code of a validation that records the graph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import sizes
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "eval_memory"

FACTS: dict[str, str] = {
    "eval_memory.rises": "bool: somebody says or shows that validation takes more GPU memory than training",
    "eval_memory.recorded": "str: code of a validation or test loop, and no_grad nowhere in the text",
}

MORE = 1.3
LABEL = 60  # characters: a longer line with one size is a sentence about it
FORWARD = 4.0  # what a forward pass alone adds to the weights; 1 to 2 is usual without the graph

_PATTERNS = {
    "memory-head": (
        r"\bmem|m\u00e9m|vram|peak|alloc|spei|[GM]i?B\b|\u663e\u5b58|\u5cf0\u503c"
        r"|\u30e1\u30e2\u30ea|\u043f\u0430\u043c\u044f\u0442|spitze|pico|pic\b"
    ),
    "query": r"memory_allocated\(|memory_reserved\(",
    "number": r"\d{1,6}(?:[.,]\d{1,3})?",
    "eval-mode": r"\.eval\(\)|\beval mode",
    "times": r"\d ?[x\u00d7]\b|\btimes\b|\u500d|mal so viel|fois plus|veces m\u00e1s|\d-fold",
    "loop": (
        r"^\s*(?:(?:async )?def \w*(?:valid|eval|test|infer|predict|embed|encode|serve|score|classif|sample"
        r"|generate"
        r"|val_|_val)\w*\(|(?P<model>\w+(?:\.\w+)*)\.eval\(\))"
        r"|^\s*(?P<made>\w+(?:\.\w+)*)\s*=[^=\n][^\n]*\.eval\(\)"
        r"|(?<![\w.])(?P<inline>\w+(?:\.\w+)*)\.eval\(\)"
    ),
    "model": (
        r"(?<!def )\b(?:(?:self\.)?(?:model|net|network|\w+_model|backbone|encoder|modelo|modell"
        r"|modele)|self)\("
    ),
    "off": r"no_grad|inference_mode|set_grad_enabled|requires_grad_\(False\)",
    # "without no_grad", "I don't use no_grad"; "there is no_grad, so it isn't that" is none
    "denied": (
        r"\?|(?:n['\u2019]t|\b(?:not|no|without|forgot|forgotten|missing|never|dont|nicht|non|pas|n\u00e3o"
        r"|nie|ikke"
        r"|niet|yok|ohne|kein|keine|sans|sin|sem|senza|bez|zonder|\u0431\u0435\u0437|\u043d\u0435"
        r"|\u043d\u0435\u0442))\b"
        r"[^.\n]{0,40}(?:no_grad|inference_mode|set_grad_enabled|requires_grad_)"
        r"|[\u6ca1\u4e0d\u5fd8][^.\n]{0,12}(?:no_grad|inference_mode)"
        r"|(?:no_grad|inference_mode)(?:\(\))?[`'\"]{0,2} ?(?:is |was |wird |ist |fehlt|manque|falta"
        r"|manca)?(?:missing|not\b|nicht|pas\b"
        r"|fehlt|manque|falta|manca|\S{0,6}(?:\u306a\u3057|\u306a\u3044|\u5fd8|\uc548|\uc5c6|\u6ca1)|yok)"
    ),
    "training": (
        r"\btrain(?:ing)?\b|entrena\w*|entra[i\u00ee]ne\w*|treino|treina\w*|addestra\w*"
        r"|\u0442\u0440\u0435\u043d\u0438\u0440\w*|\u043e\u0431\u0443\u0447\w*|\u8bad\u7ec3|\u5b66\u7fd2"
        r"|\ud559\uc2b5|trening\w*|e\u011fitim"
    ),
    "testing": (
        r"\b(?:val|valid|validation|eval|evaluation|test|infer|inference)\b|\u9a8c\u8bc1"
        r"|\u6d4b\u8bd5|\u691c\u8a3c|\u8a55\u4fa1|\uac80\uc99d|\u0432\u0430\u043b\u0438\u0434\w*"
    ),
    "forward": (
        r"before\W{0,6}(?P<before>\d+(?:\.\d+)?) ?G?i?B?\W{0,8}(?:after|nach)?[ _-]?(?:the )?(?:forward"
        r"|fwd)\W{0,6}"
        r"(?P<after>\d+(?:\.\d+)?) ?G"
    ),
    # what a tensor shows that has a graph behind it, and what numpy asks for then
    "graph": (
        r"grad_fn\s?(?:=|is|:)?\s?<|\.detach\(\)\.cpu\(\)|\.detach\(\)\.numpy\(\)"
        r"|Use tensor\.detach\(\)\.numpy\(\)"
    ),
}


# a method of the model that is no switch of it
_METHOD = (
    r"(?!eval|train|to\b|cuda|cpu|half|float|bfloat16|load_|parameters|named_|state_dict|requires_grad"
    r"|zero_grad)\w+"
)


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a validation that records the graph; nothing where gradients are switched off somewhere."""
    if not passage.personal:
        return
    recorded = recording(passage)
    rises = _rises(passage) if recorded is not None else None
    if rises is not None and recorded is not None:
        yield rises.fact("eval_memory.rises", True)
        yield recorded.fact("eval_memory.recorded", recorded.text.strip()[:120])


def recording(passage: Passage) -> Line | None:
    """The line of a validation whose forward pass records the graph."""
    if _off(passage):
        return None
    code = passage.snippets
    for loop in code:
        found = _pattern("loop").search(loop.text)
        if found is None:
            continue
        name = found.group("model") or found.group("made") or found.group("inline")
        own = (
            re.compile(rf"(?<![\w.]){re.escape(name)}(?:\.{_METHOD})?\(") if name and name != "self" else None
        )
        called = (
            line
            for line in code
            if line.at >= loop.at and (_pattern("model").search(line.text) or (own and own.search(line.text)))
        )
        if (call := next((line for line in called if line.at > loop.at), None)) is not None:
            return call
        if any(line.at == loop.at and _pattern("model").search(line.text) for line in code):
            return loop
        if own is not None and any(own.search(line.text) for line in code):
            return loop
    if passage.first(_pattern("graph")) is None and _denies(passage) is None:
        return None
    return _denies(passage) or passage.first(_pattern("graph"))


def _denies(passage: Passage) -> Line | None:
    """Somebody says that he has no no_grad; a question whether he needs it is none."""
    for line in passage.sentences:
        if (
            _pattern("off").search(line.text)
            and "?" not in line.text
            and _pattern("denied").search(line.text)
        ):
            return line
    return None


def _off(passage: Passage) -> bool:
    """Are gradients switched off? Somebody may ask for it, or say that he does not do so."""
    if _pattern("off").search(passage.code):
        return True
    said = (line for line in passage.sentences if _pattern("off").search(line.text))
    return any(_pattern("denied").search(line.text) is None for line in said)


def _rises(passage: Passage) -> Line | None:
    return _figures(passage) or _asked_for(passage) or _words(passage)


def _asked_for(passage: Passage) -> Line | None:
    """memory_allocated() at a prompt, before a forward pass and after it."""
    before = 0.0
    for line in passage.of(Voice.TYPED):
        if _pattern("query").search(line.text) is None:
            continue
        answer = next(passage.answers(line), None)
        number = _pattern("number").match(answer.text.strip()) if answer is not None else None
        if answer is None or number is None:
            continue
        if float(number.group()) >= FORWARD * before > 0:
            return answer
        before = float(number.group())
    return None


def _figures(passage: Passage) -> Line | None:
    """Sizes of lines that name training and of lines that name validation; or before and after a forward."""
    training: list[float] = []
    testing: list[tuple[float, Line]] = []
    for line, amount in (*_sized(passage), *_tabled(passage)):
        found = _pattern("forward").search(line.text)
        if found and float(found.group("after")) >= FORWARD * float(found.group("before")) > 0:
            return line
        for_training = _pattern("training").search(line.text) is not None
        for_testing = _pattern("testing").search(line.text) is not None
        if amount and for_training and not for_testing:
            training.append(amount)
        elif amount and for_testing and not for_training:
            testing.append((amount, line))
    if training and testing:
        most, line = max(testing, key=lambda item: item[0])
        if most >= MORE * max(training):
            return line
    return None


def _sized(passage: Passage) -> Iterator[tuple[Line, float]]:
    """Lines with the one size that they show, 0 where it is none or several."""
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        amounts = [figure.value for figure in sizes(line.text)]
        alone = len(amounts) == 1 and (line.voice is Voice.PRINTED or len(line.text) <= LABEL)
        yield line, amounts[0] if alone else 0.0


def _tabled(passage: Passage) -> Iterator[tuple[Line, float]]:
    """Rows of a table with the figure below the head that names memory."""
    for table in tables(passage.lines):
        at = table.column(_pattern("memory-head"))
        for row in table.rows if at is not None else ():
            if (number := _pattern("number").match(row.cells[at or 0])) is not None:
                yield row.line, float(number.group().replace(",", "."))


def _words(passage: Passage) -> Line | None:
    """Validation, memory and that it grows, in one sentence or two; a graph shown stands for validation."""
    shown = passage.first(_pattern("graph")) is not None and _pattern("eval-mode").search(passage.text)
    said = passage.sentences
    for line, below in zip(said, [*said[1:], None], strict=True):
        for text in (line.text, f"{line.text} {below.text if below is not None else ''}"):
            amounts = [figure.value for figure in sizes(text)]
            apart = len(amounts) >= 2 and max(amounts) >= MORE * min(amounts)
            memory = says("memory").search(text) or amounts
            grows = apart or says("grows").search(text) or _pattern("times").search(text)
            if memory and grows and (shown or says("evaluation").search(text)):
                return line
    return None
