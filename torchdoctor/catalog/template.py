"""Message templates: literal text with typed holes, compiled to linear-time patterns.

A template such as ``"Tried to allocate {want:size}. GPU {gpu:int}"`` matches anywhere inside a text whose
white space has been folded to single spaces. Every hole is a bounded character class, so a pattern can
never run away on hostile input.
"""

from __future__ import annotations

import re
from functools import cache

from torchdoctor.model import FactValue, TorchdoctorError

MIN_LITERAL = 8

HOLES = {
    "int": r"[-+]?\d{1,20}",
    "float": r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,4})?",
    "size": r"\d{1,20}(?:\.\d{1,9})? ?(?:[KMGTPE]i?B|[kB]B?|bytes)",
    "version": r"\d[\w.+\-]{0,40}",
    "path": r"[^\s\"'<>|]{1,300}",
    "word": r"\S{1,200}",
    "rest": r".{0,200}",
}

# What ends a sentence is no part of the value before it: "built with LAPACK." has no library named "LAPACK.".
ENDING = r"(?<![.,;])"
_ENDED = ("version", "path", "word")

# A hole that a template begins with starts where such a run starts: else every character of a long run would
# be tried as a start.
LEADING = {"path": r"(?<![^\s\"'<>|])", "word": r"(?<!\S)"}

_UNITS = {"": 1, "b": 1, "bytes": 1}
for _power, _letter in enumerate("kmgtpe", start=1):
    # torch and the kernel print binary units whatever they call them
    _UNITS[f"{_letter}b"] = _UNITS[f"{_letter}ib"] = _UNITS[_letter] = 1024**_power


class TemplateError(TorchdoctorError):
    """A template that cannot be read; the message says what is wrong with it."""


class Template:
    """A parsed template: ``pattern`` (source of a regular expression), ``literal`` (the longest literal
    run, the prefilter), ``holes`` (name -> type, "" left out)."""

    __slots__ = ("holes", "literal", "pattern", "source")

    def __init__(self, source: str, pattern: str, literal: str, holes: dict[str, str]) -> None:
        self.source = source
        self.pattern = pattern
        self.literal = literal
        self.holes = holes


# forums and translators turn a program's quotation marks, colons, commas and brackets into those of print
_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_QUOTES |= {0xFF1A: ":", 0xFF0C: ",", 0xFF08: "(", 0xFF09: ")", 0xFF3B: "[", 0xFF3D: "]"}


def fold(text: str) -> str:
    """The text with every run of white space turned into one space, and its marks of print into ASCII's."""
    if not text.isascii():
        text = text.translate(_QUOTES)
    return " ".join(text.split())


def parse(source: str) -> Template:
    """Read a template.

    Raises TemplateError on an unknown hole type, a repeated hole name, a single brace or an empty template.
    """
    literals: list[str] = []
    pieces: list[str] = []
    holes: dict[str, str] = {}
    text = ""

    def flush() -> None:
        nonlocal text
        if text:
            literals.append(text)
            pieces.append(re.escape(text))
            text = ""

    folded = fold(source)
    if folded and source[0].isspace():
        folded = " " + folded
    if folded and source[-1].isspace():
        folded += " "
    position = 0
    while position < len(folded):
        char = folded[position]
        if char in "{}" and folded[position : position + 2] == char * 2:
            text += char
            position += 2
        elif char == "{":
            end = folded.find("}", position)
            if end < 0:
                raise TemplateError(
                    f"hole opened at character {position} is not closed; write {{{{ for a brace"
                )
            name, _, kind = folded[position + 1 : end].partition(":")
            if kind not in HOLES:
                raise TemplateError(
                    f"unknown hole type {kind!r} in {{{name}:{kind}}}; known: {', '.join(HOLES)}"
                )
            if name and (name in holes or not name.isidentifier()):
                raise TemplateError(f"hole name {name!r} is repeated or no identifier")
            flush()
            last = end + 1 == len(folded)
            lazy = kind in ("rest", "word", "path") and not last
            body = HOLES[kind] + ("?" if lazy else ENDING if last and kind in _ENDED else "")
            if name:
                holes[name] = kind
                body = f"(?P<{name}>{body})"
            pieces.append(body if pieces else LEADING.get(kind, "") + body)
            position = end + 1
        elif char == "}":
            raise TemplateError(f"single }} at character {position}; write }}}} for a brace")
        else:
            text += char
            position += 1
    flush()
    if not literals:
        raise TemplateError("a template needs literal text")
    return Template(source, "".join(pieces), max(literals, key=len), holes)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled form of a template's pattern; kept, since one text asks for the same ones again."""
    return re.compile(pattern)


def value_of(kind: str, text: str) -> FactValue:
    """The value of a hole's text: int, float, bytes for size, text for all else."""
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "size":
        number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
        return int(float(number) * _UNITS[text[len(number) :].strip().lower()])
    return text
