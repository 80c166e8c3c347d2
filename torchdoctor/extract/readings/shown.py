"""Expressions whose values a text shows: at a prompt, below a print(), in columns, in words.

``print(k, v.grad_fn)`` above ``0 None`` says what the gradient function is, as do ``v.grad_fn -> None`` and
"`v.grad_fn` is None".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.values import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 60  # lines below a print() in which its rows are looked for
MOST_ARGUMENTS = 12
MOST_BLANKS = 40

_BRACKETED = (
    r"<[^<>\n]{1,120}>|[A-Za-z_][\w.]{0,30}\((?:[^()\n]|\([^()\n]{0,80}\)){0,300}\)"
    r"|\[[^\[\]\n]{0,200}\]|\{[^{}\n]{0,200}\}|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\""
)
_WORD = r"[^\s,;|)]+"
_VALUE = f"{_BRACKETED}|{_WORD}"
_NAME = r"(?<![\w.])[A-Za-z_]\w*(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{0,80}\)|\.\w+)*"

_PATTERNS = {
    "print": r"(?:^|[;:]\s*)\s*print\((?P<arguments>.+)\)\s*(?:#.*)?$",
    "string": r"[rRuU]?(?P<quote>[\"'])(?P<inside>.*)(?P=quote)$",
    "format": r"[fF](?P<quote>[\"'])(?P<inside>.*)(?P=quote)$",
    "field": r"\{(?P<inside>[^{}!:=]{1,80})(?P<shown>=?)(?:![rsa])?(?::[^{}]{0,20})?\}",
    "columns": (
        r"^\s*(?P<expression>[A-Za-z_(][^\n]{0,160}?[\w)\]'\"])(?:\s{2,}|\t)"
        r"(?P<value>\S[^\n]{0,200})$"
    ),
    # an expression that somebody asks, without its prompt, and what was answered
    "bare": r"^\s*[A-Za-z_][\w.]*[.(\[][^=\n]{0,160}[\w)\]]\s*$",
    "value": r"^\s*(?:tensor\(|array\(|\[|\(|<|True\b|False\b|None\b|-?\d|nan\b|-?inf\b|torch\.)",
    "names": r"[.(_\[]",
    "named": (
        rf"(?P<expression>{_NAME})(?:\s*(?:===?|=>|[=:]|->|\u2192"
        r"|\u662f|\u4e3a|\u8fd4\u56de|\u306f|\u304c|\uac00|\uc774|\ub294|\uc740)\s*|\s+(?:is still|is"
        r"|are|was|gives|returns?|returned|prints|says|shows"
        r"|ist|bleibt|gibt|est|vaut|renvoie|es|devuelve|da|\u00e9|retorna|restituisce)\s+)"
        rf"(?P<value>{_VALUE})"
    ),
    # `python -c "import x; print(y)"` -> True
    "one-line": (
        r"`[^`\n]{0,160}\bprint\((?P<expression>[^`\n]{2,200}?)\)[\"']?`\s{0,3}(?:->|=>|\u2192|:|="
        r"|prints|says|gives|shows|returns|is|gibt|liefert|ergibt|donne|affiche|da|muestra|stampa"
        r"|\u8f93\u51fa|\u2192)?\s{0,3}"
        rf"(?:`(?P<quoted>[^`\n]{{1,160}})`|`?(?P<value>{_VALUE}))"
    ),
    "comment": (
        rf"^(?P<expression>[^#\n]{{2,160}}?)\s*#\s*(?:->|=>|\u2192|prints?|gives?|is"
        rf"|==?)?\s*(?P<value>{_VALUE})"
    ),
}


_pattern = patterns(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Shown:
    """The value of an expression, as a line shows it."""

    expression: str
    value: str
    line: Line


def shown(passage: Passage) -> Iterator[Shown]:
    """All values that the text shows, those of a prompt and of print() first."""
    for line in passage.of(Voice.TYPED, Voice.CODE):
        printed = _pattern("print").search(line.text)
        if printed is not None:
            yield from _rows(passage, line, arguments(printed.group("arguments")))
        elif line.voice is Voice.TYPED:
            yield from _answered(passage, line)
        elif _pattern("bare").match(line.text) and line.at + 1 < len(passage.lines):
            below = passage.lines[line.at + 1]
            if below.voice is Voice.PRINTED and _pattern("value").match(below.text):
                yield Shown(line.text.strip(), below.text.strip(), below)
    for line in passage.lines:
        if line.voice is not Voice.TYPED:
            yield from _within(line)


def _answered(passage: Passage, line: Line) -> Iterator[Shown]:
    answer = next(passage.answers(line, 1), None)
    # "y = net(x); y.grad_fn" shows the last statement
    statement = line.text.partition("#")[0].strip().rstrip(";")
    expression = (
        statement.rpartition(";")[2].strip() if statement.count("(") == statement.count(")") else statement
    )
    if answer is None or not expression:
        return
    parts, value = arguments(expression), answer.text.strip()
    if len(parts) > 1 and value[:1] == "(" and value[-1:] == ")":
        values = arguments(value[1:-1])
        if len(values) == len(parts):
            yield from (Shown(one, two, answer) for one, two in zip(parts, values, strict=True))
            return
    yield Shown(expression, value, answer)


def _rows(passage: Passage, line: Line, given: list[str]) -> Iterator[Shown]:
    """What stands below a print() in the form that its arguments give it."""
    if not 0 < len(given) <= MOST_ARGUMENTS:
        return
    source, names = _row(given)
    if not names:
        return
    row = re.compile(source)
    bare = len(given) == 1 and len(names) == 1 and given[0][:1] not in "fF\"'"
    for below in passage.lines[line.at + 1 : line.at + 1 + (1 if bare else ROWS)]:
        if below.voice is Voice.TYPED and not bare and line.voice is Voice.TYPED and below.text.strip():
            return
        if below.voice is not Voice.PRINTED or below.text.count(" ") > MOST_BLANKS:
            continue
        found = row.fullmatch(below.text.strip())
        if found is not None:
            yield from (Shown(name, value, below) for name, value in zip(names, found.groups(), strict=True))


def _row(given: list[str]) -> tuple[str, list[str]]:
    parts: list[str] = []
    names: list[str] = []
    for argument in given:
        if parts:
            parts.append(r"\s*" if argument[-1:] in "\"'" or parts[-1].endswith("s*") else r"\s+")
        if (text := _pattern("string").match(argument)) is not None:
            parts.append(_literal(text.group("inside")))
        elif (text := _pattern("format").match(argument)) is not None:
            parts.append(_fields(text.group("inside"), names))
        elif re.match(r"(?:sep|end|file|flush)\s*=", argument) is None:
            names.append(argument)
            parts.append(_value(len(names)))
    return "".join(parts), names


def _fields(inside: str, names: list[str]) -> str:
    found: list[str] = []
    at = 0
    for field in _pattern("field").finditer(inside):
        found.append(_literal(inside[at : field.start()]))
        if field.group("shown"):
            found.append(_literal(field.group("inside") + "="))
        names.append(field.group("inside").strip())
        at = field.end()
        found.append(rf"\s*{_value(len(names), inside[at:].lstrip()[:1])}\s*")
    return "".join((*found, _literal(inside[at:])))


def _value(group: int, stop: str = "") -> str:
    """A value as the group of this number, taken whole: to try shorter ones takes for ever in a long line.

    ``stop``: what stands behind it, so that a word ends before it.
    """
    plain = _WORD if stop in ("", "{") else _WORD.replace("[^", f"[^{re.escape(stop)}", 1)
    return rf"(?=({_BRACKETED}|{plain}))(?:\{group})"


def _literal(text: str) -> str:
    return r"\s*" + r"\s+".join(map(re.escape, text.split())) + r"\s*"


def _one_line(expression: str, value: str, line: Line) -> Iterator[Shown]:
    """The values of a print() whose output stands beside it, by the order of its arguments."""
    parts, words = arguments(expression), value.split()
    if len(parts) > 1 and len(parts) == len(words):
        yield from (Shown(one, word, line) for one, word in zip(parts, words, strict=True))
    else:
        yield Shown(expression, value, line)


def _within(line: Line) -> Iterator[Shown]:
    """Values beside their expression, in columns or in words."""
    if line.voice in (Voice.SAID, Voice.PRINTED) and "`" in line.text:
        for said in _pattern("one-line").finditer(line.text):
            yield from _one_line(
                said["expression"].strip(), said["quoted"] or said["value"].rstrip("."), line
            )
    text = line.text.replace("`", "").replace("**", "") if line.voice is Voice.SAID else line.text
    if line.voice is Voice.CODE and (found := _pattern("comment").match(text)) is not None:
        yield Shown(found.group("expression").strip(), found.group("value"), line)
    found = _pattern("columns").match(text)
    if found is not None and _pattern("names").search(found.group("expression")):
        yield Shown(found.group("expression").strip(), found.group("value").strip(), line)
    if line.voice is Voice.CODE:
        return
    for named in _pattern("named").finditer(text):
        if _pattern("names").search(named["expression"]):
            yield Shown(named["expression"], named["value"].rstrip("."), line)
