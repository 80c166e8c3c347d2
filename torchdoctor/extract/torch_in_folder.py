"""A file or folder named torch in a listing of the folder that a program runs in."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "listing.torch": "str: torch, torch/ or torch.py, as a listing of the program's folder shows it",
}

MOST_LINES = 40
_ASKED = r"(?:^|[$#>%+;&]\s?)(?:ls|dir|tree|Get-ChildItem)(?=\s|$)(?P<where>[^|;&\n]*)"
_ENTRY = r"(?<![\w./\\-])(?P<name>torch(?:\.py)?/?)(?![\w.-]|\s+\d)"
_AT_TORCH = r"site-packages|dist-packages|torch[/\\]?\s*$"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """One fact, for a module of torch or a name in it that is not there."""
    if "torch" not in event.text or not (event.type or "").endswith(
        ("NotFoundError", "ImportError", "AttributeError")
    ):
        return
    left = 0
    for other in transcript.events:
        asked = pattern(_ASKED).search(other.text[:400])
        if asked is not None:
            left = 0 if pattern(_AT_TORCH).search(asked.group("where")) else MOST_LINES
            continue
        found = pattern(_ENTRY).search(other.text[:2_000]) if left > 0 else None
        left -= 1
        if found is not None and not other.frames and other.type is None:
            yield Fact.known("listing.torch", found.group("name"), other.place(), other.text[:200])
            return
