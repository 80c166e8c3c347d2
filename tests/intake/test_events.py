"""What the reader makes of a text: ``events.cases`` holds texts, and all events that they give.

A case begins with ``=== what it shows``, with ``\\r`` and ``\\x`` of control characters written so; behind
``---`` stand the events. An event is the lines it covers, its kind, its fields and then, indented, its text
with ``|`` before each line, unless it is just what the lines say, and its frames, outermost first.
``PYTHONPATH=tests python tests/intake/test_events.py`` records them anew, to be reviewed as a diff.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from case_files import rewrite, table

from torchdoctor.intake import read_text
from torchdoctor.model import Event, Frame, Transcript

_FIELDS = ("type", "rank", "local_rank", "host", "time", "level", "stream", "message_line")


PATH = Path(__file__).with_name("events.cases")


def events(lines: list[str]) -> list[str]:
    text = "\n".join(lines).replace("\\r", "\r").replace("\\x1b", "\x1b")
    return list(shown(read_text(text), text.split("\n")))


def shown(transcript: Transcript, lines: list[str]) -> Iterator[str]:
    for earlier in transcript.earlier:
        yield "earlier run:"
        yield from shown(earlier, lines)
    if transcript.earlier:
        yield "last run:"
    for event in transcript.events:
        yield " ".join(head(event))
        if event.text != "\n".join(lines[event.line - 1 : event.end_line]):
            yield from (f"  | {line}" for line in event.text.split("\n"))
        yield from map(frame, event.frames)
    yield from (f"note: {note}" for note in transcript.notes)
    yield f"{transcript.form.value}, ending {transcript.ending.value}"


def head(event: Event) -> Iterator[str]:
    yield f"{event.line}" if event.line == event.end_line else f"{event.line}-{event.end_line}"
    yield event.kind.value
    for name in _FIELDS:
        value = getattr(event, name)
        if value not in (None, "", 0) or (name == "rank" and value == 0):
            yield f"{name}={value}"
    if event.count > 1:
        yield f"count={event.count}"
    if event.quoted:
        yield f"quoted={event.quoted.value}"
    yield from (name for name in ("headed", "recovered") if getattr(event, name))
    yield from (f"{relation.kind.value}={relation.event}" for relation in event.relations)


def frame(of: Frame) -> str:
    package = f" [{of.package}]" if of.package else ""
    return f"  > {of.file}:{of.line} {of.function}{package} {of.code}".rstrip()


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in table(PATH)])
def test_events(lines: list[str], expected: list[str]) -> None:
    assert events(lines) == expected


if __name__ == "__main__":
    rewrite(PATH, lambda _, lines: events(lines))


@pytest.mark.parametrize(
    ("first", "below"),
    [
        ("RuntimeError: no knob at /opt/knob.so", "\U0001f680 Patched three kernels."),
        (
            "subprocess.CalledProcessError: Command '['cmake', '.']' returned non-zero exit status 2.",
            "knob-1.2-cp37-cp37m-linux_aarch64.whl is not a supported wheel on this platform.",
        ),
    ],
)
def test_what_a_program_prints_below_a_message_is_none_of_it(first: str, below: str) -> None:
    head = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    turn()\n'
    event = next(one for one in read_text(f"{head}{first}\n{below}\n").events if one.type)
    assert event.text == first.partition(": ")[2]
