"""Checkpointed blocks that get no gradient: torch's warning beside a loss that does not move."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.grad_norms import norms
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "no_gradient"

FACTS: dict[str, str] = {
    "no_gradient.warned": "bool: torch warned that no input of a checkpointed block requires grad",
    "no_gradient.reentrant": "str: code that checkpoints a block in the re-entrant form",
    "no_gradient.input": "str: code or words that show the block's input to need no gradient",
    "no_gradient.stuck": "bool: gradient norms of 0, or a loss that stays where it was, printed or told",
}

FEWEST = 3
# of the first loss: below that it is noise from batch to batch
MOVED = 0.02

_PATTERNS = {
    "warned": r"None of the inputs have requires_grad=True",
    "checkpoint": (
        r"(?<![\w.])(?:\w{1,24}\.){0,3}checkpoint(?:_sequential)?\(\s*[\w.]+\s*,"
        r"|gradient_checkpointing_enable\("
        r"|gradient_checkpointing\s*=\s*True|set_grad_checkpointing\("
    ),
    "other-form": (
        r"use_reentrant['\"]?\s*[=:]\s*False|enable_input_require_grads\("
        r"|\.requires_grad_\(\s*(?:True)?\s*\)"
    ),
    "needs-none": (
        r"requires_grad_\(\s*False\s*\)|requires_grad\s*=\s*False|\.detach\(\)"
        r"|checkpoint\([^\n]{1,60},\s*\{|checkpoint\([^\n]{1,60}\bdict\("
        r"|get_peft_model\(|LoraConfig\("
    ),
    "frozen": (
        r"(?i)\bfrozen?\b|\bfreez\w+|\bfroze\b|\bdict(?:ionary)?\b|eingefroren|gel\u00e9e?s?\b"
        r"|congelad|congelat|bevroren"
        r"|\u51bb\u7ed3|\u51cd\u7d50|\u30d5\u30ea\u30fc\u30ba|\ub3d9\uacb0"
        r"|\u0437\u0430\u043c\u043e\u0440\u043e|dondur|\bLoRA\b|\bPEFT\b|\bpeft\b"
    ),
    "nothing": r"^(?:None|null|0(?:\.0*)?(?:e[+-]?0+)?|zero|-)$|\bNone\b",
    "with-form": r"(?i)ckpt|checkpoint|\bgc\b|\bavec\b|\bwith\b|\bmit\b|\bcon\b|\bon\b",
    "forward": r"^\s*def forward\(\s*self\s*,\s*(?P<names>[^)\n]{1,200})\)",
    "on": (
        r"\bcheckpoint\(\s*[\w.\[\]]{1,60}\s*,\s*(?P<name>[A-Za-z_]\w*)\s*[,)]"
        r"|\bcheckpoint_sequential\(\s*[\w.\[\]]{1,60}\s*,\s*[\w.]{1,30}\s*,\s*(?P<input>[A-Za-z_]\w*)\s*[,)]"
    ),
    "loss": r"(?<![\w.])(?:train_?)?loss['\"]?\s*[:=|]?\s*(?P<value>\d{1,6}\.\d{1,12})",
    "tried": (
        r"\b(?:if|when|once|only|instead|also|setting|switching|changing|wenn|sobald|erst|si|quand|cuando|se"
        r"|quando|je\u015bli|\u0435\u0441\u043b\u0438)\b|\u5982\u679c|\u6539\u6210|\u6539\u4e3a|\u3059\u308b\u3068|\u3059\u308c\u3070"
    ),
    "flows": r"\b(?:gets?|has|have|receives?) (?:a |its |their |non-?zero )?grad(?:ient)?s?\b",
    "told": (
        r"\bloss\b[^.\n]{0,60}?(?:\bnever\b|\bnot\b|n't|\bno longer\b|\bhardly\b)[^.\n]{0,24}?"
        r"(?:mov|chang|decreas|improv|go(?:es|ing)? down|drop|fall|converg|budg)"
        r"|\bloss\b[^.\n]{0,40}?\b(?:stays?|stuck|flat|constant|frozen|same|plateau)"
        r"|\b(?:gradients?|grads?|\.grad)\b[^.\n]{0,40}?\b(?:None|zero|0(?:\.0)?|missing)\b"
        r"|\b(?:weights|parameters|adapters?)\b[^.\n]{0,40}?(?:\bnever\b|\bnot\b|n't)[^.\n]{0,16}?"
        r"(?:chang|updat|mov)"
        r"|\b(?:nothing|not|doesn't|does not|never) (?:is )?(?:learn|train)"
        r"|loss\b[^.\n]{0,40}?(?:bleibt|\u00e4ndert sich nicht|sinkt nicht"
        r"|ne (?:baisse|bouge|diminue|change))"
        r"|loss\s?[^\n]{0,12}(?:\u4e0d\u4e0b\u964d|\u4e0d\u53d8|\u6ca1\u6709\u53d8\u5316)"
        r"|loss\s?[^\n]{0,12}(?:\u4e0d\u964d|\u4e0b\u304c\u3089\u306a\u3044|\u5909\u308f\u3089\u306a\u3044)"
        r"|loss\b[^\n]{0,24}\u043d\u0435 (?:\u043f\u0430\u0434\u0430\u0435\u0442"
        r"|\u043c\u0435\u043d\u044f\u0435\u0442\u0441\u044f"
        r"|\u0443\u043c\u0435\u043d\u044c\u0448\u0430\u0435\u0442\u0441\u044f)"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("warned",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a run with the warning, a remark where the gradients flow by another way, or with the call."""
    warned = passage.first(_pattern("warned"))
    if warned is not None:
        yield warned.fact("no_gradient.warned", True)
        stuck = _stuck(passage)
        if stuck is not None:
            yield stuck.fact("no_gradient.stuck", True)
        return
    code = snippets(passage)
    call = next((line for line in code if _pattern("checkpoint").search(line.text)), None)
    call = call or next((line for line in passage.lines if _pattern("checkpoint").search(line.text)), None)
    if call is None or not passage.asked or cured(passage):
        return
    contrast = _contrast(passage)
    if contrast is None and _pattern("other-form").search(passage.text):
        return
    needs = passage.first(_pattern("needs-none"))
    needs = needs or next((line for line in passage.sentences if _pattern("frozen").search(line.text)), None)
    needs = needs or _own_input(passage)
    stuck = _emptied(passage) or _without(passage, 1 if contrast else FEWEST - 1) or _stuck(passage)
    yield call.fact("no_gradient.reentrant", call.text.strip()[:120])
    if needs is not None:
        yield needs.fact("no_gradient.input", needs.text.strip()[:120])
    if stuck is not None:
        yield stuck.fact("no_gradient.stuck", True)


