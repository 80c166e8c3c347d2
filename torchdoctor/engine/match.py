"""Which rules match which events."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from torchdoctor.catalog import RuleSet, template
from torchdoctor.catalog.rule import Match
from torchdoctor.engine.conditions import every, holds
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.finding import Occurrence
from torchdoctor.engine.foreign import is_foreign
from torchdoctor.intake.quotation import in_sentence, shows_output
from torchdoctor.model import Event, Fact, Quoted, Transcript
from torchdoctor.records import replace

# a literal that stands in more events than this is looked at in the first and the last of them only, and in
# the first ones of each rank: what a rank failed of must be known of all of them
FIRST_HITS, LAST_HITS, RANK_HITS = 48, 16, 3
_SEPARATOR = "\n"
_DIGITS = b"0123456789"
_SMALL = 1 << 16  # below that, searching the text itself is as fast


class Haystack:
    """The folded texts of all events in one string, so that one search finds a literal in any of them."""

    def __init__(self, transcript: Transcript, *, written: bool = False) -> None:
        """``written``: of the lines that were written; else of those that were printed."""
        self.transcript = transcript
        wanted = Quoted.WRITTEN if written else Quoted.NO
        self.events: list[Event] = []
        self.many = False  # more than one rank
        self.bare = not shows_output(transcript.events)
        self.texts: list[str] = []
        self.starts: list[int] = []
        position = 0
        for event in transcript.events:
            if event.quoted is not wanted:
                continue
            text = template.fold(f"{event.type}: {event.text}" if event.type else event.text)
            self.events.append(event)
            self.texts.append(text)
            self.starts.append(position)
            position += len(text) + 1
        self.many = len({event.rank for event in self.events} - {None}) > 1
        self.text = _SEPARATOR.join(self.texts)
        # each text without its digits, once: in a log that is mostly the same lines with other numbers
        # a literal is looked for in a hundredth of the text
        self.skeleton = (
            b""
            if position < _SMALL
            else _SEPARATOR.encode().join(
                {text.encode("utf-8", "replace").translate(None, _DIGITS) for text in self.texts}
            )
        )

    def may_hold(self, literal: str) -> bool:
        """False for a literal that stands in no event."""
        if self.skeleton and literal.encode("utf-8", "replace").translate(None, _DIGITS) not in self.skeleton:
            return False
        return literal in self.text

    def _of_ranks(self, literal: str, position: int, known: list[int]) -> list[int]:
        """Of the events from ``position`` on the first ones of each rank."""
        taken = Counter(self.events[number].rank for number in known)
        found: list[int] = []
        while position >= 0:
            number = bisect_right(self.starts, position) - 1
            rank = self.events[number].rank
            if rank is not None and taken[rank] < RANK_HITS:
                taken[rank] += 1
                found.append(number)
            if number + 1 == len(self.starts):
                break
            position = self.text.find(literal, self.starts[number + 1])
        return found

    def events_with(self, literal: str) -> list[int]:
        """Numbers of the events that hold the literal, at most FIRST_HITS + LAST_HITS, and some a rank."""
        found: list[int] = []
        position = self.text.find(literal)
        while position >= 0 and len(found) < FIRST_HITS:
            number = bisect_right(self.starts, position) - 1
            found.append(number)
            if number + 1 == len(self.starts):
                return found
            position = self.text.find(literal, self.starts[number + 1])
        if position < 0:
            return found
        first, seen = found[-1], set(found)
        if self.many:
            seen.update(self._of_ranks(literal, position, found))
        last: list[int] = []
        position = self.text.rfind(literal)
        while position >= 0 and len(last) < LAST_HITS:
            number = bisect_right(self.starts, position) - 1
            if number <= first:
                break
            last.append(number)
            position = self.text.rfind(literal, 0, self.starts[number])
        return sorted(seen.union(last))


def occurrences(
    transcript: Transcript, rules: RuleSet, facts: TextFacts, *, written: bool = False
) -> Iterator[tuple[str, Occurrence]]:
    """Every (rule id, occurrence) in what was printed, best match block of a rule for each event.

    ``written``: in what was written instead.
    """
    haystack = Haystack(transcript, written=written)
    best: dict[tuple[str, int], Occurrence] = {}
    # the words of a big text would take more memory than the literals that they save are worth
    words = None if haystack.skeleton else set(haystack.text.split())
    found = filter(haystack.may_hold, rules.literals(words))
    for literal in sorted(found, key=rules.order):
        places = rules.places(literal)
        for number in haystack.events_with(literal):
            for rule_id, block in places:
                _try(rule_id, block, number, haystack, rules, facts, best)
    typed = [number for number, event in enumerate(haystack.events) if event.type]
    by_kind: dict[str, list[int]] = {}
    for number, event in enumerate(haystack.events):
        by_kind.setdefault(event.kind.value, []).append(number)
    for rule_id, block, kinds, types in rules.loose:
        if types:
            candidates = [number for number in typed if _type_fits(types, haystack.events[number].type)]
        elif kinds:
            candidates = sorted(number for kind in kinds for number in by_kind.get(kind, ()))
        else:
            candidates = list(range(len(haystack.events)))
        for number in candidates:
            if not kinds or haystack.events[number].kind.value in kinds:
                _try(rule_id, block, number, haystack, rules, facts, best)
    for (rule_id, _), occurrence in best.items():
        yield rule_id, occurrence


def _try(
    rule_id: str,
    block: int,
    number: int,
    haystack: Haystack,
    rules: RuleSet,
    facts: TextFacts,
    best: dict[tuple[str, int], Occurrence],
) -> None:
    event = haystack.events[number]
    with facts.guard(rule_id):
        text = haystack.texts[number]
        match = rules.rule(rule_id).matches[block]
        if not _adds(match, best.get((rule_id, event.id))):
            return
        found = match_event(match, event, text, facts)
        if found is None or is_foreign(rule_id, event, haystack.transcript):
            return
        events = haystack.transcript.events
        granted = match.shared or facts.of_torch or haystack.bare
        doubtful = granted or in_sentence(event, text, found.start, events)
        _keep(rule_id, replace(found, doubtful=True) if doubtful else found, best)


def _adds(match: Match, known: Occurrence | None) -> bool:
    """Would the block be kept beside what another one of its rule found in the event, or tell more of it?"""
    if known is None:
        return True
    names = [f"match.{name}" for pattern in match.patterns for name, _ in pattern.holes]
    more = (_weight(match), len(names)) > (known.weight, len(known.captures))
    return more or not known.captures.keys() >= set(names)


def _weight(match: Match) -> int:
    """How much a block asks of an event."""
    return sum(pattern.weight for pattern in match.patterns) + 4 * len(match.where)


def _keep(rule_id: str, found: Occurrence, best: dict[tuple[str, int], Occurrence]) -> None:
    known = best.get((rule_id, found.event.id))
    if known is None:
        best[rule_id, found.event.id] = found
        return
    # of two blocks with one literal, the one that reads more values out of the message
    more = (found.weight, len(found.captures)) > (known.weight, len(known.captures))
    kept, other = (found, known) if more else (known, found)
    # what another block read out of the same message is known, too
    if other.captures.keys() - kept.captures.keys():
        kept = replace(kept, captures={**other.captures, **kept.captures})
    best[rule_id, found.event.id] = kept


def match_event(match: Match, event: Event, text: str, facts: TextFacts) -> Occurrence | None:
    """The occurrence of one match block in one event, or None. ``text`` is the event's folded text."""
    if match.kinds and event.kind.value not in match.kinds:
        return None
    if match.types and not _type_fits(match.types, event.type):
        return None
    captures: dict[str, Fact] = {}
    start = end = 0
    snippet = ""
    for index, pattern in enumerate(match.patterns):
        compiled = template.compiled(pattern.pattern)
        found = facts.search(compiled, text, pattern.reach) if pattern.reach else compiled.search(text)
        if found is None:
            return None
        if index == 0:
            start, end = found.span()
            snippet = found.group()
        for name, kind in pattern.holes:
            value = template.value_of(kind, found.group(name))
            captures[f"match.{name}"] = Fact.known(f"match.{name}", value, event.place())
    if match.where:
        told = every(holds(item, facts.fact(item.fact, event, captures)) for item in match.where)
        if told is not True:
            return None
    return Occurrence(event, captures, snippet, start, end, _weight(match))


def _type_fits(types: Sequence[str], name: str | None) -> bool:
    return name is not None and (name in types or name.rpartition(".")[2] in types)
