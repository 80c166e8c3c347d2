"""``py-spy dump --json``: the threads of a process as the events that its text form gives."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.intake.frames import package_of
from torchdoctor.intake.source import IntakeError
from torchdoctor.model import Ending, Event, EventKind, Form, Frame, Transcript

MAX_THREADS = 2_000
MAX_FRAMES = 400
MAX_ALL_FRAMES = 100_000  # of all threads


def is_spy(head: bytes) -> bool:
    """True for the first bytes of such a dump."""
    return head.lstrip()[:1] == b"[" and b'"frames"' in head and (b'"thread_id"' in head or b'"pid"' in head)


def threads_of(data: bytes, name: str) -> Transcript | None:
    """One event a thread, the outermost frame first; None where the data is no such dump.

    Raises IntakeError for one of too many values.
    """
    from torchdoctor import json_text

    try:
        value = json_text.parse(data)
    except json_text.JsonTooLarge as error:
        raise IntakeError(name, f"looks like a dump of py-spy, and {error}") from None
    except json_text.JsonRefused:
        return None
    if not isinstance(value, list):
        return None
    events = tuple(_events(value, name))
    return Transcript((name,), events, Form.LOG, Ending.UNKNOWN, 0, len(data)) if events else None


def _events(threads: list[object], source: str) -> Iterator[Event]:
    number = 0
    left = MAX_ALL_FRAMES
    for thread in threads[:MAX_THREADS]:
        frames = thread.get("frames") if isinstance(thread, dict) else None
        if not isinstance(thread, dict) or not isinstance(frames, list):
            continue
        state = (
            ("active+gil" if thread.get("owns_gil") is True else "active")
            if thread.get("active") is True
            else "idle"
        )
        title = thread.get("thread_name")
        identity = thread.get("os_thread_id") or thread.get("thread_id")
        head = f"Thread {_word(identity)} ({state})"
        lines = [f'{head}: "{_word(title)}"' if isinstance(title, str) and title else head]
        read: list[Frame] = []
        for frame in frames[: min(MAX_FRAMES, left)]:
            left -= 1
            if isinstance(frame, dict):
                file = _word(frame.get("filename")) or _word(frame.get("module"))
                line = frame.get("line")
                at = line if isinstance(line, int) and 0 < line < 1 << 31 else None
                function = _word(frame.get("name"))
                short = _word(frame.get("short_filename")) or file
                lines.append(f"    {function} ({short}:{at})" if at else f"    {function} ({short})")
                read.append(Frame(file, at, function, "", package_of(file, True), 1))
        read.reverse()
        yield Event(number, EventKind.STACK, "\n".join(lines), source, 1, 1, frames=tuple(read), headed=True)
        number += 1


def _word(value: object) -> str:
    """A text or a number of the dump on one line."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return str(value)
    if not isinstance(value, str):
        return ""
    return "".join(char for char in " ".join(value[:500].split()) if char.isprintable())