def _emptied(passage: Passage) -> Line | None:
    """A row in which the column of the checkpointed run holds None or 0 and another one a number."""
    for table in tables(passage):
        for row in table.rows:
            empty = [head for head, cell in row.cells if _pattern("nothing").search(cell.strip())]
            full = [cell for _, cell in row.cells if (value := number(cell)) is not None and abs(value) > 0]
            if full and any(_with(head) for head in empty):
                return row.line
    return None


def _contrast(passage: Passage) -> Line | None:
    """Words that it works with the other form, where the code does not use it."""
    if any(_pattern("other-form").search(line.text) for line in passage.of(Voice.CODE, Voice.TYPED)):
        return None
    found = [line for line in passage.sentences if _pattern("other-form").search(line.text)]
    works = all(
        _pattern("tried").search(line.text)
        and (says("works").search(line.text) or _pattern("flows").search(line.text))
        for line in found
    )
    return found[0] if found and works else None


def _without(passage: Passage, fewest: int) -> Line | None:
    """Parameters that are learned, of which a loop prints that they have no gradient."""
    learned = "requires_grad" in passage.text or "lora_" in passage.text.lower()
    if not learned and _own_input(passage) is None:
        return None  # what is frozen has none either
    values = list(shown(passage))
    frozen = {
        one.line.at for one in values if one.expression.endswith(".requires_grad") and one.value == "False"
    }
    empty = [
        one.line
        for one in values
        if one.line.at not in frozen
        and (_bare(one.expression).rpartition(".")[2], one.value)
        in (("grad", "None"), ("grad is None", "True"))
    ]
    # [(n, p.grad is None) for n, p in net.named_parameters()]
    listed = next(
        (
            one.line
            for one in values
            if ".grad is None" in one.expression
            and " for " in one.expression
            and len(re.findall(r",\s?True\b", one.value)) >= FEWEST - 1
            and "False" in one.value
        ),
        None,
    )
    return empty[-1] if len(empty) >= fewest else listed


def _bare(expression: str) -> str:
    """What is printed, of a print() with its output in a comment."""
    return expression.removeprefix("print(").removesuffix(")") if "print(" in expression else expression


def _own_input(passage: Passage) -> Line | None:
    """A checkpointed call on what forward() itself was given: pictures and the like need no gradient."""
    given: set[str] = set()
    for line in passage.of(Voice.CODE, Voice.TYPED):
        if (head := _pattern("forward").match(line.text)) is not None:
            given = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"[:=][^,]*", "", head["names"])))
        elif (call := _pattern("on").search(line.text)) is not None and (
            call["name"] or call["input"]
        ) in given:
            return line
        elif (made := re.match(r"\s*(?P<name>\w+)\s*=(?!=)", line.text)) is not None:
            given.discard(made["name"])
    return None


def _with(head: str) -> bool:
    """Is it the column of the run with checkpoints?"""
    return (
        _pattern("with-form").search(head) is not None
        and says("without").search(head) is None
        and re.search(r"(?i)=\s*(?:False|0|off)\b", head) is None
    )


def _stuck(passage: Passage) -> Line | None:
    """A line of a series that stays where it was; else words, where no series speaks against them."""
    listed = norms(passage)
    if listed:
        zero = len(listed) >= FEWEST - 1 and all(value == 0 for value, _ in listed)
        return listed[-1][1] if zero else None
    said = (line for line in passage.of(Voice.SAID) if not _pattern("warned").search(line.text))
    told = next((line for line in said if _pattern("told").search(line.text)), None)
    told = told or next((line for line in passage.sentences if _stays(line.text)), None)
    losses = list(_losses(passage))
    if len(losses) >= FEWEST:
        values = [value for value, _ in losses]
        if max(values) - min(values) > MOVED * values[0]:
            return None
        return told or (losses[-1][1] if len(losses) > FEWEST and values[-1] >= values[0] * 0.999 else None)
    return told


def _stays(text: str) -> bool:
    """Does a sentence say of the loss, or of gradients, that it stays as it was?"""
    return says("learning").search(text) is not None and says("stays").search(text) is not None


def _losses(passage: Passage) -> Iterator[tuple[float, Line]]:
    for line in passage.of(Voice.PRINTED, Voice.CODE):
        found = _pattern("loss").search(line.text)
        if found is not None:
            yield float(found.group("value")), line
