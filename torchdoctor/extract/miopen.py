"""What MIOpen's own lines say: the database file of the user that it opened."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import search

FACTS: dict[str, str] = {
    "miopen.database": "text: the user's database file that MIOpen opened last above",
}
_OPENED = r"Initializing user database file \"?(?P<file>[^\"\n]{1,300}?)\"?\s*$"
_NEAR = 40  # events


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The file of the nearest such line above; MIOpen doubles the backslashes of one on Windows."""
    above = transcript.events[max(0, event.id - _NEAR) : event.id + 1]
    for one in reversed(above):
        found = search(_OPENED, one.text[:1_000], "user database file")
        if found is not None and not one.quoted:
            yield "database", found["file"].replace("\\\\", "\\"), one.place()
            return
    yield "database", None
