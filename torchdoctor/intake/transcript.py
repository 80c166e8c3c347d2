"""From physical lines to a Transcript: routing of lines to their streams, and the assembly of events."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from torchdoctor.intake.document import judge
from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.placing import placed
from torchdoctor.intake.router import Router
from torchdoctor.intake.source import IntakeError, Tally, expand, open_binary, physical_lines
from torchdoctor.intake.structured import structured
from torchdoctor.model import Ending, Event, Form, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


HEAD_LINES = 80


class Reading(NamedTuple):
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
                    found = _read_file(file, stdin)
                    if found.form is Form.BINARY and (len(paths) > 1 or len(files) > 1):
                        raise IntakeError(file, "holds binary data, not a text log")
                    results.append(found)
                except IntakeError as error:
                    unreadable.append(error)
        except IntakeError as error:
            unreadable.append(error)
    if not results:
        raise unreadable[0] if unreadable else IntakeError("-", "no input was named")
    notes = tuple(f"cannot read {error}" for error in unreadable)
    return Reading(_merged(placed(results), notes), tuple(unreadable))


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
        found = structured(file, name)
        if isinstance(found, Transcript):
            return found
        return _transcript(physical_lines(found, name, tally), name, tally)
    finally:
        if path != "-":
            file.close()


def _transcript(lines: Iterable[tuple[int, str, bool]], source: str, tally: Tally) -> Transcript:
    router = Router()
    _place(router, source)
    rest = iter(lines)
    head = list(islice(rest, HEAD_LINES))
    router.prime([text for _, text, _ in head])
    for number, text, joined in chain(head, rest):
        router.physical(number, text, joined)
    router.close()
    if tally.binary:
        note = f"{source}: holds binary data, not a text log"
        return Transcript((source,), (), Form.BINARY, Ending.UNKNOWN, 0, tally.bytes, (note,))
    drafts = router.keep.drafts()
    if not drafts:
        return Transcript(
            (source,), (), Form.EMPTY, Ending.UNKNOWN, tally.lines, tally.bytes, tuple(tally.notes)
        )
    form, ending = judge(drafts, router.census)
    notes = [f"{source}: {note}" for note in tally.notes]
    if router.keep.dropped:
        notes.append(f"{source}: {router.keep.dropped} plain lines in the middle were read and not kept")
    if router.keep.forgotten:
        notes.append(f"{source}: {router.keep.forgotten} events beyond the limit were not kept")
    _date(drafts)
    for number, draft in enumerate(drafts):
        draft.number = number
    events = tuple(draft.event(source) for draft in drafts)
    return Transcript((source,), events, form, ending, tally.lines, tally.bytes, tuple(notes))


def _place(router: Router, source: str) -> None:
    """Take the rank from the file's name, as log folders of launchers have it."""
    path = source.replace("\\", "/")
    if "attempt_" not in path and "rank" not in path:
        return
    local = pattern(r"/attempt_\d+/(\d+)/(?:std(?:out|err)\.log|error\.json)$").search(path)
    name = path.rpartition("/")[2]
    rank = pattern(r"(?:^|[_.-])rank[_-]?(\d{1,6})(?:[._-]|$)").search(name)
    router.plain.local_rank = int(local[1]) if local else None
    router.plain.rank = int(rank[1]) if rank else None


def _date(drafts: list[Draft]) -> None:
    """Give times without a year the year that other lines of the input name."""
    year = next(
        (d.time[:4] for d in drafts if d.time and d.time[:4].isdecimal() and d.time[4:5] == "-"), None
    )
    if year is None:
        return
    for draft in drafts:
        if draft.time and draft.time.startswith("--"):
            draft.time = f"{year}-{draft.time[2:]}"


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


def drafts_of(text: str) -> list[Draft]:
    """The drafts of a text, for tests of single readers."""
    router = Router()
    for number, line in enumerate(text.split("\n"), 1):
        router.physical(number, line, False)
    router.close()
    return router.keep.drafts()
