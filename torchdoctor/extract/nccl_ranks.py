"""What the watchdog lines of all ranks say together: who waited where, and who was busy meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import once_a_text
from torchdoctor.extract.progress import is_step
from torchdoctor.model import Event, EventKind, Transcript, moment_of
from torchdoctor.number import elements
from torchdoctor.patterns import pattern
from torchdoctor.records import Record, record

# A message that holds one of these gives up waiting for other ranks.
GIVE_UP = (
    "collective operation timeout",
    "Socket Timeout",
    "wait timeout after",
    "for recv operation to complete",
    "for send operation to complete",
    "op.preamble.length <= op.nbytes",
    "Received data size doesn't match expected size",
)
_WAITED = GIVE_UP[:5]

_HEAD = "collective operation timeout: Work"
_RANK_BEFORE = r"Rank (\d{1,6})\]\s*(?:Watchdog )?[Cc]aught $"
_SHAPE = r"TensorShape=\[([\d, ]{0,80})\]"
# "[PG ID 1 PG GUID 3(tp) Rank 2] failure detected by watchdog at work sequence id: 4", from torch 2.3 on
_GROUP = (
    r"\[PG (?:ID )?(?P<id>\w+)(?: PG GUID (?P<guid>\w+))?(?: ?\([^)]{0,60}\))? Rank (?P<rank>\d{1,6})\]"
    r"[^\n]{0,200}?work(?: sequence id)?: (?P<seq>\d{1,15})"
)
_GIVER = r"(?:^|\[|rank )(\d{1,6})\]? is setting up NCCL"

_COUNTER = (
    r"(?P<done>\d[\d,]{0,15}(?:\.\d{1,3})?)(?P<unit>[kMG]?)"
    r"(?: ?/ ?(?P<total>\d[\d,]{0,15}(?:\.\d{1,3})?[kMG]?)\b"
    r"| (?:examples|documents|files|samples|lines|records|shards|rows)\b)"
)
_ELAPSED = r"\[(?:(\d{1,3}):)?(\d{1,3}):(\d\d)<"
_WORK = (
    r"(?i)token|\bmap\b|process|filter|split|convert|cach|download|upload|sav|index|build|pack|encod|extract"
    r"|merg|shard|copy|writ|examples"
)
_TRAINING = r"(?i)\bepoch|\bloss\b|\btrain|\bstep|\biter"
_EPOCH_END = (
    r"(?i)\b(?:end|ended|finished|done with|completed?) (?:of )?(?:the )?(?:training )?epoch\b"
    r"|\bepoch\W{0,3}\d+\b[^\n]{0,60}\b(?:done|finished|completed?|ended|took|summary|averages?|total time)\b"
    r"|\bsav(?:e|ed|ing) (?:the |a |model )?(?:model|checkpoint)|\bcheckpoint saved\b"
)
# kinds of collectives that average gradients
_GRADIENTS = ("ALLREDUCE", "REDUCE_SCATTER", "REDUCE")
_GRADIENT_NUMEL = 1024

DEFAULT_TIMEOUT_MS = 600_000  # of NCCL groups since torch 2.2

AT_ONCE_S = 10.0  # within which ranks that wait for each other give up, with clocks that differ

_COUNTS = ("/", "examples", "documents", "files", "samples", "lines", "records", "shards", "rows")
_WINDOW = 40  # events before the first timeout in which an epoch's end or a progress bar counts
_ALIKE = 3  # lines that count
_SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@record(frozen=True, slots=True)
class Timeout(Record):
    """One watchdog line: the collective on which a rank gave up. None stands for what it does not print."""

    event: int
    rank: int | None
    seq: int | None
    op: str | None
    numel_in: int | None
    timeout_ms: int | None
    elapsed_ms: int | None
    time: str | None = None


@record(frozen=True, slots=True)
class Picture(Record):
    """The claims over all ranks; None where too little was printed to tell."""

    ranks: tuple[int, ...] = ()
    same_group: bool | None = None
    seqs_differ: bool | None = None
    ops_differ: bool | None = None
    numel_differ: bool | None = None
    epoch_end: bool = False
    late: tuple[int, ...] = ()
    progress: bool | None = None


def timeouts_in(event: Event) -> Iterator[Timeout]:
    """Every watchdog timeout that an event's text holds, those it quotes as a reason included.

    The rank is that of the line's prefix, which counts all ranks, else the one in the message, which counts
    within its process group. Where lines of two ranks ran together only the message can tell.
    """
    text = event.text
    places: list[int] = []
    place = text.find(_HEAD)
    while place >= 0:
        places.append(place)
        place = text.find(_HEAD, place + 1)
    inner = [_number(_RANK_BEFORE, text[max(0, place - 60) : place]) for place in places]
    mixed = len({rank for rank in inner if rank is not None}) > 1
    ends = [*places[1:], len(text)]
    for place, rank, end in zip(places, inner, ends, strict=False):
        body = text[place : min(place + 400, end)]
        numel = _number(r"NumelIn=(\d{1,18})", body)
        if numel is None and (shape := pattern(_SHAPE).search(body)) is not None:
            numel = elements(shape.group(1))
        op = pattern(r"OpType=(\w{1,60})").search(body)
        yield Timeout(
            event.id,
            rank if mixed or event.rank is None else event.rank,
            _number(r"SeqNum=(\d{1,18})", body),
            op.group(1) if op else None,
            numel,
            _number(r"Timeout\(ms\)=(\d{1,18})", body),
            _number(r"ran for (\d{1,18}) milli", body),
            event.time,
        )


def _number(source: str, text: str) -> int | None:
    found = pattern(source).search(text)
    return int(found.group(1)) if found else None


@once_a_text
def picture(transcript: Transcript) -> Picture:
    """The claims over all watchdog lines of a text."""
    first: dict[int, Timeout] = {}
    latest: dict[int, Timeout] = {}
    said: set[tuple[int, int | None, int | None]] = set()
    several = False  # one number names ranks of several process groups: nothing can be compared
    groups: dict[tuple[int, int], str] = {}
    waited: list[Event] = []
    givers: set[int] = set()
    for event in transcript.events:
        text = event.text
        if event.quoted:
            continue
        if _HEAD in text:
            for timeout in timeouts_in(event):
                if timeout.rank is not None:
                    first.setdefault(timeout.rank, timeout)
                    line = (timeout.rank, timeout.seq, timeout.elapsed_ms)
                    if line not in said:
                        several = several or _of_another_group(latest.get(timeout.rank), timeout)
                        latest[timeout.rank] = timeout
                        said.add(line)
        if "[PG " in text:
            for found in pattern(_GROUP).finditer(text):
                rank = event.rank if event.rank is not None else int(found.group("rank"))
                groups[rank, int(found.group("seq"))] = found.group("guid") or found.group("id")
        if any(mark in text for mark in _WAITED):
            waited.append(event)
            giver = _number(_GIVER, text)
            if giver is None:
                giver = event.rank
            if giver is not None:
                givers.add(giver)
    compared, same_group = ([], None) if several and not groups else _comparable(list(first.values()), groups)
    late = _late(compared)
    compared = [item for item in compared if item.rank not in late]
    start = waited[0].id if waited else None
    return Picture(
        ranks=tuple(sorted(first)),
        same_group=same_group,
        seqs_differ=_differ([item.seq for item in compared]),
        ops_differ=_differ([_call(item) for item in compared]),
        numel_differ=_differ([item.numel_in for item in compared]),
        epoch_end=_epoch_ended(transcript, start, compared) if start is not None else False,
        late=late,
        progress=_progress(transcript, waited, list(first.values()), givers | set(first)) if waited else None,
    )


def _late(timeouts: list[Timeout]) -> tuple[int, ...]:
    """The ranks that gave up long after the first ones did, at a number beyond theirs: they came late."""
    told = [
        (moment.timestamp(), item.seq, item.rank)
        for item in timeouts
        if item.seq is not None and item.rank is not None
        if (moment := moment_of(f"2000{item.time[1:]}" if item.time and item.time[0] == "-" else item.time))
    ]
    begun = min((at for at, _, _ in told), default=0.0)
    reached = max((seq for at, seq, _ in told if at - begun <= AT_ONCE_S), default=0)
    return tuple(sorted(rank for at, seq, rank in told if at - begun > AT_ONCE_S and seq > reached))


def _call(item: Timeout) -> str | None:
    """The kind of call: a sum of one number (a barrier, a loss) is another one than that of gradients."""
    return "ONE" if item.op == "ALLREDUCE" and item.numel_in == 1 else item.op


def _of_another_group(one: Timeout | None, other: Timeout) -> bool:
    """Did another rank print the later line, though both say the same number, that within their groups?

    One rank gives up its collectives in their order, and repeats a line word for word.
    """
    if one is None or one.seq is None or other.seq is None:
        return False
    return other.seq <= one.seq


def _comparable(
    timeouts: list[Timeout], groups: dict[tuple[int, int], str]
) -> tuple[list[Timeout], bool | None]:
    """Timeouts of the largest process group; numbers of different groups have nothing in common."""
    named: dict[str, list[Timeout]] = {}
    for item in timeouts:
        label = groups.get((item.rank or 0, item.seq if item.seq is not None else -1), "")
        named.setdefault(label, []).append(item)
    if len(named) <= 1:
        return timeouts, (True if named and "" not in named else None) if len(timeouts) > 1 else None
    if "" in named:
        return timeouts, None
    largest = max(named.values(), key=len)
    return (largest, True) if len(largest) > 1 else ([], False)


def _differ(values: list[int | None] | list[str | None]) -> bool | None:
    known = {value for value in values if value is not None}
    if len(known) > 1:
        return True
    return False if len([value for value in values if value is not None]) > 1 else None


def _counter(text: str) -> tuple[str, float, float | None] | None:
    """What a progress line counts: its words without numbers, how far it is, and of how many."""
    found = None
    for found in pattern(_COUNTER).finditer(text):
        if found.group("total") is not None:
            break
    if found is None:
        return None
    done = float(found.group("done").replace(",", "")) * _SCALE[found.group("unit")]
    total: float | None = None
    if found.group("total") is not None:
        raw = found.group("total").replace(",", "")
        total = float(raw.rstrip("kMG")) * _SCALE[raw[len(raw.rstrip("kMG")) :]]
    words = pattern(r"[^A-Za-z]+").sub(" ", text[: found.start()]).strip()
    return words, done, total


def _epoch_ended(transcript: Transcript, start: int, compared: list[Timeout]) -> bool:
    sizes = [item.numel_in for item in compared if item.numel_in is not None]
    averaging = [
        item
        for item in compared
        if (item.op or "").strip("_").startswith(_GRADIENTS) and (item.numel_in or 0) >= _GRADIENT_NUMEL
    ]
    if sizes and not averaging:
        return False
    for event in transcript.events[max(0, start - _WINDOW) : start]:
        if pattern(_EPOCH_END).search(event.text):
            return True
        counted = _counter(event.text) if "/" in event.text else None
        if (
            counted is not None
            and counted[2] is not None
            and counted[1] == counted[2] >= 10
            and (pattern(_TRAINING).search(event.text) or "it/s" in event.text or "s/it" in event.text)
            and not pattern(_WORK).search(counted[0])
        ):
            return True
    return False


def _open_bar(text: str) -> bool:
    """Does the message of a rank that gives up run into a bar of work that was not at its end yet?"""
    bar = text[: min(place for mark in _WAITED if (place := text.find(mark)) >= 0)].partition("[E ")[0]
    counted = _counter(bar) if "|" in bar and pattern(_ELAPSED).search(bar) else None
    if counted is None or counted[2] is None or counted[1] >= counted[2]:
        return False
    return pattern(_WORK).search(counted[0]) is not None and not pattern(_TRAINING).search(counted[0])


def _progress(
    transcript: Transcript, waited: list[Event], timeouts: list[Timeout], gave_up: set[int]
) -> bool:
    """Did work that is no training step go on, on a rank that did not give up, while others waited?"""
    start, source = waited[0].id, waited[0].source
    limits = [item.timeout_ms for item in timeouts if item.timeout_ms is not None]
    limit_s = max(limits, default=DEFAULT_TIMEOUT_MS) / 1000
    messages = {item.id for item in waited}
    before: dict[str, float] = {}
    for event in transcript.events:
        if event.quoted or not any(mark in event.text for mark in _COUNTS):
            continue
        if event.id in messages:
            if (event.rank or 0) not in gave_up and _open_bar(event.text):
                return True
            continue
        counted = _counter(event.text)
        if counted is None or (event.rank if event.rank is not None else 0) in gave_up:
            continue
        words, done, total = counted
        working = pattern(_WORK).search(words) is not None
        if not working and pattern(_TRAINING).search(event.text):
            continue
        same = event.source == source
        if same and event.id > start:
            if words in before and done > before[words]:
                return True
        elif working and total is not None and done < total:
            elapsed = pattern(_ELAPSED).search(event.text)
            if elapsed is not None and start - event.id <= _WINDOW:
                hours, minutes, seconds = (int(part or 0) for part in elapsed.groups())
                if hours * 3600 + minutes * 60 + seconds >= 0.9 * limit_s:
                    return True
        if same and (event.id < start or words not in before):  # the text may begin with the timeout
            before[words] = done
    return _kept_counting(transcript, waited[0], gave_up)


def _kept_counting(transcript: Transcript, first: Event, gave_up: set[int]) -> bool:
    """Are the last lines before the others gave up those of one rank, alike but for a number that rises?"""
    latest: list[list[int]] = []
    words = ""
    for event in reversed(transcript.events[max(0, first.id - _WINDOW) : first.id]):
        if event.kind is not EventKind.LOG or event.source != first.source or event.rank is None:
            continue
        other = pattern(r"\d+").sub("", event.text)
        if (words and other != words) or event.rank in gave_up or is_step(event.text):
            break
        words = other
        latest.append([int(digits) for digits in pattern(r"\d{1,15}").findall(event.text)])
        if len(latest) == _ALIKE:
            return any(one > two > three for one, two, three in zip(*latest, strict=False))
    return False
