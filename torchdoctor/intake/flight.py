"""Flight records of torch's process groups (``TORCH_NCCL_TRACE_BUFFER_SIZE``): pickle or JSON, as stacks.

A record is a ring of the last collectives of one process. What matters of it becomes events: one line for
each process group with how far its queue is, and one stack for each collective that did not finish, or for
the last one where all did. ``extract/flight.py`` reads the lines that are written here.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 1.1 to 2.10 of the format.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.intake.frames import package_of
from torchdoctor.intake.plain_pickle import PickleRefused, load
from torchdoctor.intake.source import IntakeError
from torchdoctor.model import Ending, Event, EventKind, Form, Frame, Transcript, counted

MAX_BYTES = 24 << 20
MAX_ENTRIES = 40_000  # the ring's default is 2,000
MAX_GROUPS = 256  # process groups of one process
MAX_PENDING = 32  # stacks of one process group
MAX_DONE = 16  # finished calls of one process group
MAX_FRAMES = 200
MAX_ALL_FRAMES = 40_000  # of all stacks of one record
MAX_RANKS = 1 << 16  # of one process group
MAX_PLACES = 40  # lines of the program that called collectives, of one process group
_PICKLE = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
_KEYS = (b'"pg_config"', b'"pg_status"', b'"collective_seq_id"', b'"profiling_name"')


def is_record(head: bytes) -> bool:
    """True for the first bytes of a pickle, or of a flight record in JSON."""
    if head.startswith(_PICKLE):
        return True
    return head.lstrip()[:1] == b"{" and any(key in head for key in _KEYS)


def read_record(data: bytes, name: str) -> Transcript | None:
    """The events of a flight record; None for other JSON.

    Raises IntakeError for a pickle that is no flight record, is damaged, too large, or holds more than
    plain data; nothing in it is run.
    """
    pickled = data.startswith(_PICKLE)
    if len(data) > MAX_BYTES:
        raise IntakeError(name, f"a {'pickle' if pickled else 'record'} larger than {MAX_BYTES >> 20} MiB")
    try:
        value = load(data) if pickled else _from_json(data, name)
    except PickleRefused as error:
        raise IntakeError(
            name, f"{error}; nothing in it was run. A flight record holds plain data alone"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        if not pickled:
            return None
        raise IntakeError(name, "a pickle that is no flight record (it has no list of entries)")
    record = _Record(value, name)
    events = tuple(record.events())
    notes = record.notes if events else [f"{name}: a flight record without a collective"]
    form = Form.LOG if events else Form.EMPTY
    return Transcript((name,), events, form, Ending.UNKNOWN, 0, len(data), tuple(notes))


def _from_json(data: bytes, name: str) -> object:
    """The value of a JSON text; None where it is none. Raises IntakeError for one of too many values."""
    from torchdoctor import json_text

    try:
        return json_text.parse(data)
    except json_text.JsonTooLarge as error:
        raise IntakeError(name, f"looks like a flight record in JSON, and {error}") from None
    except json_text.JsonRefused:
        return None


class _Record:
    """One record on its way to events; what is shared by many of its entries is looked at once."""

    def __init__(self, value: dict[object, object], source: str) -> None:
        self.value = value
        self.source = source
        self.notes: list[str] = []
        self.frames_left = MAX_ALL_FRAMES
        self._places: dict[int, str] = {}
        self._listed: dict[int, str] = {}

    def events(self) -> Iterator[Event]:
        number = 0
        for group, members in self._groups().items():
            for event in self._of_group(group, members, number):
                yield event
                number += 1

    def _groups(self) -> dict[str, list[dict[object, object]]]:
        """The last entries by process group."""
        entries = self.value.get("entries")
        entries = entries if isinstance(entries, list) else []
        if len(entries) > MAX_ENTRIES:
            self._note(f"the last {MAX_ENTRIES:,} of {counted(len(entries), 'entry', 'entries')} were read")
        groups: dict[str, list[dict[object, object]]] = {}
        beyond = 0
        for entry in entries[-MAX_ENTRIES:]:
            if isinstance(entry, dict):
                group = _group(entry)
                if group in groups or len(groups) < MAX_GROUPS:
                    groups.setdefault(group, []).append(entry)
                else:
                    beyond += 1
        if beyond:
            left = counted(beyond, "entry", "entries")
            self._note(f"more than {MAX_GROUPS} process groups; {left} of others not read")
        return groups

    def _note(self, text: str) -> None:
        self.notes.append(f"{self.source}: a flight record with {text}")

    def _of_group(self, group: str, members: list[dict[object, object]], number: int) -> Iterator[Event]:
        label = f"group {group or '0'}"
        yield _event(number, EventKind.LOG, self._status(group, label, members), self.source, ())
        yield _event(number + 1, EventKind.LOG, self._history(label, members), self.source, ())
        number += 2
        pending = [entry for entry in members if entry.get("state") != "completed"]
        shown = pending[:MAX_PENDING] if pending else members[-1:]
        done = [entry for entry in members if entry.get("state") == "completed" and entry is not shown[-1]]
        for entry in done[-MAX_DONE:]:  # another rank may still wait in one of them
            time = _time(entry.get("time_created_ns"))
            place = self._place(entry)
            line = f"{_line(entry, label)}, at {place}" if place else _line(entry, label)
            yield _event(number, EventKind.LOG, line, self.source, (), time)
            number += 1
        for entry in shown:
            time = _time(entry.get("time_created_ns"))
            frames = tuple(_frames(entry.get("frames"), min(MAX_FRAMES, self.frames_left)))
            self.frames_left -= len(frames)
            yield _event(number, EventKind.STACK, _line(entry, label), self.source, frames, time)
            number += 1

    def _status(self, group: str, label: str, members: list[dict[object, object]]) -> str:
        """``flight record, group 0 (default_pg), ranks 0 1: last enqueued 8, last completed 7``"""
        config = _of(self.value.get("pg_config"), group.split(" ")[0])
        identity = members[0].get("pg_id", "")
        of_groups = self.value.get("pg_status")
        status = _of(of_groups, _short(identity, 60) or str(_int(identity))) or _of(
            of_groups, group.split(" ")[0]
        )
        ranks = config.get("ranks")
        if id(ranks) not in self._listed:
            self._listed[id(ranks)] = _runs(ranks)
        listed = self._listed[id(ranks)]
        ids = [_int(entry.get("collective_seq_id")) for entry in members if not entry.get("is_p2p")]
        done = [
            _int(entry.get("collective_seq_id"))
            for entry in members
            if not entry.get("is_p2p") and entry.get("state") == "completed"
        ]
        enqueued = _int(status.get("last_enqueued_collective"), max(ids, default=-1))
        completed = _int(status.get("last_completed_collective"), max(done, default=-1))
        return (
            f"flight record, {label}, ranks {listed or '?'}: last enqueued {enqueued}, "
            f"last completed {completed}"
        )

    def _history(self, label: str, members: list[dict[object, object]]) -> str:
        """Which lines of the program called what, how often and when last, as far as the ring goes back.

        ``flight record, group 0 (default_pg): calls 1 to 26: all_reduce at ? 24 times to 26; …``
        """
        counts: dict[str, tuple[int, int]] = {}
        numbers: list[int] = []
        for entry in members:
            if entry.get("is_p2p") is True:
                continue
            number = _number(entry)
            numbers.append(number)
            key = f"{_call(entry)} at {self._place(entry) or '?'}"
            counts[key] = (counts.get(key, (0, 0))[0] + 1, number)
        latest = sorted(counts.items(), key=lambda item: -item[1][1])[:MAX_PLACES]
        told = "; ".join(f"{key} {counted(count, 'time')} to {last}" for key, (count, last) in latest)
        return (
            f"flight record, {label}: calls {min(numbers, default=-1)} to {max(numbers, default=-1)}: {told}"
        )

    def _place(self, entry: dict[object, object]) -> str:
        """File and line of the user's innermost frame."""
        frames = entry.get("frames")
        if id(frames) not in self._places:
            self._places[id(frames)] = _place_in(frames)
        return self._places[id(frames)]


