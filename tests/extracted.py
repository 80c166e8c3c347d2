"""What an extractor finds in lines or events, for tests: by its name within the namespace."""

from __future__ import annotations

from importlib import import_module

from torchdoctor.extract import NAMESPACES, of_event
from torchdoctor.model import Event, EventKind, Fact, FactValue, State, Transcript


def facts(namespace: str, *lines: str | tuple[int | None, str] | Event, at: int = 0) -> dict[str, Fact]:
    """Of the event number ``at``; a line may come with the rank that its prefix named, or as an event."""
    events = tuple(map(_event, range(len(lines)), lines))
    found = list(of_event(namespace, events[at], Transcript(("run.log",), events)))
    assert {fact.name for fact in found} <= set(
        import_module(f"torchdoctor.extract.{NAMESPACES[namespace]}").FACTS
    )
    return {fact.name.removeprefix(f"{namespace}."): fact for fact in found}


def values(namespace: str, *lines: str | tuple[int | None, str] | Event, at: int = 0) -> dict[str, FactValue]:
    """The values of the known ones."""
    found = facts(namespace, *lines, at=at)
    return {name: fact.value for name, fact in found.items() if fact.state is State.KNOWN}


def _event(number: int, line: str | tuple[int | None, str] | Event) -> Event:
    if isinstance(line, Event):
        return line
    rank, text = line if isinstance(line, tuple) else (None, line)
    return Event(number, EventKind.LOG, text, "run.log", number + 1, number + 1, rank=rank)
