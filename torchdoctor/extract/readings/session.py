"""What was typed at a prompt of Python and answered, as far as losses and gradients go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "session"

FACTS: dict[str, str] = {
    "session.grad_off": "bool: torch.is_grad_enabled() is False, and nothing that was typed switched it off",
    "session.loss_nan": "bool: a loss that was asked for at the prompt is NaN or infinite",
    "session.single_value": "str: code that asks for the standard deviation or variance of one value",
    "session.non_leaf": "str: code that makes a tensor with requires_grad and moves or changes it at once",
    "session.non_leaf_grad": "bool: the gradient of that tensor is None after backward",
}

_PATTERNS = {
    "off": r"no_grad|inference_mode|set_grad_enabled",
    "query": r"is_grad_enabled\(\)",
    "told": r"is_grad_enabled\(\)\W{0,8}(?P<value>True|False)\b",
    "made": (
        r"^\s*(?P<name>[A-Za-z_]\w*)\s*=\s*[^#\n]{0,120}requires_grad\s*=\s*True[^#\n]{0,40}\)\s*(?:\.(?:cud"
        r"a|to|half|float|double|view"
        r"|reshape|t|contiguous|clone)\(|[*/+-]\s*\d)"
    ),
    "loss": (
        r"^\s*(?:print\()?(?:\w*(?:loss|criterion|objective)\w*)(?:\([^=\n]*\))?(?:\.\w+\(?\)?){0,2}\)?\s*$"
    ),
    "nan": r"^\s*(?:tensor\()?\s*-?(?:nan|inf)\b",
    "spread": r"^\s*(?:print\()?(?:(?P<name>[A-Za-z_]\w*)|(?P<made>torch\.[^=\n]{3,60}?))\.(?:std|var)\(\)",
    "one-value": (
        r"torch\.(?:tensor\(\s*\[+\s*-?[\d.e+-]+\s*\]+|(?:rand|randn|ones|zeros"
        r"|empty)\(\s*\(?1\b(?:,\s*1)*\s*,?\)?\s*\))"
    ),
    "backward": r"\.backward\(",
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of losses that are no numbers, and of gradients that are off or missing."""
    nan = _loss_nan(passage)
    if nan is not None:
        yield nan.fact("session.loss_nan", True)
    single = _single_value(passage)
    if single is not None:
        yield single.fact("session.single_value", single.text.strip()[:120])
    off = _grad_off(passage)
    if off is not None:
        yield off.fact("session.grad_off", True)
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    if not any(_pattern("backward").search(line.text) for line in code):
        return
    for line in code:
        made = _pattern("made").match(line.text)
        if made is None:
            continue
        missing = _missing(passage, line, made.group("name"))
        if missing is not None:
            yield line.fact("session.non_leaf", line.text.strip()[:120])
            yield missing.fact("session.non_leaf_grad", True)
            return


def _loss_nan(passage: Passage) -> Line | None:
    for line in passage.of(Voice.TYPED):
        if _pattern("loss").match(line.text):
            answer = next(passage.answers(line, 1), None)
            if answer is not None and _pattern("nan").match(answer.text):
                return answer
    return None


def _single_value(passage: Passage) -> Line | None:
    for line in passage.of(Voice.TYPED):
        asked = _pattern("spread").match(line.text)
        answer = next(passage.answers(line, 1), None) if asked is not None else None
        if asked is None or answer is None or not _pattern("nan").match(answer.text):
            continue
        name = asked.group("name")
        made = re.compile(rf"^\s*{name}\s*=\s*") if name else None
        above = (one.text for one in passage.of(Voice.TYPED) if made is not None and made.match(one.text))
        if any(_pattern("one-value").search(text) for text in (asked.group("made") or "", *above)):
            return line
    return None


def _grad_off(passage: Passage) -> Line | None:
    if not passage.personal or _pattern("off").search(passage.code):
        return None
    last: tuple[bool, Line] | None = None
    for line in passage.lines:
        if line.voice is Voice.TYPED and _pattern("query").search(line.text):
            answers = list(passage.answers(line, 1))
            if answers and answers[-1].text.strip() in ("True", "False"):
                last = answers[-1].text.strip() == "True", answers[-1]
        elif line.voice is Voice.PRINTED and (told := _pattern("told").search(line.text)) is not None:
            last = told.group("value") == "True", line
    return last[1] if last is not None and not last[0] else None


def _missing(passage: Passage, made: Line, name: str) -> Line | None:
    asked = re.compile(rf"(?:^|[(\s])\s*{re.escape(name)}\.grad\b(?!_)")
    for line in passage.lines[made.at + 1 :]:
        if line.voice is Voice.TYPED and asked.search(line.text):
            answers = list(passage.answers(line, 3))
            if not answers and line.text.strip() == f"{name}.grad" and line.at + 1 < len(passage.lines):
                return line  # Python shows nothing where the value is None
            for answer in answers:
                if answer.text.strip() == "None":
                    return answer
        elif line.voice is Voice.PRINTED and re.search(
            rf"\b{re.escape(name)}\.grad\W{{1,6}}None\b", line.text
        ):
            return line
    return None
