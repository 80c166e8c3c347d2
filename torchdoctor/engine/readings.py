"""Causes that show in a text in which nothing failed: by its settings, its figures and its code, together.

Somebody asks why the numbers differ, the variable has no effect, the machine swaps. No line of such a text
is a message of a failure, so the match blocks with ``whole = true`` ask facts of the whole of it, quoted
code included. What they find is never more than POSSIBLE: people leave things out when they tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.engine.conditions import every, holds, in_words
from torchdoctor.engine.finding import Finding, Occurrence
from torchdoctor.model import Ending, EventKind, Evidence, Fact, Form, Role, Severity, Standing, State

if TYPE_CHECKING:
    from torchdoctor.catalog import RuleSet
    from torchdoctor.catalog.rule import Condition
    from torchdoctor.engine.factbook import TextFacts
    from torchdoctor.model import Event, Transcript

# a question with what belongs to it is short; a log is not read between the lines
MAX_EVENTS = 2_000
MAX_CHARS = 120_000
MAX_PROGRAM = 80


def with_readings(
    live: list[Finding], transcript: Transcript, rules: RuleSet, facts: TextFacts
) -> list[Finding]:
    """The findings, with those that the whole text shows; unchanged where a message names a cause."""
    asked = transcript.speech.person
    stacks = [finding for finding in live if _by_stack_alone(finding)]
    said = [finding for finding in live if finding not in stacks]
    if any(_names_cause(finding, transcript, asked) for finding in said) or not (
        _short(transcript) and facts.whole()
    ):
        return live
    found = _shown(said, transcript, rules, facts)
    # what pasted code shows says more than where a stack happened to stand; they are of the same hang
    return found if any(finding.shown for finding in found) else live


def _by_stack_alone(finding: Finding) -> bool:
    """Is all there is to it where threads stand, which is not sure?"""
    return finding.best.standing is Standing.POSSIBLE and all(
        one.event.kind is EventKind.STACK for one in finding.occurrences
    )


def _shown(live: list[Finding], transcript: Transcript, rules: RuleSet, facts: TextFacts) -> list[Finding]:
    known = {finding.rule.id: finding for finding in live}
    for rule_id, block in rules.whole:
        with facts.guard(rule_id):
            rule = rules.rule(rule_id)
            where = rule.matches[block].where
            told = every(holds(item, facts.fact(item.fact)) for item in where)
            shown = _occurrence(where, transcript, facts) if told is True else None
            if shown is None:
                continue
            finding = known.get(rule_id)
            if finding is None or not finding.shown:
                rest = finding.occurrences if finding is not None else []
                sure = (
                    finding is not None
                    and finding.best.standing is Standing.CONFIRMED
                    and _names_cause(finding, transcript, asked=False)
                )
                known[rule_id] = Finding(rule, [*rest, shown] if sure else [shown, *rest], shown=True)
    return list(known.values())


def _names_cause(finding: Finding, transcript: Transcript, asked: bool) -> bool:
    """A warning is a remark where the text ends well, or somebody asks: what is said around it decides."""
    severity = finding.rule.severity
    remark = severity is Severity.WARNING and (asked or transcript.ending is Ending.GOOD)
    return finding.role is Role.CAUSE and severity is not Severity.INFO and not remark


def _short(transcript: Transcript) -> bool:
    """Short enough to be a question; a program with some words around it is shorter than a program's file."""
    events = transcript.events
    if transcript.form is Form.SOURCE_CODE and len(events) > MAX_PROGRAM:
        return False
    return len(events) <= MAX_EVENTS and sum(len(event.text) for event in events) <= MAX_CHARS


def _occurrence(where: tuple[Condition, ...], transcript: Transcript, facts: TextFacts) -> Occurrence | None:
    evidence: dict[tuple[str | None, int | None], Evidence] = {}
    anchor: Event | None = None
    for condition in where:
        fact = facts.fact(condition.fact)
        event = _event_of(fact, transcript)
        anchor = anchor or event
        if event is not None:
            line = int(fact.source.rpartition(":")[2])
            text = fact.detail or event.text.split("\n")[0].strip()
            evidence[event.source, line] = Evidence(text, event.source, line, event.rank, fact.name)
        else:
            evidence[fact.name, None] = Evidence(in_words(condition, fact), None, None, None, fact.name)
    if anchor is None:
        return None
    return Occurrence(
        anchor, {}, "", 0, 0, 4 * len(where), Standing.POSSIBLE, len(where), tuple(evidence.values())
    )


def _event_of(fact: Fact, transcript: Transcript) -> Event | None:
    """The event on whose line the fact was read."""
    if fact.state is not State.KNOWN or not fact.source.startswith("text:"):
        return None
    file, _, number = fact.source[len("text:") :].rpartition(":")
    line = int(number) if number.isdigit() else 0
    for event in transcript.events:
        if event.source == file and event.line <= line <= event.end_line:
            return event
    return None
