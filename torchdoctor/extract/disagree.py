"""Two things that a message says have to agree, each with the value that it had.

"Length of mask (14) does not match action dimension (7)", or "kinds have to match, but found" above the lines
"- Save kind: a" and "- Load kind: b": what is to be changed is one of the two, and both are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "disagree.first": "text: one of two things that have to agree, as the message names it",
    "disagree.first_value": "text: the value that it had",
    "disagree.second": "text: the other",
    "disagree.second_value": "text: the value that the other had",
}

_NAME = r"[A-Za-z_][\w.'-]*(?: [A-Za-z_][\w.'-]*){0,5}"
_VALUE = r"(?:[\w+-]+(?:\.\w+)*|\[[^\]\n]{0,40}\]|\([^()\n]{1,40}\)|torch\.Size\(\[[^\]\n]{0,40}\]\))"
_DOES_NOT = r"(?:does|do|did|should|must)(?:n't| not)|cannot|can't"
_MUST = r"must|should|has to|have to|needs? to"
_RELATION = (
    rf"(?:(?:{_DOES_NOT}) (?:match|equal|agree with)|(?:{_MUST}) (?:match|equal|agree with)"
    rf"|(?:(?:{_MUST}) be|(?:is|are)(?: not|n't)) (?:equal to|the same as|identical to)|differs? from)"
)
_INLINE = (
    rf"(?:^|[.:;] |\n)(?P<first>{_NAME}) \((?P<first_value>{_VALUE})\) {_RELATION} "
    rf"(?P<second>{_NAME}) \((?P<second_value>{_VALUE})\)"
)
# what they are stands before, the values behind "got" or "found"
_RELATED = r"\b(?:match|equal|the same|identical|agree)\b"
_GOT = r"\b(?:got|found|but|given|received)\b:?[ \n(]+(?P<pairs>.{3,300})"
_PAIR = rf"[`'\"]?(?P<name>{_NAME})[`'\"]?(?:: ?| ?= ?)[`'\"]?(?P<value>{_VALUE})"
_LONGEST = 48


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of an exception; nothing for another event."""
    del transcript
    found = told(event.text) if event.kind is EventKind.EXCEPTION and event.type else None
    if found is not None:
        yield from zip(("first", "first_value", "second", "second_value"), found, strict=True)


def told(text: str) -> tuple[str, str, str, str] | None:
    """(a name, its value, the name of the other, its value)."""
    begun = text[:1_000]
    found = pattern(_INLINE).search(begun)
    if found is not None:
        return _plain(found["first"], found["first_value"], found["second"], found["second_value"])
    values = pattern(_GOT, re.DOTALL).search(begun)
    if values is None or pattern(_RELATED).search(begun[: values.start()]) is None:
        return None
    pairs = [one.group("name", "value") for one in pattern(_PAIR).finditer(values["pairs"])]
    return _plain(*pairs[0], *pairs[1]) if len(pairs) == 2 else None


def _plain(first: str, first_value: str, second: str, second_value: str) -> tuple[str, str, str, str] | None:
    first, second = _within(first.removeprefix("and ")), _within(second.removeprefix("and "))
    longest = max(map(len, (first, first_value, second, second_value)))
    if first == second or first_value == second_value or longest > _LONGEST:
        return None
    return first, first_value, second, second_value


def _within(name: str) -> str:
    """The name as it stands inside a sentence: without its article, its first word small."""
    name = re.sub(r"^(?:[Tt]he|[Aa]n?) ", "", name)
    head, blank, rest = name.partition(" ")
    return f"{head.lower()}{blank}{rest}" if blank and re.fullmatch(r"[A-Z][a-z]+", head) else name
