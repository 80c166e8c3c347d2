"""GPU memory that rises when validation begins, and code of a validation that records the graph."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "eval_memory"

FACTS: dict[str, str] = {
    "eval_memory.rises": "bool: somebody says that validation takes more GPU memory than training",
    "eval_memory.recorded": "str: code of a validation or test loop, and no_grad nowhere in the text",
}

_PATTERNS = {
    "amount": r"\b\d+(?:\.\d+)? ?G(?:i?B|o)?\b",
    "loop": r"^\s*(?:(?:async )?def \w*(?:valid|eval|test|infer)\w*\(|\w+(?:\.\w+)*\.eval\(\))",
    "model": r"(?<!def )\b(?:(?:self\.)?(?:model|net|network|\w+_model|backbone|encoder)|self)\(",
    "off": r"no_grad|inference_mode|set_grad_enabled|requires_grad_\(False\)",
    "denied": (
        r"\?|\b(?:not|no|without|n't|forgot|missing|never"
        r"|ohne|kein|sans|sin|sem|senza|bez|\u0431\u0435\u0437)\b|\u6ca1"
    ),
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a validation that records the graph; nothing where gradients are switched off somewhere."""
    if not passage.personal or _off(passage):
        return
    rises = _rises(passage)
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    loop = next((line for line in code if _pattern("loop").search(line.text)), None)
    if rises is None or loop is None:
        return
    if any(line.at >= loop.at and _pattern("model").search(line.text) for line in code):
        yield rises.fact("eval_memory.rises", True)
        yield loop.fact("eval_memory.recorded", loop.text.strip()[:120])


def _off(passage: Passage) -> bool:
    """Are gradients switched off? Somebody may ask for it, or say that he does not do so."""
    if _pattern("off").search(passage.code):
        return True
    said = (line for line in passage.sentences if _pattern("off").search(line.text))
    return any(_pattern("denied").search(line.text) is None for line in said)


def _rises(passage: Passage) -> Line | None:
    """Validation, memory and that it grows, in one sentence or in two."""
    said = passage.sentences
    for line, below in zip(said, [*said[1:], None], strict=True):
        for text in (line.text, f"{line.text} {below.text if below is not None else ''}"):
            memory = says("memory").search(text) or _pattern("amount").search(text)
            if memory and says("evaluation").search(text) and says("grows").search(text):
                return line
    return None
