"""GPU memory that rises when validation begins, and code of a validation that records the graph."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "eval_memory"

FACTS: dict[str, str] = {
    "eval_memory.rises": "bool: somebody says that validation takes more GPU memory than training",
    "eval_memory.recorded": "str: code of a validation or test loop, and no_grad nowhere in the text",
}

_PATTERNS = {
    "rises": (
        r"\b(?:validat\w*|eval\w*|test(?:ing)?|inference)\b[^\n]{0,80}\b(?:memory|vram"
        r"|\d+ ?G(?:i?B)?)\b[^\n]{0,60}"
        r"|\bmemory\b[^\n]{0,80}\b(?:validat\w*|eval\w*|testing|inference)\b"
    ),
    "more": (
        r"\bmore\b|\bgoes up\b|\bgrow|\bincreas|\bjumps?\b|\brises?\b|\bdoubles?\b|\bhigher\b|\bfills?\b"
        r"|\brun(?:s|ning)? out\b"
    ),
    "loop": r"^\s*(?:def \w*(?:valid|eval|test|infer)\w*\(|\w+\.eval\(\))",
    "model": r"=\s*(?:self\.)?(?:model|net|network|\w*_model)\(",
    "off": r"no_grad|inference_mode|set_grad_enabled|requires_grad_\(False\)",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a validation that records the graph; nothing where gradients are switched off somewhere."""
    if not passage.personal or _pattern("off").search(passage.text):
        return
    said = passage.of(Voice.SAID)
    rises = next(
        (one for one in said if _pattern("rises").search(one.text) and _pattern("more").search(one.text)),
        None,
    )
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    loop = next((line for line in code if _pattern("loop").search(line.text)), None)
    if rises is None or loop is None:
        return
    if any(line.at > loop.at and _pattern("model").search(line.text) for line in code):
        yield rises.fact("eval_memory.rises", True)
        yield loop.fact("eval_memory.recorded", loop.text.strip()[:120])
