"""From physical lines to a Transcript: routing of lines to their streams, and the assembly of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from torchdoctor.intake.clean import clean, unescape
from torchdoctor.intake.document import Census, judge
from torchdoctor.intake.draft import NO_MARK, Draft, Line, pattern
from torchdoctor.intake.keep import Keep
from torchdoctor.intake.prefix import shape_of, split
from torchdoctor.intake.source import IntakeError, Tally, expand, open_binary, physical_lines
from torchdoctor.intake.stream import Stream
from torchdoctor.intake.traceback import HEADER
from torchdoctor.model import Ending, Event, Form, Transcript

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Sequence

STREAMS = 4_096
LEARNED = 16


@dataclass(frozen=True, slots=True)
class Reading:
    """A transcript, and the inputs that could not be read."""

    transcript: Transcript
    unreadable: tuple[IntakeError, ...] = ()


def read(paths: Sequence[str], stdin: BinaryIO | None = None) -> Transcript:
    """The events of all inputs, in order; "-" is ``stdin``, a folder stands for the logs in it.

    Raises IntakeError when none of the inputs can be read; else the unreadable ones are in the notes.
    """
    return read_all(paths, stdin).transcript


def read_all(paths: Sequence[str], stdin: BinaryIO | None = None) -> Reading:
    """Like ``read``, and says which inputs could not be read. Raises IntakeError when none could."""
    unreadable: list[IntakeError] = []
    results: list[Transcript] = []
    for path in paths:
        try:
            files = expand(path)
            for file in files:
                try:
                    results.append(_read_file(file, stdin))
                except IntakeError as error:
                    unreadable.append(error)
        except IntakeError as error:
            unreadable.append(error)
    if not results:
        raise unreadable[0] if unreadable else IntakeError("-", "no input was named")
    notes = tuple(f"cannot read {error}" for error in unreadable)
    return Reading(_merged(results, notes), tuple(unreadable))


def read_one(path: str, stdin: BinaryIO | None = None) -> Transcript:
    """The events of one file, folder or "-". Raises IntakeError when it cannot be read."""
    return read([path], stdin)


def read_text(text: str, source: str = "<text>") -> Transcript:
    """The events of a text. Reads no file, never raises."""
    tally = Tally()
    tally.bytes = len(text)
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    tally.lines = len(lines)
    return _transcript(_cut(lines), source, tally)


def _cut(lines: list[str]) -> Iterator[tuple[int, str, bool]]:
    from torchdoctor.intake.source import PIECE_BYTES, _pieces

    for number, text in enumerate(lines, 1):
        if len(text) <= PIECE_BYTES // 2:
            yield number, text, False
            continue
        inside = False
        for piece in _pieces(text):
            yield number, piece, inside
            inside = True


def _read_file(path: str, stdin: BinaryIO | None) -> Transcript:
    file = open_binary(path, stdin)
    name = "<stdin>" if path == "-" else path
    tally = Tally()
    try:
        if path.endswith(".ipynb"):
            from torchdoctor.intake.ipynb import cell_outputs

            return _transcript(cell_outputs(file, tally), name, tally)
        return _transcript(physical_lines(file, name, tally), name, tally)
    finally:
        if path != "-":
            file.close()


def _transcript(lines: Iterable[tuple[int, str, bool]], source: str, tally: Tally) -> Transcript:
    router = Router()
    for number, text, joined in lines:
        router.physical(number, text, joined)
    router.close()
    if tally.binary:
        note = f"{source}: holds binary data, not a text log"
        return Transcript((source,), (), Form.BINARY, Ending.UNKNOWN, 0, tally.bytes, (note,))
    drafts = router.keep.drafts()
    if not drafts:
        return Transcript((source,), (), Form.EMPTY, Ending.UNKNOWN, tally.lines, tally.bytes, tuple(tally.notes))
    form, ending = judge(drafts, router.census)
    notes = [f"{source}: {note}" for note in tally.notes]
    if router.keep.dropped:
        notes.append(f"{source}: {router.keep.dropped} plain lines in the middle were read and not kept")
    if router.keep.forgotten:
        notes.append(f"{source}: {router.keep.forgotten} events beyond the limit were not kept")
    for number, draft in enumerate(drafts):
        draft.number = number
    events = tuple(draft.event(source) for draft in drafts)
    return Transcript((source,), events, form, ending, tally.lines, tally.bytes, tuple(notes))


def _merged(parts: list[Transcript], notes: tuple[str, ...]) -> Transcript:
    if len(parts) == 1 and not notes:
        return parts[0]
    from dataclasses import replace

    from torchdoctor.model import Relation

    events: list[Event] = []
    for part in parts:
        base = len(events)
        for event in part.events:
            relations = tuple(Relation(r.kind, r.event + base) for r in event.relations)
            events.append(replace(event, id=event.id + base, relations=relations))
    forms = [part.form for part in parts]
    form = next((f for f in (Form.LOG, Form.PROSE, Form.SOURCE_CODE, Form.BINARY) if f in forms), Form.EMPTY)
    endings = {part.ending for part in parts if part.form not in (Form.EMPTY, Form.BINARY)}
    ending = Ending.BAD if Ending.BAD in endings else endings.pop() if len(endings) == 1 else Ending.UNKNOWN
    return Transcript(
        tuple(source for part in parts for source in part.sources), tuple(events), form, ending,
        sum(part.lines_read for part in parts), sum(part.bytes_read for part in parts),
        tuple(note for part in parts for note in part.notes) + notes,
    )  # fmt: skip


class Router:
    """Cleans lines, takes their prefixes off, learns new prefixes, and hands each line to its stream."""

    def __init__(self) -> None:
        self.keep = Keep()
        self.census = Census()
        self.plain = Stream(self.keep)
        self.streams: dict[str, Stream] = {"": self.plain}
        self.learned: list[re.Pattern[str]] = []
        self.record: Stream | None = None  # a tagged record whose continuation may come without tag
        self.held: list[tuple[str, int, str]] = []  # headers behind something that may be a prefix
        self.cut_clean = True

    def physical(self, number: int, text: str, joined: bool) -> None:
        joined = joined and not self.cut_clean
        self.cut_clean = text.endswith("\r")
        if "\\n" in text:
            lines = unescape(text)
            if lines is not None:
                for part in lines:
                    self.logical(number, part, False)
                return
        for part in clean(text):
            self.logical(number, part, joined)
            joined = False

    def logical(self, number: int, text: str, joined: bool) -> None:
        self.census.see(text)
        if HEADER in text or "/s" in text or 'File "' in text:
            parts = self._unglue(number, text)
            if parts is None:
                return
            for part in parts:
                self._route(number, part, joined)
                joined = False
            return
        if self.held:
            self._release()
        self._route(number, text, joined)

    def _route(self, number: int, text: str, joined: bool) -> None:
        if joined:
            line = Line(number, text, text, NO_MARK, True)
            (self.record or self.plain).feed(line)
            return
        mark, shown, bare = split(text, self.learned)
        line = Line(number, text[shown:] if shown else text, text[bare:] if bare else text, mark)
        if not mark.key:
            record = self.record
            if record is not None and not mark.record and self.plain.reader is None:
                if text and HEADER not in text and record.offer(line):
                    return
                if text:
                    self.record = None
            elif mark.record:
                self.record = None
            self.plain.feed(line)
            return
        stream = self.streams.get(mark.key)
        if stream is None:
            if len(self.streams) >= STREAMS:
                stream = self.plain
            else:
                stream = self.streams[mark.key] = Stream(self.keep)
        if mark.rank is not None:
            stream.rank = mark.rank
        elif stream.rank is not None:
            mark.rank = stream.rank
        fresh = stream.reader
        stream.feed(line)
        self.record = stream if mark.record and stream.reader is not None and stream.reader is not fresh else None

    # -------------------------------------------------------- glue and learning

    def _unglue(self, number: int, text: str) -> list[str] | None:
        """The parts of a line in which a traceback, a record or an assertion follows something else directly."""
        at = text.find(HEADER)
        if at > 0:
            return self._unglue_header(number, text, at)
        at = text.find('File "') if '", line ' in text else -1
        if at > 2 and text[at - 2 : at] == "  " and not text[:at].isspace():
            self._learn(text, text[: at - 2])
            return [text]
        if self.held:
            self._release()
        if "it/s" in text or "s/it" in text or "B/s" in text:
            bar = pattern(r"(?:it/s|s/it|B/s)[^\]\[\n]{0,200}\](?=[^\s\],])").search(text)
            if bar:
                return [text[: bar.end()], text[bar.end() :]]
        return [text]

    def _unglue_header(self, number: int, text: str, at: int) -> list[str] | None:
        before = text[:at]
        mark, _, bare = split(before, self.learned)
        left = before[bare:]
        stripped = left.strip()
        if not stripped or stripped in ("Original", "traceback :", "+", "+ Exception Group", "Exception Group"):
            if self.held:
                self._release()
            return [text]
        if stripped[0] in "╭┌" or stripped[:3] in ("+--", "+ -") or (left.endswith("  ") and text.rstrip().endswith(HEADER)):
            return [text]
        if stripped.endswith(":") and pattern(r"^[\w.]*(?:Error|Exception|Empty|Iteration|Interrupt): ?$").match(stripped):
            return [text]
        tag = pattern(r"\[(?:rank|default)\d+\]: ?(?:\[rank\d+\]: ?)?$").search(before)
        if tag:
            return [before[: tag.start()], text[tag.start() :]]
        if "`" in stripped or stripped.endswith(("'", '"', "(", "|")) or text[at + len(HEADER) :].strip(": "):
            return [text]
        if pattern(r"\]$|\^C$|[%)]$|\.\.\.$").search(stripped) or len(stripped) > 60 and "[" not in stripped:
            return [before, text[at:]]
        self.held.append((before, number, text))
        if len(self.held) > 4:
            self._release()
        return None

    def _learn(self, text: str, prefix: str) -> None:
        """A frame stands behind this prefix: take it off from now on, and from headers held back."""
        _, shown, bare = split(prefix, self.learned)
        unknown = prefix[max(shown, bare) :]
        if unknown.strip() and len(unknown) <= 100 and len(self.learned) < LEARNED and not unknown.rstrip().endswith(("(", "=", ",")):
            shape = shape_of(unknown)
            if shape.pattern not in [known.pattern for known in self.learned]:
                self.learned.append(shape)
        held, self.held = self.held, []
        for before, number, line in held:
            _, _, bare = split(before, self.learned)
            if before[bare:].strip():
                at = len(before)
                self._route(number, before, False)
                self._route(number, line[at:], False)
            else:
                self._route(number, line, False)

    def _release(self) -> None:
        """The headers held back were glued to their line, not prefixed."""
        held, self.held = self.held, []
        for before, number, line in held:
            self._route(number, before, False)
            self._route(number, line[len(before) :], False)

    def close(self) -> None:
        if self.held:
            self._release()
        for stream in self.streams.values():
            for _ in range(64):  # a reader may give lines back that open another
                if stream.reader is None:
                    break
                stream.close()


def drafts_of(text: str) -> list[Draft]:
    """The drafts of a text, for tests of single readers."""
    router = Router()
    for number, line in enumerate(text.split("\n"), 1):
        router.physical(number, line, False)
    router.close()
    return router.keep.drafts()
