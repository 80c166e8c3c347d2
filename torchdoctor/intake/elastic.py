"""The summary box of torchrun: one launcher event; a traceback in it is an event of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.lines import is_rule
from torchdoctor.intake.traceback import DONE, HEADER, TAKEN
from torchdoctor.model import EventKind, RelationKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

_FIELD = r"^\s+(?P<key>time|host|rank|exitcode|error_file|traceback|msg) *: ?(?P<value>.*)$"
_HEADINGS = ("Failures:", "Root Cause", "Other Failures:", "Failure:")
_LINES = 4_000


def opens_box(body: str, stream: Feed) -> bool:
    """True for the first line of a box: a rule behind ChildFailedError, or one of its headings."""
    if body.startswith(("Root Cause (first observed failure)", "Root Cause:", "Failures:")):
        return len(body) < 60
    return (
        body[:4] in ("====", "****")
        and bool(stream.closed)
        and (stream.closed[-1].type or "").endswith("ChildFailedError")
    )


class ElasticReader:
    """Reads the box; the failing ranks' fields stay in its text."""

    def __init__(self, stream: Feed, line: Line) -> None:
        self.stream = stream
        self.draft = Draft(EventKind.LAUNCHER, line, line.body.strip())
        self.error = (
            stream.closed[-1]
            if stream.closed and (stream.closed[-1].type or "").endswith("ChildFailedError")
            else None
        )
        if self.error is not None:
            self.error.link(RelationKind.WRAPS, self.draft)
        self.inner: Feed | None = None
        self.fields: dict[str, str] = {}
        self.lines = 0
        self.sections = 0
        self.address = False  # the line above ends in one, which a narrow terminal may have broken

    def take(self, line: Line) -> int:
        body = line.body
        stripped = body.strip()
        self.lines += 1
        if self.lines > _LINES:
            return DONE
        if is_rule(body):
            self._end_inner()
            self.draft.add(stripped, line.number)
            closing = stripped[0] == "=" and self.sections > 0
            if closing:
                self.sections = -1
            return TAKEN
        if self.sections < 0:  # behind the closing rule; torch 1.9 goes on with the other failures
            if not body.startswith("Other Failures:"):
                return DONE
            self.sections = 1
        if self.inner is not None:
            if pattern(r"^\[\d+\]:").match(body):
                self._end_inner()
            else:
                self.inner.feed(Line(line.number, line.text, body, line.mark))
                self.draft.end_line = line.number
                return TAKEN
        field = pattern(_FIELD).match(body)
        broken, self.address = self.address, field is not None and "https://" in field["value"]
        if field:
            self.sections = max(self.sections, 1)
            key, value = field["key"], field["value"].strip()
            self.fields[key] = value
            if key == "traceback" and HEADER in value:
                self.inner = self.stream.fork()
                indent = len(body) - len(body.lstrip())
                self.inner.feed(Line(line.number, line.text, " " * indent + f"{HEADER}:", line.mark))
                return TAKEN
            self.draft.add(body.rstrip(), line.number)
            return TAKEN
        if pattern(r"^\[\d+\]:").match(body):
            self.fields = {}
        elif stripped.endswith("FAILED"):
            if self.error is not None and not self.error.parts:
                self.error.add(stripped, line.number)
        elif (
            stripped
            and not stripped.startswith((*_HEADINGS, "<NO_OTHER_FAILURES>", '"'))
            and body[:1] not in " \t"
            and not (broken and " " not in stripped)
        ):
            return DONE
        self.draft.add(body.rstrip(), line.number)
        return TAKEN

    def _end_inner(self) -> None:
        inner, self.inner = self.inner, None
        if inner is None:
            return
        inner.close()
        rank = pattern(r"(\d+)(?: \(local_rank: (\d+)\))?").match(self.fields.get("rank", ""))
        for draft in _all_of(inner.closed):
            draft.rank = int(rank[1]) if rank else draft.rank
            draft.local_rank = int(rank[2]) if rank and rank[2] else draft.local_rank
            draft.host = self.fields.get("host") or draft.host
            draft.time = _iso(self.fields.get("time", "")) or draft.time
        if inner.closed:
            self.draft.link(RelationKind.WRAPS, inner.closed[-1])

    def close(self) -> None:
        self._end_inner()
        self.draft.time = _iso(self.fields.get("time", "")) or self.draft.time
        self.stream.put(self.draft)


def _iso(time: str) -> str | None:
    return time.replace("_", "T") if pattern(r"^\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d$").match(time) else None


def _all_of(drafts: list[Draft]) -> list[Draft]:
    """The drafts and all they refer to."""
    found: list[Draft] = []
    todo = list(drafts)
    while todo:
        draft = todo.pop()
        if draft not in found:
            found.append(draft)
            todo += [to for _, to in draft.links]
    return found