def _event(
    number: int, kind: EventKind, text: str, source: str, frames: tuple[Frame, ...], time: str | None = None
) -> Event:
    return Event(number, kind, text, source, 1, 1, frames=frames, time=time, headed=kind is EventKind.STACK)


def _runs(ranks: object) -> str:
    """The ranks of a group, ``[0, 1, 2, 3, 8]`` or a list of numbers, as ``0-3 8``."""
    text = _short(ranks, MAX_RANKS * 8).strip("[]").replace(",", " ")
    numbers = sorted({int(one) for one in text.split()[:MAX_RANKS] if one.isdecimal() and len(one) < 8})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    shown = (" ".join(map(str, run)) if run[-1] - run[0] < 2 else f"{run[0]}-{run[-1]}" for run in runs)
    return " ".join(shown)[:8000].rpartition(" ")[0] if len(runs) > 800 else " ".join(shown)


def _place_in(frames: object) -> str:
    for frame in frames[:MAX_FRAMES] if isinstance(frames, list) else ():
        if isinstance(frame, dict):
            file = _short(frame.get("filename"), 1000)
            if file and not package_of(file):
                name = file.replace("\\", "/").rpartition("/")[2].replace(";", ",")
                return f"{name}:{_int(frame.get('line'))}"
    return ""


