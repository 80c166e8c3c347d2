"""What is said of a run in which no failure was found: how far it came, and what it got over."""

from __future__ import annotations

from bisect import bisect
from collections import Counter

from torchdoctor.engine.finding import Finding, quote
from torchdoctor.engine.textfacts import log_value
from torchdoctor.extract.progress import is_step
from torchdoctor.model import Ending, Event, EventKind, Transcript, counted
from torchdoctor.patterns import pattern

OPEN = "Nothing here tells how it ended. If it still runs and does not get on: torchdoctor hang --all"
_LAST = 3  # events at the end of a log that was cut in the middle
_SHOWN = 3  # kinds of errors
_LONG = 160  # characters of a message


def cut_off(transcript: Transcript) -> list[str]:
    """For a run of which nothing tells how it ended: how far it came, or what helps if it hangs."""
    if transcript.ending is not Ending.UNKNOWN:
        return []
    last = next((one for one in reversed(transcript.events[-_LAST:]) if is_step(one.text)), None)
    if last is None:
        return [OPEN] if log_value("log.torch_seen", transcript) else []
    from torchdoctor.engine.clocks import steps_in

    at = " ".join(f"{word} {number}" for word, number in steps_in(last.text)) or f"line {last.line}"
    return [f"No failure in what is here; the log ends at {at} without an end"]


def caught(transcript: Transcript, known: set[int]) -> list[Event]:
    """The exceptions that were printed with their stack and that the run got over.

    ``known`` holds the ids of events that a rule tells of. What Python ignores in a destructor is none.
    """
    return [one for one in transcript.events if one.id not in known and _is_caught(one, transcript)]


def _is_caught(event: Event, transcript: Transcript) -> bool:
    of_python = any(frame.file.endswith(".py") for frame in event.frames)
    if event.kind is not EventKind.EXCEPTION or not event.headed or not of_python or event.type is None:
        return False
    kept = event.recovered and not event.quoted and not is_ignored(event, transcript)
    return kept and event is not transcript.events[-1]


def of_refused_requests(findings: list[Finding], transcript: Transcript) -> list[Finding]:
    """Those before whose next answer the server's access log tells of a failure, and of none served later.

    uvicorn: ``"POST /v1/chat/completions HTTP/1.1" 400 Bad Request``. What looks whether it is up only gets.
    """
    form = pattern(r'"POST \S{1,200} HTTP/\d(?:\.\d)?" (\d)\d\d\b')
    found = [(one.id, form.search(one.text)) for one in transcript.events]
    answers = [(at, answer[1]) for at, answer in found if answer is not None]
    last_served = max((at for at, status in answers if status == "2"), default=-1)
    places = [at for at, _ in answers]

    def is_refused(event: Event) -> bool:
        follows = bisect(places, event.id)
        return last_served < event.id and follows < len(answers) and answers[follows][1] in "45"

    return [one for one in findings if any(is_refused(item.event) for item in one.occurrences)]


def is_ignored(event: Event, transcript: Transcript) -> bool:
    """Does Python say above it that it ignored it, as it does in a destructor?"""
    return event.id > 0 and transcript.events[event.id - 1].text.startswith("Exception ignored ")


def got_over(events: list[Event]) -> list[str]:
    """The kinds of exceptions that a run got over, most frequent first, the last of each with its place.

    A message is of one kind with another that differs in its numbers.
    """
    last = {_kind(event): event for event in events}
    often = Counter(map(_kind, events)).most_common(_SHOWN)
    return [_said(last[kind], number) for kind, number in often]


def _kind(event: Event) -> tuple[str, str]:
    return event.type or "", "".join(char for char in event.text if not char.isdigit())[:_LONG]


def _said(event: Event, number: int) -> str:
    words = " ".join(event.text.split())
    words = words if len(words) <= _LONG else f"{words[:_LONG]}…"
    often = f", the last of {counted(number, 'such error')}" if number > 1 else ""
    return f"{event.type}: {words} (line {quote(event).line}{often}): the run continued after it"
