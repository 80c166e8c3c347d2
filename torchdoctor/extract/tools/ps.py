"""The table of ``ps``: processes that were stopped and not ended, and so hold all that they had."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "ps.stopped": "int: a Python process below this head line that was stopped (Ctrl-Z) and not ended",
}

_ROWS = 400  # below the head line
_HEAD = r"^\s*(?:[A-Z]\w*\s+)*PID\s.*\bSTAT?\b"
_PYTHON = r"\bpython\d?(?:\.\d+)?\b|\bpt_main_thread\b"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What the rows below a head line of ps say; nothing for another event."""
    head = event.text.split("\n")[0]
    if pattern(_HEAD).search(head) is None:
        return
    columns = head.split()
    state = columns.index("STAT") if "STAT" in columns else columns.index("S") if "S" in columns else -1
    if state < 0:
        return
    for row in transcript.events[event.id + 1 : event.id + 1 + _ROWS]:
        cells = row.text.split(None, len(columns) - 1)
        if len(cells) < len(columns):
            return
        pid = cells[columns.index("PID")]
        if not pid.isdecimal() or len(pid) > 10:
            return
        if cells[state][:1] in "Tt" and pattern(_PYTHON).search(cells[-1]):
            yield Fact.known("ps.stopped", int(pid), row.place(), row.text[:200])
            return
