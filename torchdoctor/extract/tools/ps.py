"""The table of ``ps``: processes that were stopped and so hold all that they had; and py-spy's heads."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "ps.stopped": "int: a Python process below this head line that was stopped (Ctrl-Z) and not ended",
    "ps.dumped": "int: the process whose stacks py-spy printed; unknown among several",
    "ps.child": "int: its only child, in a list that ps gave of its children",
}

_ROWS = 400  # below the head line
_HEAD = r"^\s*(?:[A-Z]\w*\s+)*PID\s.*\bSTAT?\b"
_DUMPED = r"Process (\d{1,10}): \S*python"
_CHILDREN = r"\bps\b.{0,80}--ppid[ =](\d{1,10})\b"
_PYTHON = r"\bpython\d?(?:\.\d+)?\b|\bpt_main_thread\b"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What the rows below a head line of ps say; nothing for another event."""
    dumped, child = _family(transcript)
    if dumped:
        yield "dumped", dumped
    if child:
        yield "child", child
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


@once_a_text
def _family(transcript: Transcript) -> tuple[int, int]:
    """(process of py-spy's stacks, its only child of a list); 0 for what is not told."""
    dumped = {
        int(found[1])
        for event in transcript.events
        if (found := pattern(_DUMPED).match(event.text)) is not None
    }
    if len(dumped) != 1:
        return 0, 0
    process = dumped.pop()
    asked = (
        event.id
        for event in transcript.events
        if (found := pattern(_CHILDREN).search(event.text)) is not None and int(found[1]) == process
    )
    return process, _only_row(next(asked, -1), transcript)


def _only_row(asked: int, transcript: Transcript) -> int:
    """The process of the one row below the head line that follows an event; 0 where there are more."""
    table = transcript.events[asked + 1 :] if asked >= 0 else ()
    columns = table[0].text.split() if table else []
    if "PID" not in columns:
        return 0
    at, found = columns.index("PID"), []
    for row in table[1:_ROWS]:
        cells = row.text.split()
        if len(cells) < len(columns) or not cells[at].isdecimal() or len(cells[at]) > 10:
            break
        found.append(int(cells[at]))
    return found[0] if len(found) == 1 else 0
