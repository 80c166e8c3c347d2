"""Gradients that stay switched off: a global switch, or a generator that holds no_grad() open.

``torch.set_grad_enabled(False)`` as a statement holds until somebody sets it again, and a generator that was
not run to its end never leaves its ``with``. Nothing raises where backward() is guarded or something else
has a graph.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.grad_norms import norms
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import Shown, shown
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "grad_mode"

FACTS: dict[str, str] = {
    "grad_mode.left_off": "str: code that switches gradients off and does not switch them on again",
    "grad_mode.effect": "bool: values or words show results without a graph, or nothing that is learned",
    "grad_mode.went_off": "bool: the same question was answered by True first and by False later",
}

FEWEST = 2  # norms that are 0

_PATTERNS = {
    # somebody found it, and takes it for harmless as it runs but once
    "named": r"\bset_grad_enabled\b(?!\(\s*(?:True|mode|[a-z]))",
    "once": (
        r"(?i)module[- ]level|level of the module|top[- ]level|at import|on import|when (?:it is )?imported"
        r"|import time|only run once|Modulebene|beim Import|niveau (?:du )?module|\u00e0 l'import"
        r"|nivel de(?:l)? m\u00f3dulo|n\u00edvel do m\u00f3dulo|livello di modulo"
        r"|\u043d\u0430 \u0443\u0440\u043e\u0432\u043d\u0435 \u043c\u043e\u0434\u0443\u043b\u044f"
        r"|\u6a21\u5757\u7ea7|\u6a21\u5757\u9876\u5c42|\u30e2\u30b8\u30e5\u30fc\u30eb\u30ec\u30d9\u30eb"
    ),
    "switch": (
        r"set_grad_enabled\(\s*(?:mode\s*=\s*)?(?:False|0)\s*\)|(?:no_grad"
        r"|inference_mode)\(\)\.__enter__\(\)"
    ),
    "scoped": r"^\s*(?:async )?with\b|^\s*@|\bas\s+\w+:\s*$|__exit__",
    "back": (
        r"set_grad_enabled\(\s*(?:mode\s*=\s*)?(?!False\b|0\b)[\w.\"'\[\]]+|\bno_grad\(\)\.__exit__"
        r"|enable_grad\("
    ),
    "guarded": r"^\s*finally:",
    "function": r"^\s*(?:async )?def\b",
    "leaves": r"^\s*(?:return|raise)\b|^\s*if\b.*:\s*(?:return|raise)\b",
    "block": r"^\s*(?:async )?with\b[^#\n]*\b(?:no_grad|inference_mode)\(",
    "yields": r"^\s*(?:\w[\w., ]* = )?\(?yield\b",
    "context": r"^\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?:torch\.)?(?:autograd\.)?(?:no_grad|inference_mode)\(",
    "import": r"(?m)^\s*(?:import|from) \w|\bimport (?!torch\b)\w+|`[^`]*\bimport\b",
    "mode": r"is_grad_enabled\(",
    "result": r"(?:\.requires_grad|\.grad_fn)(?: is None)?$",
    "parameter": r"param|weight|\bp\.requires_grad|\bw\.|bias|\.data\b",
    "graph": r"grad_fn|requires_grad|require grad|\bgraph\b|Graph\b|backward|graphe|grafo",
    "none": (
        r"\bno\b|\bnot?\b|n't\b|\bnever\b|\bnone\b|\bFalse\b|\bmissing\b|\blost\b|\bgone\b|\bwithout\b"
        r"|\bkein\w*|\bnicht\b|\bohne\b|\bpas\b|\baucun\w*|\bsans\b|\bsin\b|\bning\w+|\bsem\b"
        r"|\bsenza\b|\bnon\b"
        r"|\bgeen\b|\bniet\b|\bnie\b|\bbez\b|\byok\b|\bkhông\b|\btidak\b"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, only=("none",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a mode that stays off; nothing where a text only explains it or says that it is over."""
    if not passage.asked or cured(passage):
        return
    values = list(shown(passage))
    went = _went_off(values)
    if went is not None and (_pattern("import").search(passage.text) or _effect(passage, values, went)):
        yield went.fact("grad_mode.went_off", True)
    held = _held(passage)
    left = held or _entered(passage) or _switched(passage) or _named(passage)
    if left is None:
        return
    yield left.fact("grad_mode.left_off", left.text.strip()[:120])
    effect = _effect(passage, values, held)
    if effect is not None:
        yield effect.fact("grad_mode.effect", True)


