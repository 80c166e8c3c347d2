"""How the placeholders of images in a text differ in number from the features that are to replace them."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "placeholders.lacking": "int: how many fewer placeholders the text holds than there are features",
    "placeholders.surplus": "int: how many more",
}

_COUNTS = (
    r"\btokens: (?P<tokens>\d{1,9}), features:? (?P<features>\d{1,9})",
    r"= (?P<features>\d{1,9}) multimodal tokens to (?P<tokens>\d{1,9}) placeholder",
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The difference; nothing where the message counts no placeholders."""
    del transcript
    found = next(filter(None, (pattern(form).search(event.text[:2_000]) for form in _COUNTS)), None)
    if found is None:
        return
    surplus = int(found["tokens"]) - int(found["features"])
    yield "surplus", surplus if surplus > 0 else None
    yield "lacking", -surplus if surplus < 0 else None
