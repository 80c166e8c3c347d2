"""What the engine holds in hand between matching and the report."""

from __future__ import annotations

from torchdoctor.catalog.rule import Rule
from torchdoctor.model import Event, EventKind, Evidence, Fact, Record, Role, Standing
from torchdoctor.records import record, replace


@record(frozen=True, slots=True)
class Occurrence(Record):
    """One place in the text at which a rule matches, and how it stands there.

    ``start`` and ``end`` bound the match in the folded text of the event, ``weight`` counts its literal
    characters, ``doubtful`` says that it stands in a longer sentence or that other causes print the same,
    ``confirmed_by`` how many confirming facts are known, ``by_itself`` that it follows from no other failure.
    """

    event: Event
    captures: dict[str, Fact]
    snippet: str
    start: int
    end: int
    weight: int
    standing: Standing = Standing.POSSIBLE
    confirmed_by: int = 0
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    doubtful: bool = False
    by_itself: bool = False


class Finding:
    """A rule with all its occurrences, the one that stands best first.

    ``echo``: here it only reports the end of something else, whatever the rule is elsewhere.
    """

    __slots__ = ("echo", "occurrences", "rule")

    def __init__(self, rule: Rule, occurrences: list[Occurrence]) -> None:
        self.rule = rule
        self.occurrences = occurrences
        self.echo = False

    @property
    def role(self) -> Role:
        """The rule's role in this text."""
        return Role.CONSEQUENCE if self.echo else self.rule.role

    @property
    def best(self) -> Occurrence:
        return self.occurrences[0]

    @property
    def recovered(self) -> bool:
        return all(occurrence.event.recovered for occurrence in self.occurrences)

    def doubt(self) -> None:
        """Nothing here is sure: what was confirmed is possible."""
        self.occurrences = [
            replace(one, standing=Standing.POSSIBLE) if one.standing is Standing.CONFIRMED else one
            for one in self.occurrences
        ]

    def events(self) -> set[int]:
        return {occurrence.event.id for occurrence in self.occurrences}

    def first(self) -> int:
        """The earliest event it stands at."""
        return min(occurrence.event.id for occurrence in self.occurrences)


def message_line(event: Event, snippet: str) -> int:
    """The line of the input on which a snippet of the event's message begins."""
    lines = event.text.split("\n")
    bare = event.frames and event.type and not event.text  # a class without a message ends its traceback
    start = event.message_line or (event.end_line if bare else event.line)
    wanted = snippet[:24]
    for offset, line in enumerate(lines):
        if wanted and wanted in " ".join(line.split()):
            return min(start + offset, max(event.end_line, start))
    return start


def quote(event: Event, snippet: str = "") -> Evidence:
    """The line of the event that a snippet stands in, as evidence."""
    lines = [line.strip() for line in _with_type(event).split("\n")]
    wanted = snippet[:24]
    text = next((line for line in lines if wanted and wanted in " ".join(line.split())), lines[0])
    if not text:
        text = next((line for line in lines if line), "")
    if not text and event.frames:  # a stack whose message was cut off
        last = event.frames[-1]
        return Evidence(
            f'File "{last.file}", line {last.line}, in {last.function}', event.source, last.at, event.rank
        )
    return Evidence(text, event.source, message_line(event, snippet), event.rank)


def _with_type(event: Event) -> str:
    """The text of an event behind its class; a warning names it itself, behind the file that it came from."""
    if not event.type or not event.text:
        return event.type or event.text
    named = event.text.find(f"{event.type}: ") if event.kind is EventKind.WARNING else -1
    return event.text[named:] if named >= 0 else f"{event.type}: {event.text}"
