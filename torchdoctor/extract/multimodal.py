"""How the placeholders of a picture, video or sound in a prompt fall short of its features, or exceed them.

Models that take more than text put one feature of the encoder in the place of each placeholder, and every
loader counts both. The two numbers tell what happened to the prompt, whoever prints them.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "multimodal.tokens": "int: how many placeholders the prompt has",
    "multimodal.features": "int: how many of them the features of the encoder need",
    "multimodal.form": "str: none (no placeholder), whole (they were not expanded), cut (some are missing),"
    " stray (a few too many) or unequal (many too many)",
    "multimodal.lost": "int: how many placeholders are missing, where some are there",
    "multimodal.stray": "int: how many are there beyond the features",
}

_SOURCES = {
    # transformers, every version; loaders that follow it
    "counted": r"tokens do not match[:,] tokens[:=] ?(\d{1,9}), features[:=]? ?(\d{1,9})",
    "assigned": r"= (\d{1,9}) multimodal tokens to (\d{1,9}) placeholder",  # vLLM
    # transformers 4.53 and later, by text and ids of each sample
    "listed": r"Got ids=\[([\d, ]{1,2000})\] and text=\[([\d, ]{1,2000})\]",
}
_PATTERNS = Patterns(_SOURCES)
_WHOLE = 32  # features of the smallest pictures; a prompt that was cut leaves more than a few of them
_FEW = 16


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of a message that gives both numbers; nothing for others."""
    del transcript
    counts = _counts(event.text)
    if counts is None:
        return
    tokens, features = counts
    yield "tokens", tokens
    yield "features", features
    if tokens == 0 < features:
        yield "form", "none"
    elif tokens < features:
        yield "form", "whole" if tokens <= _FEW and tokens * _WHOLE <= features else "cut"
        yield "lost", features - tokens
    elif tokens > features:
        few = tokens - features <= _FEW and (tokens - features) * 10 <= features
        yield "form", "stray" if few else "unequal"
        yield "stray", tokens - features


def _counts(text: str) -> tuple[int, int] | None:
    """(placeholders, features) that a message tells."""
    if (found := _PATTERNS["counted"].search(text)) is not None:
        return int(found[1]), int(found[2])
    if (found := _PATTERNS["assigned"].search(text)) is not None:
        return int(found[2]), int(found[1])
    if (found := _PATTERNS["listed"].search(text)) is not None:
        ids, wanted = (sum(int(one) for one in group.split(",") if one.strip()) for group in found.groups())
        return ids, wanted
    return None
