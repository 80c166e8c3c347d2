"""What is kept of all that was read, so that memory stays bounded whatever the size of the input."""

from __future__ import annotations

from collections import deque

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.model import EventKind
from torchdoctor.patterns import pattern

FIRST_LINES = 2_000
LAST_LINES = 10_000
SHAPES = 4_000
FIRST_EVENTS = 4_000  # of each kind
LAST_EVENTS = 2_000
EVENT_CHARS = 16_000_000
EQUAL_EVENTS = 200
KNOWN_EVENTS = 20_000

_INTEREST = (
    "error", "fail", "exception", "nan", "killed", "oom", "out of memory", "abort", "timeout", "timed out",
    "not found", "cannot", "can't", "unable", "denied", "mismatch", "invalid", "refused", "warn",
    "overflow", "unsupported", "not supported", "missing", "unexpected", "illegal", "corrupt", "fatal",
    "panic", "segfault", "signal", "no such", "deprecated", "critical", "assert", "version", "driver",
    "cuda", "terminated", "exit code", "stall", "hang", "inf,", "inf ", "limit", "too many", "no space",
    "leak",
)  # fmt: skip


def shape(text: str) -> str:
    """The text with every number made equal, by which repeated lines are known."""
    return str(pattern(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?").sub("#", text[:300]))


def of_interest(text: str) -> bool:
    """True for a line that may tell of a failure, by generic words."""
    low = text.lower()
    return any(word in low for word in _INTEREST)


class Store:
    """The first and the last events of one kind."""

    __slots__ = ("first", "forgotten", "last", "room", "tail_room")

    def __init__(self) -> None:
        self.first: list[Draft] = []
        self.last: deque[Draft] = deque()
        self.room = self.tail_room = EVENT_CHARS
        self.forgotten = 0

    def put(self, draft: Draft) -> None:
        if self.room > 0 and len(self.first) < FIRST_EVENTS:
            self.first.append(draft)
            self.room -= _size(draft)
            return
        self.room = 0
        self.last.append(draft)
        self.tail_room -= _size(draft)
        while len(self.last) > LAST_EVENTS or (self.tail_room < 0 and len(self.last) > 1):
            gone = self.last.popleft()
            self.tail_room += _size(gone)
            self.forgotten += gone.count


def _size(draft: Draft) -> int:
    return 300 + draft.size + 200 * len(draft.frames)


class Keep:
    """Takes finished drafts; ``drafts()`` returns what was kept, in order."""

    def __init__(self) -> None:
        self.stores: dict[EventKind, Store] = {}
        self.latest: dict[tuple[EventKind, str, str], Draft] = {}
        self.first: list[Draft] = []
        self.tail: deque[Draft] = deque()
        self.shapes: dict[str, Draft] = {}
        self.asserts: dict[tuple[str, str], Draft] = {}
        self.equal: dict[tuple[EventKind, str, str], tuple[int, Draft]] = {}
        self.bar: Draft | None = None
        self.dropped = 0

    def put(self, draft: Draft) -> None:
        """An event that is no plain log line; of equal ones the first 200 and the last are kept."""
        self.bar = None
        if draft.kind is EventKind.LOG:
            self.log(draft)
            return
        text = draft.parts[0] if draft.parts else ""
        if (
            draft.kind is EventKind.KERNEL_LOG
            and not draft.frames
            and not of_interest(text)
            and "NVRM" not in text
        ):
            self.log(draft)
            return
        if draft.kind is EventKind.NCCL and draft.level == "INFO":
            self.log(draft)
            return
        exact = draft.kind is not EventKind.EXCEPTION and draft.kind is not EventKind.STACK
        if draft.kind is EventKind.KERNEL_LOG:  # the same message at another time is the same message
            text = str(pattern(r"^(?:\[[^\]]*\]|\w{3} +\d+ [\d:]+ \S+ kernel:) ?").sub("", text))
        key = (
            draft.kind,
            draft.stream,
            text[:600] if exact and len(draft.parts) == 1 else (draft.type or "") + shape(text),
        )
        seen = self.equal.get(key)
        if seen is not None:
            number, last = seen
            if exact and len(draft.parts) == 1 and last.line + 400 > draft.line:
                last.count += draft.count
                last.end_line = max(last.end_line, draft.end_line)
                return
            if (
                number >= EQUAL_EVENTS
            ):  # of very many equal ones the last is kept, with the count of those before
                before = self.latest.get(key)
                if before is not None:
                    draft.count += before.count
                self.latest[key] = draft
                return
            self.equal[key] = (number + 1, draft)
        elif len(self.equal) < KNOWN_EVENTS:
            self.equal[key] = (1, draft)
        self._store(draft)

    def _store(self, draft: Draft) -> None:
        store = self.stores.get(draft.kind)
        if store is None:
            store = self.stores[draft.kind] = Store()
        store.put(draft)

    @property
    def forgotten(self) -> int:
        """How many events found no room."""
        return sum(store.forgotten for store in self.stores.values())

    def assertion(self, draft: Draft) -> None:
        """A failed assertion of a kernel; every thread prints one, they count as one."""
        self.bar = None
        text = draft.parts[0]
        name = pattern(r"block: \[[^\]]*\], thread: \[[^\]]*\]|^:0:").sub("", text)
        seen = self.asserts.get((draft.stream, name))
        if seen is not None:
            seen.count += 1
            seen.end_line = max(seen.end_line, draft.end_line)
            return
        if len(self.asserts) < 2_000:
            self.asserts[(draft.stream, name)] = draft
            self._store(draft)

    def progress(self, line: Line) -> None:
        """A progress bar; what follows directly replaces it, unless it was full."""
        bar = self.bar
        follows = bar is not None and bar.stream == line.mark.key and "100%" not in bar.parts[0]
        if bar is not None and follows:
            bar.parts = [line.text[:1000]]
            bar.end_line = line.number
            bar.count += 1
            return
        draft = Draft(EventKind.LOG, line, line.text[:1000])
        self.log(draft)
        self.bar = draft

    def log(self, draft: Draft) -> None:
        """A plain line: the first 2,000, the last 10,000, and between them one of each shape of interest."""
        self.bar = None
        if len(self.first) < FIRST_LINES:
            self.first.append(draft)
            return
        self.tail.append(draft)
        if len(self.tail) > LAST_LINES:
            self._retire(self.tail.popleft())

    def _retire(self, draft: Draft) -> None:
        text = draft.parts[0] if draft.parts else ""
        if not of_interest(text):
            self.dropped += draft.count
            return
        key = draft.stream + shape(text)
        seen = self.shapes.get(key)
        if seen is not None:
            seen.count += draft.count
            seen.end_line = max(seen.end_line, draft.end_line)
        elif len(self.shapes) < SHAPES:
            self.shapes[key] = draft
        else:
            self.dropped += draft.count

    def drafts(self) -> list[Draft]:
        kept = self.first + list(self.shapes.values()) + list(self.tail) + list(self.latest.values())
        for store in self.stores.values():
            kept += store.first
            kept += store.last
        kept.sort(key=_line)
        return kept


def _line(draft: Draft) -> tuple[int, int]:
    return draft.line, draft.order
