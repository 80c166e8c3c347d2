"""From physical lines to a Transcript: routing of lines to their streams, and the assembly of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

from torchdoctor.intake.elements import Draft
from torchdoctor.intake.ending import judge
from torchdoctor.intake.inputs import Found, Input
from torchdoctor.intake.quotation import mark_quoted
from torchdoctor.intake.router import Router
from torchdoctor.intake.runs import split
from torchdoctor.intake.skim import Skim, feed
from torchdoctor.intake.source import IntakeError, Tally, numbered
from torchdoctor.intake.structured import is_notebook, structured
from torchdoctor.model import Ending, Form, Relation, Transcript, counted
from torchdoctor.patterns import pattern, search
from torchdoctor.records import Record, record, replace

if TYPE_CHECKING:
    from torchdoctor.intake.live import Output


@record(frozen=True, slots=True)
class Reading(Record):
    """One transcript an incident, the inputs that could not be read, and notes on all of them."""

    incidents: tuple[Transcript, ...]
    unreadable: tuple[IntakeError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def transcript(self) -> Transcript:
        """The events of all inputs; those of several incidents are not numbered in a row."""
        return _merged(self.incidents, ())


def read(
    paths: Sequence[str], stdin: BinaryIO | None = None, triggers: Callable[[], Iterable[str]] = tuple
) -> Transcript:
    """The events of all inputs as one incident, in order; "-" is ``stdin``, a folder the logs in it.

    ``triggers`` gives texts by which lines in the middle of a big input are found worth reading; it is asked
    when there is such an input. Raises IntakeError when none of the inputs can be read; else the unreadable
    ones are in the notes.
    """
    parts, notes, _ = _read_inputs(paths, stdin, triggers)
    parts, earlier = _by_attempts(parts)
    return _behind(earlier, _merged(_placed(parts), notes))


def read_all(
    paths: Sequence[str], stdin: BinaryIO | None = None, triggers: Callable[[], Iterable[str]] = tuple
) -> Reading:
    """Like ``read``, by incident, with what could not be read. Raises IntakeError when nothing could."""
    parts, notes, unreadable = _read_inputs(paths, stdin, triggers)
    parts, earlier = _by_attempts(parts)
    placed = _placed(parts)
    if len(parts) == 1 or hasattr(stdin, "label"):  # one command wrote all of them
        return Reading((_behind(earlier, _merged(placed, notes)),), unreadable)
    from torchdoctor.intake.joining import joined

    groups, why = joined(placed)
    if len(groups) == 1:
        return Reading((_behind(earlier, _merged(placed, notes)),), unreadable, (why,))
    first, *others = (_merged(_placed(_in_a_row(parts[number] for number in group)), ()) for group in groups)
    return Reading((_behind(earlier, first), *others), unreadable, (why, *notes))


def _by_attempts(parts: list[Transcript]) -> tuple[list[Transcript], tuple[Transcript, ...]]:
    """The parts of torchelastic's last attempt, those of none among them, and each earlier one as a run."""
    numbers = [search(r"[\\/]attempt_(\d{1,4})[\\/]", part.sources[0], "attempt_") for part in parts]
    known = sorted({int(found[1]) for found in numbers if found})
    if len(known) < 2:
        return parts, ()
    of = [int(found[1]) if found else known[-1] for found in numbers]
    attempts = [_in_a_row(p for p, number in zip(parts, of, strict=True) if number == one) for one in known]
    return attempts[-1], tuple(_merged(_placed(attempt), ()) for attempt in attempts[:-1])


def _behind(earlier: tuple[Transcript, ...], last: Transcript) -> Transcript:
    return replace(last, earlier=(*earlier, *last.earlier)) if earlier else last


def _in_a_row(parts: Iterable[Transcript]) -> list[Transcript]:
    """The parts with their events numbered from zero on."""
    found: list[Transcript] = []
    events = 0
    for part in parts:
        first = part.events[0].id if part.events else 0
        found.append(_from(part, events - first))
        events += len(part.events)
    return found


def _read_inputs(
    paths: Sequence[str], stdin: BinaryIO | None, triggers: Callable[[], Iterable[str]]
) -> tuple[list[Transcript], tuple[str, ...], tuple[IntakeError, ...]]:
    found = Found(paths, stdin)
    results: list[Transcript] = []
    events = 0
    skim: Skim | None = None
    for item in found:
        if skim is None:
            skim = Skim(triggers)
        skim.share(item.of)
        try:
            one = _read_input(item, skim, events)
            if one.form is Form.BINARY and (item.of > 1 or len(paths) > 1):
                raise IntakeError(item.name, "holds binary data, not a text log")
            results.append(one)
            events += len(one.events)
        except IntakeError as error:
            found.unreadable.append(error)
    notes = _passed(skim.passed if skim is not None else {}) + tuple(found.notes.texts())
    if not results:
        if found.unreadable:
            raise found.unreadable[0]
        raise IntakeError(paths[0] if paths else "-", notes[0] if notes else "no input was named")
    notes += tuple(f"cannot read {error}" for error in found.unreadable)
    return results, notes, tuple(found.unreadable)


def read_text(text: str, source: str = "<text>") -> Transcript:
    """The events of a text. Reads no file, never raises."""
    tally = Tally()
    tally.bytes = len(text)
    lines = text.removesuffix("\n").split("\n") if text else []
    tally.lines = len(lines)
    router = Router()
    _place(router, source)
    feed(router, numbered(lines), tally)
    passed: dict[str, int] = {}
    found = _transcript(router, source, tally, passed)
    return replace(found, notes=found.notes + _passed(passed)) if passed else found


def _plain(count: int, place: str) -> str:
    return counted(count, f"plain line {place} was", f"plain lines {place} were")


