"""The code that a text shows, statement by statement: pasted, numbered, or in back quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.extract.readings.passage import Line, Passage
    from torchdoctor.model import Fact, FactValue

STEP = 4  # blanks by which the body of a test is set in

_PATTERNS = {
    # " 36  def save(model):", "-> 12: if rank == 0:", "L40 |     x = 1"
    "numbered": r"^\s{0,8}(?:-{0,2}> ?)?L?(?P<number>\d{1,5})(?:[:|.)] ?|\t| {1,3}\| ?|  ?)(?P<code>.*)$",
    "quoted": r"(?<!`)`{1,3}(?!`)(?P<code>[^`\n]{4,500})`{1,3}",
    "codelike": r"[\w\])]\s?\(|\w\s?=[^=]|\bif\b.*:|\belse:|\.\w+\(|^\s*\w+\[",
    "one-line": r"^(?P<head>(?:if|elif|for|while|with|else|def)\b[^;]{0,160}?(?<!:):)\s+(?P<body>[^:\s#].*)$",
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, without what numbered it; ``indent`` in blanks; ``run`` grows where code breaks off.

    ``number`` is that of its line in the file, where the listing tells it.
    """

    line: Line
    text: str
    indent: int
    run: int
    number: int | None = None

    def fact(self, name: str, value: FactValue) -> Fact:
        """A fact that was read out of this statement."""
        return self.line.fact(name, value)


def statements(passage: Passage) -> Iterator[Statement]:
    """All statements in order; comments are left out."""
    run = 0
    before = -2  # the line of the statement above
    numbers = _numbers(passage)
    for line in passage.lines:
        number, text = None, line.text
        if (listed := numbers.get(line.at)) is not None:
            number, text = listed
        elif line.voice not in (Voice.CODE, Voice.TYPED):
            for quoted in _quoted(line.text):
                run += 1
                yield from _taken_apart(line, quoted, 0, run, None)
                before = -2
            continue
        if line.at != before + 1:
            run += 1
        before = line.at
        yield from _taken_apart(line, text, len(text) - len(text.lstrip()), run, number)


def _numbers(passage: Passage) -> dict[int, tuple[int, str]]:
    """Lines that stand in a listing with numbers: line -> its number and code."""
    found: dict[int, tuple[int, str]] = {}
    last: tuple[int, int, str] | None = None
    for line in passage.lines:
        hit = _pattern("numbered").match(line.text)
        if hit is None:
            last = None
            continue
        number, code = int(hit.group("number")), hit.group("code")
        if last is not None and last[1] < number <= last[1] + 3:
            found[last[0]] = last[1], last[2]
            found[line.at] = number, code
        last = line.at, number, code
    return found if any(_pattern("codelike").search(code) for _, code in found.values()) else {}


def _quoted(text: str) -> Iterator[str]:
    if "`" in text:
        for hit in _pattern("quoted").finditer(text):
            code = hit.group("code").strip()
            if _pattern("codelike").search(code):
                yield code


def _taken_apart(line: Line, text: str, indent: int, run: int, number: int | None) -> Iterator[Statement]:
    """``if rank == 0: a(); b()`` is a test and two statements under it."""
    bare = re.sub(r"(?:^|\s)#.*$", "", text).strip() if '"#' not in text else text.strip()
    if not bare:
        return
    if (one := _pattern("one-line").match(bare)) is not None:
        yield Statement(line, one.group("head"), indent, run, number)
        indent, bare = indent + STEP, one.group("body")
    for part in re.split(r";\s*", bare):
        if part.strip():
            yield Statement(line, part.strip(), indent, run, number)