def _call(entry: dict[object, object]) -> str:
    name = _short(entry.get("profiling_name"), 80).rpartition(":")[2]
    return name.replace(" ", "_") or "?"


def _number(entry: dict[object, object]) -> int:
    key = "p2p_seq_id" if entry.get("is_p2p") is True else "collective_seq_id"
    return _int(entry.get(key, entry.get("seq_id")))


def _line(entry: dict[object, object], label: str) -> str:
    """``flight record, group 0 (default_pg): collective 8 all_reduce is scheduled, Float [] -> Float []``"""
    kind = "p2p" if entry.get("is_p2p") is True else "collective"
    state = _short(entry.get("state"), 20) or "?"
    return (
        f"flight record, {label}: {kind} {_number(entry)} {_call(entry)} is {state}, "
        f"{_tensors(entry, 'input')} -> {_tensors(entry, 'output')}, "
        f"timeout {_int(entry.get('timeout_ms'))} ms"
    )


def _tensors(entry: dict[object, object], side: str) -> str:
    kinds = entry.get(f"{side}_dtypes")
    sizes = entry.get(f"{side}_sizes")
    kinds = kinds if isinstance(kinds, list) else []
    sizes = sizes if isinstance(sizes, list) else []
    parts = []
    for index, size in enumerate(sizes[:8]):
        kind = _short(kinds[index], 20) if index < len(kinds) else "?"
        shape = ", ".join(str(_int(one)) for one in size[:16]) if isinstance(size, list) else "?"
        parts.append(f"{kind} [{shape}]")
    if len(sizes) > 8:
        parts.append(f"and {len(sizes) - 8} more")
    return " ".join(parts) or "nothing"


def _frames(value: object, most: int) -> Iterator[Frame]:
    """Outermost first; a record has the innermost first."""
    frames = value[:most] if isinstance(value, list) else []
    for frame in reversed(frames):
        if isinstance(frame, dict):
            file = _short(frame.get("filename"), 1000)
            line = _int(frame.get("line"))
            yield Frame(
                file, line if line >= 0 else None, _short(frame.get("name"), 200), "", package_of(file), 1
            )


def _group(entry: dict[object, object]) -> str:
    """``0 (default_pg)``: the group's name and what it is for; older formats have its number only."""
    group = entry.get("process_group")
    if isinstance(group, (tuple, list)) and group:
        name = _short(group[0], 60)
        purpose = _short(group[1], 60) if len(group) > 1 else ""
        return f"{name} ({purpose})" if purpose and purpose != "undefined" else name
    return str(_int(entry.get("pg_id"), 0))


def _of(value: object, key: str) -> dict[object, object]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _short(value: object, size: int) -> str:
    """A text of the record on one line; a list of plain numbers as one; "" for all else."""
    if isinstance(value, list):
        value = ", ".join(
            str(one) for one in value[:size] if isinstance(one, (int, str)) and len(str(one)) < 20
        )
    if not isinstance(value, str):
        return ""
    return "".join(char for char in " ".join(value[:size].split()) if char.isprintable())


def _int(value: object, default: int = -1) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64 else default
    )


def _time(value: object) -> str | None:
    """Nanoseconds since the epoch as ISO 8601 in UTC."""
    at = _int(value)
    if not 0 < at < 1 << 62:
        return None
    from datetime import datetime, timezone

    moment = datetime.fromtimestamp(at // 1_000_000_000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1_000_000_000 // 1000:06d}+00:00"