def _passed(passed: dict[str, int]) -> tuple[str, ...]:
    """What is said of lines that were not kept: for each of a few inputs, else for all of them together."""
    if len(passed) <= 3:
        return tuple(
            f"{source}: {_plain(lines, 'in the middle')} read and not kept"
            for source, lines in passed.items()
        )
    total = sum(passed.values())
    return (f"{_plain(total, f'in the middle of {len(passed):,} files')} read and not kept",)


def _read_input(item: Input, skim: Skim, base: int) -> Transcript:
    file = item.open()
    tally = Tally()
    router = Router()
    _place(router, item.name)
    try:
        if item.name == "<output>":
            skim.read_kept(*cast("Output", file).read(), router, tally)
        elif item.name.endswith(".ipynb") or is_notebook(file):
            from torchdoctor.intake.ipynb import cell_outputs

            skim.read(cell_outputs(file, tally), replace(item, path=None), router, tally)
        else:
            data = structured(file, item.name, tally)
            if isinstance(data, Transcript):
                return _from(data, base)
            skim.read(data, item if data is file else replace(item, path=None), router, tally)
    finally:
        if item.name not in ("<stdin>", "<output>"):
            file.close()
    return _transcript(router, item.name, tally, skim.passed, base)


def _counts(name: str) -> bool:
    """Does a part of the name end in a number, alone or behind a word, as ranks and nodes are counted?"""
    for separator in "/\\-.":
        name = name.replace(separator, "_")
    pieces = (piece.rstrip("0123456789") for piece in name.split("_") if piece[-1:].isdecimal())
    return any(not word or word.isalpha() for word in pieces)


def _placed(parts: list[Transcript]) -> list[Transcript]:
    """The parts with the ranks that the names of their files tell; one plain name tells none."""
    if any("/" in event.stream and event.stream[0].isdecimal() for part in parts for event in part.events):
        from torchdoctor.intake.placing import of_nodes

        parts = [of_nodes(part) for part in parts]
    names = [source for part in parts for source in part.sources]
    locals_ = (event.local_rank for part in parts for event in part.events)
    if not (len(names) > 1 or any(map(_counts, names))) and all(local is None for local in locals_):
        return parts
    from torchdoctor.intake.placing import placed

    return placed(parts)


def _from(found: Transcript, base: int) -> Transcript:
    """The transcript with its events numbered from ``base``."""
    events = tuple(
        replace(
            event,
            id=event.id + base,
            relations=tuple(Relation(one.kind, one.event + base) for one in event.relations),
        )
        for event in found.events
    )
    return replace(found, events=events)


def _transcript(
    router: Router, source: str, tally: Tally, passed: dict[str, int], base: int = 0
) -> Transcript:
    """What the router kept; the events are numbered from ``base``, behind those of the inputs before."""
    router.close()
    if tally.binary:
        note = f"{source}: holds binary data, not a text log"
        return Transcript((source,), (), Form.BINARY, Ending.UNKNOWN, 0, tally.bytes, (note,))
    drafts = router.keep.drafts()
    notes = [f"{source}: {note}" for note in tally.notes]
    if not drafts:
        return Transcript((source,), (), Form.EMPTY, Ending.UNKNOWN, tally.lines, tally.bytes, tuple(notes))
    mark_quoted(drafts, router.sample)
    if router.keep.dropped:
        passed[source] = router.keep.dropped
    beyond = router.keep.forgotten
    if beyond:
        what = counted(beyond, "event beyond the limit was", "events beyond the limit were")
        notes.append(f"{source}: {what} not kept")
    orders = ((source, tally.order),) if tally.order else ()
    _date(drafts)
    *before, final = split(drafts)
    earlier = tuple(_of_run(part, source, tally, 0) for part in before)
    return replace(_of_run(final, source, tally, base), notes=tuple(notes), earlier=earlier, orders=orders)


def _of_run(drafts: list[Draft], source: str, tally: Tally, base: int) -> Transcript:
    """The transcript of one run of an input; its events are numbered from ``base``."""
    ending = judge(drafts)
    for number, draft in enumerate(drafts, base):
        draft.number = number
    events = tuple(draft.event(source) for draft in drafts)
    for draft in drafts:
        draft.number = -1  # nothing of one run refers to another
    return Transcript((source,), events, Form.LOG, ending, tally.lines, tally.bytes)


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


def _merged(parts: Sequence[Transcript], notes: tuple[str, ...]) -> Transcript:
    if len(parts) == 1 and not notes:
        return parts[0]
    events = tuple(event for part in parts for event in part.events)
    forms = [part.form for part in parts]
    form = next((f for f in (Form.LOG, Form.BINARY) if f in forms), Form.EMPTY)
    return Transcript(
        tuple(source for part in parts for source in part.sources), events, form, _ending(parts),
        sum(part.lines_read for part in parts), sum(part.bytes_read for part in parts),
        tuple(note for part in parts for note in part.notes) + notes,
        tuple(run for part in parts for run in part.earlier),
        tuple(order for part in parts for order in part.orders),
    )  # fmt: skip


def _ending(parts: Sequence[Transcript]) -> Ending:
    """Bad where one is, good where all are; of the streams of one rank one that ends well is enough."""
    ends: dict[int | None, set[Ending]] = {}
    for part in parts:
        if part.form not in (Form.EMPTY, Form.BINARY):
            event = part.events[0] if part.events else None
            rank = None if event is None else event.local_rank if event.rank is None else event.rank
            ends.setdefault(rank, set()).add(part.ending)
    if any(Ending.BAD in found for found in ends.values()):
        return Ending.BAD
    good = all(
        found == {Ending.GOOD} or (rank is not None and Ending.GOOD in found) for rank, found in ends.items()
    )
    return Ending.GOOD if good and ends else Ending.UNKNOWN
