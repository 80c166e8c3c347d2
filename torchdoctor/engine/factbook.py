"""All facts a diagnosis may ask for: of the matched event, of the text, and of the machine."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import cached_property

from torchdoctor.engine import text_claims, textfacts
from torchdoctor.model import Event, Fact, FactSource, Reason, State, Transcript

# all searches with regexes in one text: a linear one is still tried at every place of every event
REGEX_S = 3.0


class FactBook:
    """Answers ``fact(name, event)`` once for each name and event, fetching only what is asked.

    The text's own facts come before those of ``source`` (the machine or a recording of one), since a log
    is judged by the machine it comes from. Without a source, facts that are not in the text are UNKNOWN.
    """

    def __init__(self, source: FactSource | None = None) -> None:
        self.source = source
        self._machine: dict[str, Fact] = {}
        self._names = frozenset(source.names()) if source else frozenset()

    def machine(self, name: str) -> Fact:
        """A fact of the machine alone; UNKNOWN (not-asked) without a source."""
        fact = self._machine.get(name)
        if fact is None:
            if self.source is not None and name in self._names:
                fact = self.source.fetch(name)
            else:
                fact = Fact.unknown(name, Reason.NOT_ASKED)
            self._machine[name] = fact
        return fact

    def asked(self) -> tuple[Fact, ...]:
        """The machine's facts that were asked for and could be told."""
        return tuple(fact for fact in self._machine.values() if fact.state is not State.UNKNOWN)


class Guard:
    """Records what a rule, or an extractor it asked, broke with. Ctrl-C and lack of memory pass through."""

    __slots__ = ("_faults", "_rule")

    def __init__(self, rule_id: str, faults: list[str]) -> None:
        self._rule = rule_id
        self._faults = faults

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return False
        import os
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        fault = f"{self._rule}: {type(error).__name__}: {error} at {place}"
        if fault not in self._faults:
            self._faults.append(fault)
        return True


_OF_TORCH = ("log.torch_seen", "event.torch_tied")


class TextFacts:
    """The facts of one transcript, over those of a FactBook."""

    def __init__(self, transcript: Transcript, book: FactBook, *, of_torch: bool = False) -> None:
        """``of_torch``: take it that torch printed the text, where nothing in it says who did."""
        self.transcript = transcript
        self.book = book
        self.of_torch = of_torch
        self._cache: dict[tuple[str, int], Fact] = {}
        self._extracted: set[tuple[str, int]] = set()
        self._environment: dict[str, Fact] | None = None
        self.faults: list[str] = []
        self.notes: list[str] = []
        self._regex_s = REGEX_S

    def guard(self, rule_id: str) -> Guard:
        """A context in which a fault of one rule is recorded, so that the others still run."""
        return Guard(rule_id, self.faults)

    def fact(self, name: str, event: Event | None = None, captures: Mapping[str, Fact] | None = None) -> Fact:
        """The fact, from the match, the event, the text, or the machine, whichever comes first."""
        if captures and name in captures:
            return captures[name]
        if captures is not None and name.startswith("match."):
            return Fact.absent(name)  # the template that matched has no such hole
        if self.of_torch and name in _OF_TORCH:
            return Fact.known(name, True, "taken for granted")
        key = (name, -1 if event is None or name.startswith("log.") else event.id)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._look_up(name, event)
        return found

    def _look_up(self, name: str, event: Event | None) -> Fact:
        namespace = name.partition(".")[0]
        if namespace == "event":
            if event is None:
                return Fact.unknown(name, Reason.NOT_ASKED)
            return textfacts.known(name, textfacts.event_value(name, event, self.transcript), event)
        if namespace == "log":
            return textfacts.known(name, textfacts.log_value(name, self.transcript))
        from torchdoctor import extract

        if event is not None and namespace in extract.NAMESPACES:
            if (namespace, event.id) not in self._extracted:
                self._extracted.add((namespace, event.id))
                for fact in extract.of_event(namespace, event, self.transcript):
                    self._cache[fact.name, event.id] = fact
            found = self._cache.get((name, event.id))
            if found is not None:
                return found
        if self._environment is None:
            stated = {fact.name: fact for fact in extract.of_text(self.transcript)}
            self._environment = text_claims.added(stated, self.transcript)
        if name in self._environment:
            return self._environment[name]
        return self._of_machine(name)

    def _of_machine(self, name: str) -> Fact:
        """A fact of the machine; where the log's torch came from elsewhere, none of it is told of it."""
        if name.startswith("torch.") and self.book.source is not None and self._ran_torch:
            torch = self.book.machine("torch.version")
            if torch.state is State.ABSENT:
                return Fact.unknown(name, Reason.NOT_ASKED, torch.source, "the log's torch is another one")
        return self.book.machine(name)

    @cached_property
    def _ran_torch(self) -> bool:
        return any(frame.package == "torch" for event in self.transcript.events for frame in event.frames)

    def search(self, compiled: re.Pattern[str], text: str, reach: int) -> re.Match[str] | None:
        """Search the first ``reach`` characters with a rule's regex, while there is time left for all."""
        if self._regex_s <= 0:
            return None
        begun = time.perf_counter()
        found = compiled.search(text, 0, reach)
        self._regex_s -= time.perf_counter() - begun
        if self._regex_s <= 0:
            self.notes.append(
                f"The regexes of rules took more than {REGEX_S:.0f} s; the rest of the text was not searched "
                "with them"
            )
        return found

    def environment(self) -> tuple[Fact, ...]:
        """What the text says of the machine it comes from, as far as it was looked at."""
        return tuple((self._environment or {}).values())
