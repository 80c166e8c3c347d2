"""A text that people wrote, line by line: what they typed, what was printed, what they say.

Questions in forums, issues and chats mix code, commands at a prompt, output and sentences. What is read out
of them depends on which is which, and on whether a person speaks at all: the same figures stand in manuals,
benchmarks and release notes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.voices import Line, Voice, adjoins, lines_of, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Transcript

__all__ = ("Line", "Passage", "Voice")

_ELSEWHERE = frozenset((
    "und", "nicht", "der", "wird", "bei", "mit", "est", "pas", "les", "que", "una", "para", "com", "che",
    "non", "il", "het", "een", "nie", "jest", "bir", "ve", "yang", "tidak",
))  # fmt: skip
MESSAGE = 4  # lines, at most, of a message in a chat
QUESTION = 60  # … of a question with what belongs to it


class Passage:
    """The lines of a transcript, quoted ones included."""

    def __init__(self, transcript: Transcript) -> None:
        self.lines: tuple[Line, ...] = tuple(lines_of(transcript))
        self._speech = transcript.speech
        self._told = any(event.told for event in transcript.events)
        self.called = "\n".join(frame.code for event in transcript.events for frame in event.frames)

    def of(self, *voices: Voice) -> Iterator[Line]:
        """The lines of these voices, in order."""
        return (line for line in self.lines if line.voice in voices)

    def first(self, wanted: re.Pattern[str], *voices: Voice) -> Line | None:
        """The first line in which the pattern is found; ``voices``: only theirs."""
        lines = self.of(*voices) if voices else iter(self.lines)
        return next((line for line in lines if wanted.search(line.text)), None)

    @cached_property
    def code(self) -> str:
        """All that is code or was typed at a prompt of Python, a line a line."""
        return "\n".join(line.text for line in self.of(Voice.CODE, Voice.TYPED))

    @cached_property
    def snippets(self) -> tuple[Line, ...]:
        """Lines of code, those typed at a prompt, and what stands between back quotes in a sentence."""
        found: list[Line] = []
        for line in self.lines:
            if line.voice in (Voice.CODE, Voice.TYPED):
                found.append(line)
            elif line.voice is Voice.SAID and "`" in line.text:
                parts = line.text.split("`")[1::2]
                found.extend(replace(line, text=part, voice=Voice.CODE) for part in parts if part.strip())
        return tuple(found)

    @cached_property
    def text(self) -> str:
        """Everything, a line a line."""
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def personal(self) -> bool:
        """Does somebody speak of what happened to him, or ask?"""
        if self._told or (self._speech.person and not self._speech.lesson):
            return True
        return not self._speech.lesson and self._tried

    @property
    def _tried(self) -> bool:
        """A greeting; or what did not help, in a message of a chat or a language that needs no "I"."""
        said = list(self.of(Voice.SAID))
        if said and says("greets").match(said[0].text.lstrip(" *#>")):
            return True
        words = list(self.of(Voice.SAID, Voice.PRINTED))
        foreign = any(char > "\u00bf" and char.isalpha() for line in words for char in line.text)
        lines = words if foreign else said
        return len(self.lines) <= (QUESTION if foreign else MESSAGE) and any(
            says("unchanged").search(line.text) for line in lines
        )

    @cached_property
    def spaced(self) -> Passage:
        """The same with blanks where Latin letters or digits touch those of languages that set none."""
        if not _touching().search(self.text):
            return self
        other = object.__new__(Passage)
        other.lines = tuple(replace(line, text=_touching().sub(" ", line.text)) for line in self.lines)
        other._speech, other._told, other.called = self._speech, self._told, self.called
        return other

    @property
    def lesson(self) -> bool:
        """Are there signs of a text that explains to its readers?"""
        return self._speech.lesson > 0

    @cached_property
    def asked(self) -> bool:
        """As ``personal``, and where words of another language than English go with what is shown.

        Who writes Chinese, Turkish or German of his run often needs no pronoun and no question mark to ask.
        """
        return self.personal or (
            not self._speech.lesson
            and any(line.voice is not Voice.SAID for line in self.lines)
            and any(_elsewhere(line.text) for line in self.of(Voice.SAID))
        )

    @cached_property
    def session(self) -> bool:
        """Was something typed at a prompt of Python, and answered?"""
        return any(
            one.voice is Voice.TYPED and two.voice is Voice.PRINTED
            for one, two in zip(self.lines, self.lines[1:], strict=False)
        )

    @cached_property
    def paragraphs(self) -> tuple[tuple[Line, ...], ...]:
        """What people say, with the lines that belong together: a sentence goes on in the next one."""
        found: list[list[Line]] = []
        for line in self.of(Voice.SAID):
            above = found[-1][-1] if found else None
            if above is not None and above.at == line.at - 1 and adjoins(above, line.place, line.text):
                found[-1].append(line)
            else:
                found.append([line])
        return tuple(map(tuple, found))

    @cached_property
    def sentences(self) -> tuple[Line, ...]:
        """Each sentence that somebody says, at the line on which it begins."""
        return tuple(
            line if text == line.text else replace(line, text=text)
            for paragraph in self.paragraphs
            for line, text in _sentences(paragraph)
        )

    def told(self, wanted: re.Pattern[str]) -> Line | None:
        """The line on which words begin that the pattern finds; they may go on in the lines below it."""
        for paragraph in self.paragraphs:
            if (found := wanted.search(" ".join(line.text.strip() for line in paragraph))) is not None:
                return _at(paragraph, found.start())
        return None

    def answers(self, line: Line, most: int = 8) -> Iterator[Line]:
        """The printed lines right below one that was typed."""
        for below in self.lines[line.at + 1 : line.at + 1 + most]:
            if below.voice is Voice.TYPED and below.text.strip() in ("", "..."):
                continue
            if below.voice is not Voice.PRINTED:
                return
            yield below


def _elsewhere(text: str) -> bool:
    """Are these words of another language than English?"""
    return any(char > "\x7f" and char.isalpha() for char in text) or not _ELSEWHERE.isdisjoint(
        text.lower().split()
    )


@cache
def _touching() -> re.Pattern[str]:
    east = "[\u2e80-\ud7ff\uf900-\ufaff]"
    return re.compile(f"(?<=[A-Za-z0-9])(?={east})|(?<={east})(?=[A-Za-z0-9])")


def _at(paragraph: tuple[Line, ...], column: int) -> Line:
    """The line that holds this column of the joined lines."""
    for line in paragraph:
        column -= len(line.text.strip()) + 1
        if column < 0:
            return line
    return paragraph[-1]


def _sentences(paragraph: tuple[Line, ...]) -> Iterator[tuple[Line, str]]:
    joined = " ".join(line.text.strip() for line in paragraph)
    start = 0
    for end in pattern("sentence-end").finditer(joined):
        if sentence := joined[start : end.end()].strip():
            yield _at(paragraph, start), sentence
        start = end.end()
    if sentence := joined[start:].strip():
        yield _at(paragraph, start), sentence
