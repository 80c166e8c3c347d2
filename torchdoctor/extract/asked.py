"""What a message itself asks its reader to do: by "Please", "Set", "You need to", "To fix this"."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "asked.words": "text: the sentence by which the message itself tells its reader what to do",
}
# what a reader can do to a program, its arguments and its environment
_PLAIN = (
    r"add|convert|disable|double-check|enable|ensure|increase|install|make sure|pass|provide|re-?install"
    r"|reduce|remove|set|specify|try|update|upgrade|use"
)
# of these the bare word begins other sentences, too: "Call to …", "Run data is …"
_VERBS = (
    rf"{_PLAIN}|adjust|call|change|choose|correct|decrease|define|downgrade|give|initiali[sz]e|lower|move|put"
    r"|raise|rename|replace|restart|run|select|split|start|supply|switch|train|unset|wrap"
)
_HEADS = (
    rf"(?:[Pp]lease,? (?:first |also |either )?(?:{_VERBS})\b"
    rf"|(?:^|(?<=[.!:;] )|(?<=\n))(?:{'|'.join(one.capitalize() for one in _PLAIN.split('|'))})\b(?= \S)"
    rf"|To (?:avoid|fix|resolve|solve) this(?: \w{{1,20}})?, (?:please )?(?:{_VERBS})\b"
    rf"|[Yy]ou (?:need to|must|should|have to) (?:{_VERBS})\b)"
)
_ASKED = rf"(?s){_HEADS}.{{3,300}}?(?=(?<!i\.e)(?<!e\.g)[.!](?:\s|$)|\n\s*\n|$)"
# to whom it may be told, or where more stands: no action on what failed
_ELSEWHERE = (
    r"(?i)\b(?:(?<!this )issue|bug report|report (?:it|this)|github|https?:|log level|contact|maintainers)\b"
)
_MOST = 300


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The fact of an exception; nothing for another event."""
    if event.kind is EventKind.EXCEPTION and event.type:
        yield "words", asked(event.text)


def asked(text: str) -> str | None:
    """The first sentence of a message by which it asks for an action, in one line; None where none does."""
    for found in pattern(_ASKED).finditer(text[:2_000]):
        words = " ".join(found[0].split())
        if len(words) <= _MOST and pattern(_ELSEWHERE).search(words) is None:
            return words
    return None
