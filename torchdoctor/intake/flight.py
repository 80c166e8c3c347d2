"""Flight records of torch's process groups (``TORCH_NCCL_TRACE_BUFFER_SIZE``): pickle or JSON, as stacks.

A record is a ring of the last collectives of one process. What matters of it becomes events: one line for
each process group with how far its queue is, and one stack for each collective that did not finish, or for
the last one where all did. ``extract/flight.py`` reads the lines that are written here.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 1.1 to 2.10 of the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.frames import package_of
from torchdoctor.intake.plain_pickle import PickleRefused, load
from torchdoctor.intake.source import IntakeError
from torchdoctor.model import Ending, Event, EventKind, Form, Frame, Transcript, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 64 << 20
MAX_PENDING = 32  # stacks of one process group
MAX_DONE = 16  # finished calls of one process group
MAX_FRAMES = 200
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
        value = load(data) if pickled else _from_json(data)
    except PickleRefused as error:
        raise IntakeError(
            name, f"{error}; nothing in it was run. A flight record holds plain data alone"
        ) from None
    if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
        if not pickled:
            return None
        raise IntakeError(name, "a pickle that is no flight record (it has no list of entries)")
    events = tuple(_events(value, name))
    note = () if events else (f"{name}: a flight record without a collective",)
    form = Form.LOG if events else Form.EMPTY
    return Transcript((name,), events, form, Ending.UNKNOWN, 0, len(data), note)


def _from_json(data: bytes) -> object:
    """The value of a JSON text; None where it is none, or one that is nested without end."""
    import json

    try:
        return json.loads(data, parse_int=_short_int)
    except (ValueError, RecursionError):
        return None


def _short_int(text: str) -> int:
    if len(text) > 40:
        raise ValueError("a number of more than 40 digits")
    return int(text)


def _events(record: dict[object, object], source: str) -> Iterator[Event]:
    entries = record.get("entries")
    groups: dict[str, list[dict[object, object]]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            groups.setdefault(_group(entry), []).append(entry)
    number = 0
    for group, members in groups.items():
        label = f"group {group or '0'}"
        yield _event(number, EventKind.LOG, _status(record, group, label, members), source, ())
        yield _event(number + 1, EventKind.LOG, _history(label, members), source, ())
        number += 2
        pending = [entry for entry in members if entry.get("state") != "completed"]
        shown = pending[:MAX_PENDING] if pending else members[-1:]
        done = [entry for entry in members if entry.get("state") == "completed" and entry is not shown[-1]]
        for entry in done[-MAX_DONE:]:  # another rank may still wait in one of them
            yield _event(
                number, EventKind.LOG, _done(entry, label), source, (), _time(entry.get("time_created_ns"))
            )
            number += 1
        for entry in shown:
            time = _time(entry.get("time_created_ns"))
            frames = tuple(_frames(entry.get("frames")))
            yield _event(number, EventKind.STACK, _line(entry, label), source, frames, time)
            number += 1


def _event(
    number: int, kind: EventKind, text: str, source: str, frames: tuple[Frame, ...], time: str | None = None
) -> Event:
    return Event(number, kind, text, source, 1, 1, frames=frames, time=time, headed=kind is EventKind.STACK)


def _status(record: dict[object, object], group: str, label: str, members: list[dict[object, object]]) -> str:
    """``flight record, group 0 (default_pg), ranks 0 1: last enqueued 8, last completed 7``"""
    config = _of(record.get("pg_config"), group.split(" ")[0])
    status = _of(record.get("pg_status"), str(members[0].get("pg_id", ""))) or _of(
        record.get("pg_status"), group.split(" ")[0]
    )
    listed = _runs(config.get("ranks"))
    ids = [_int(entry.get("collective_seq_id")) for entry in members if not entry.get("is_p2p")]
    done = [
        _int(entry.get("collective_seq_id"))
        for entry in members
        if not entry.get("is_p2p") and entry.get("state") == "completed"
    ]
    enqueued = _int(status.get("last_enqueued_collective"), max(ids, default=-1))
    completed = _int(status.get("last_completed_collective"), max(done, default=-1))
    return (
        f"flight record, {label}, ranks {listed or '?'}: last enqueued {enqueued}, last completed {completed}"
    )


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


def _history(label: str, members: list[dict[object, object]]) -> str:
    """Which lines of the program called what, how often and when last, over all that the ring still holds.

    ``flight record, group 0 (default_pg): calls 1 to 26: all_reduce at ? 24 times to 26; …``
    """
    counts: dict[str, tuple[int, int]] = {}
    numbers: list[int] = []
    for entry in members:
        if entry.get("is_p2p") is True:
            continue
        number = _number(entry)
        numbers.append(number)
        key = f"{_call(entry)} at {_place(entry) or '?'}"
        counts[key] = (counts.get(key, (0, 0))[0] + 1, number)
    latest = sorted(counts.items(), key=lambda item: -item[1][1])[:MAX_PLACES]
    told = "; ".join(f"{key} {counted(count, 'time')} to {last}" for key, (count, last) in latest)
    return f"flight record, {label}: calls {min(numbers, default=-1)} to {max(numbers, default=-1)}: {told}"


def _place(entry: dict[object, object]) -> str:
    """File and line of the user's innermost frame."""
    frames = entry.get("frames")
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


def _done(entry: dict[object, object], label: str) -> str:
    """The line of a finished call, which has no stack, with the user's line that made it."""
    place = _place(entry)
    return f"{_line(entry, label)}, at {place}" if place else _line(entry, label)


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


def _frames(value: object) -> Iterator[Frame]:
    """Outermost first; a record has the innermost first."""
    frames = value[:MAX_FRAMES] if isinstance(value, list) else []
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