def _switched(passage: Passage) -> Line | None:
    """A switch that is no context, in code or in what a search printed, and nothing that undoes it."""
    if _pattern("back").search(passage.code):
        return _left_early(passage)
    return next(
        (
            line
            for line in passage.lines
            if (found := _pattern("switch").search(line.text)) is not None
            and _pattern("scoped").search(line.text[: found.start()] or " ") is None
            and "with " not in line.text[max(0, found.start() - 12) : found.start()]
        ),
        None,
    )


def _named(passage: Passage) -> Line | None:
    """Words that the switch stands at the level of a module, which its import runs."""
    if _pattern("back").search(passage.code):
        return None
    return next(
        (
            line
            for line in passage.sentences
            if _pattern("named").search(line.text) and _pattern("once").search(line.text)
        ),
        None,
    )


def _left_early(passage: Passage) -> Line | None:
    """A switch that is undone, but not by every way out of the function."""
    switch: Line | None = None
    for line in passage.of(Voice.CODE, Voice.TYPED):
        if _pattern("guarded").search(line.text):
            return None
        if _pattern("switch").search(line.text) and not _pattern("scoped").search(line.text):
            switch = line
        elif _pattern("back").search(line.text) or _pattern("function").match(line.text):
            switch = None
        elif switch is not None and _pattern("leaves").match(line.text):
            return switch
    return None


def _entered(passage: Passage) -> Line | None:
    """A context that was made, entered by hand, and never left."""
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    for line in code:
        made = _pattern("context").match(line.text)
        if made is None:
            continue
        name = re.escape(made["name"])
        entered = next((one for one in code if re.search(rf"\b{name}\.__enter__\(", one.text)), None)
        if entered is not None and not re.search(rf"\b{name}\.__exit__\(", passage.code):
            return entered
    return None


def _held(passage: Passage) -> Line | None:
    """The ``with torch.no_grad():`` in which a generator waits."""
    block: Line | None = None
    for line in passage.of(Voice.CODE, Voice.TYPED):
        indent = len(line.text) - len(line.text.lstrip())
        if block is not None and indent <= len(block.text) - len(block.text.lstrip()):
            block = None
        if _pattern("block").search(line.text):
            block = line
        elif block is not None and _pattern("yields").search(line.text):
            return block
    return None


def _went_off(values: list[Shown]) -> Line | None:
    """Where one question, asked twice, was answered by True and then by False to its end."""
    asked: dict[str, list[Shown]] = {}
    for one in values:
        if _pattern("mode").search(one.expression) or _pattern("result").search(one.expression):
            asked.setdefault(one.expression, []).append(one)
    for answers in asked.values():
        given = sorted(answers, key=lambda one: one.line.at)
        words = [one.value.strip("()[]., `") for one in given]
        switched = words.index("False") if "False" in words else 0
        if switched and set(words[:switched]) == {"True"} and set(words[switched:]) == {"False"}:
            return given[-1].line
    return None


def _vanished(passage: Passage) -> Line | None:
    """Norms of gradients that were there, and are 0 from some step on."""
    shown = norms(passage)
    last = next((at for at in range(len(shown) - 1, -1, -1) if shown[at][0] > 0), None)
    return shown[-1][1] if last is not None and len(shown) - 1 - last >= FEWEST else None


def _effect(passage: Passage, values: list[Shown], held: Line | None) -> Line | None:
    """Results without a graph. That the mode is off proves little right below the switch itself."""
    for one in values:
        value = one.value.strip("()[]., ")
        mode = _pattern("mode").search(one.expression)
        result = _pattern("result").search(one.expression) and not _pattern("parameter").search(
            one.expression
        )
        if (mode and value == "False" and held is not None) or (result and value in ("None", "False")):
            return one.line
    vanished = _vanished(passage)
    if vanished is not None:
        return vanished
    for line in passage.sentences:
        if says("learning").search(line.text) and says("stays").search(line.text):
            return line
        found = _pattern("graph").search(line.text)
        if found is not None and "switch" not in line.text and _pattern("none").search(line.text):
            return line
    return None
