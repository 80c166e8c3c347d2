"""What was printed for each expression, and the commands that were typed with what they answered.

People show ``python -c "import torch; print(torch.__version__, torch.cuda.is_available())"`` and below it
``2.1.2+cu121 False``: which word belongs to which expression follows from their order alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ANSWER = 12  # lines of a command's output that are looked at

_PATTERNS = {
    "printing": r"^\s*(?:\[\s*)?print\((?P<inside>.*?)\)?(?:\s+for\s.*)?\s*$",
    "word": r"'[^'\n]*'|\"[^\"\n]*\"|\S+",
    "set": r"^\s*(?P<name>[A-Za-z_]\w*) ?= ?(?P<value>[\w.]+\([^()\n]*\)(?:\.\w+(?:\([^()]*\))?)?)\s*;?$",
    "quoted": r"`(?P<text>[^`\n]{1,80})`",
    # its value is of many words
    "several": r"get_device_name|get_device_properties\([^)]*\)$|\.name\b|get_arch_list",
    "bare": (
        r"^(?:sudo )?(?:nvidia-smi|lspci|lsmod|printenv|modinfo|dkms|dpkg|which|echo|pip3? (?:list|show"
        r"|freeze)"
        r"|conda (?:list|env)|cat /|ls /)\b[^.!?:]*(?:\S\.\S+)?$"
    ),
}
_SHAPES = (
    ("is_available()", "True|False"),
    ("is_initialized()", "True|False"),
    ("device_count()", r"\d{1,3}"),
    ("__version__", r"\d+\.\d\S*"),
    ("version.cuda", r"None|\d+\.\d+"),
)


@dataclass(frozen=True, slots=True)
class Value:
    """What was printed for an expression; ``line`` is the line that shows it."""

    expression: str
    text: str
    line: Line


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a shell and the lines below it, up to the next one."""

    line: Line
    text: str
    answers: tuple[Line, ...]


_pattern = patterns(_PATTERNS)


@lru_cache(maxsize=2)  # several readings ask of one text, one after another
def values(passage: Passage) -> tuple[Value, ...]:
    """Each value that can be told, in order: of what was typed at a prompt, and of what code prints."""
    return tuple(_values(passage))


@lru_cache(maxsize=2)
def commands(passage: Passage) -> tuple[Command, ...]:
    """Each command with its output; without a prompt where the line is one of a few well-known commands."""
    return tuple(_commands(passage))


def _values(passage: Passage) -> Iterator[Value]:
    waiting: list[list[str]] = []  # what the lines of code print, a list a line of output
    since = 0
    names: dict[str, str] = {}  # variable -> what it was set to
    for line in passage.lines:
        if line.voice is Voice.TYPED:
            names.update(_set(line.text))
            shown = _in_full(_printed(line.text) or _shown(line.text), names)
            answer = next(passage.answers(line, 1), None)
            if answer is not None and shown:
                yield from _pair(shown, answer)
            waiting = []
        elif line.voice is Voice.CODE:
            names.update(_set(line.text))
            if shown := _in_full(_printed(line.text), names):
                waiting.append(shown)
                since = line.at
            elif line.text.lstrip().startswith(("import ", "from ")):
                waiting = []
        elif waiting and line.voice in (Voice.PRINTED, Voice.SAID):
            found = list(_pair(waiting[0], line)) if line.voice is Voice.PRINTED else []
            if found:
                waiting.pop(0)
                since = line.at
                yield from found
            elif line.voice is Voice.SAID and (told := _in_quotes(waiting[0], line)):
                yield from told
                waiting.pop(0)
            elif line.at > since + MAX_ANSWER:
                waiting = []


def _commands(passage: Passage) -> Iterator[Command]:
    lines = passage.lines
    for line in lines:
        text = line.text.strip()
        if line.voice is not Voice.SHELL and not (
            line.voice is Voice.PRINTED and _pattern("bare").match(text)
        ):
            continue
        answers: list[Line] = []
        for below in lines[line.at + 1 : line.at + 1 + MAX_ANSWER]:
            if below.voice in (Voice.SHELL, Voice.TYPED) or _pattern("bare").match(below.text.strip()):
                break
            answers.append(below)
        yield Command(line, text, tuple(answers))


def _in_quotes(expressions: list[str], line: Line) -> list[Value]:
    """What somebody says was printed, between back quotes; several values, or one with a shape of its own."""
    if len(expressions) == 1 and not any(expressions[0].endswith(end) for end, _ in _SHAPES):
        return []
    for quoted in _pattern("quoted").finditer(line.text):
        if found := list(_pair(expressions, replace(line, text=quoted.group("text")))):
            return [replace(one, line=line) for one in found]
    return []


def arguments(inside: str) -> list[str]:
    """The arguments of a call, parted at the commas that stand in no brackets and no quotes."""
    found, depth, quote, start = [], 0, "", 0
    for at, char in enumerate(inside):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            found.append(inside[start:at].strip())
            start = at + 1
    found.append(inside[start:].strip())
    return [one for one in found if one]


def _set(text: str) -> dict[str, str]:
    found = _pattern("set").match(text)
    return {found.group("name"): found.group("value").strip()} if found is not None else {}


def _in_full(expressions: list[str], names: dict[str, str]) -> list[str]:
    """The expressions with variables replaced: of ``p.name`` it matters what ``p`` is."""
    found = []
    for one in expressions:
        name, dot, rest = one.partition(".")
        found.append(f"{names[name]}{dot}{rest}" if name in names else one)
    return found


def _printed(text: str) -> list[str]:
    code = text.partition("  #")[0]
    found = _pattern("printing").match(code)
    if found is None:
        return []
    inside = found.group("inside")
    if inside.count("(") > inside.count(")"):
        inside += ")"
    shown = [one for one in arguments(inside) if not one.startswith(("sep=", "end=", "flush=", "file="))]
    return [] if any(one[:2] in ("f'", 'f"') for one in shown) else shown


def _shown(text: str) -> list[str]:
    stripped = text.strip()
    if not stripped or re.match(r"(?:import|from|def|for|with|if)\b|[\w.]+\s*=[^=]", stripped):
        return []
    return arguments(stripped)


def _pair(expressions: list[str], answer: Line) -> Iterator[Value]:
    """The words of the answer by expression; nothing where their numbers differ."""
    text = answer.text.strip()
    if len(expressions) == 1:
        if _may_be(expressions[0], text):
            yield Value(expressions[0], text.strip("'\""), answer)
        return
    tuple_like = text[:1] == "(" and text[-1:] == ")"
    words = arguments(text[1:-1]) if tuple_like else _pattern("word").findall(text)
    wanted: list[tuple[str, int]] = []
    for one in expressions:
        literal = one[:1] in "'\"" and not tuple_like
        wanted.append((one, len(one.strip("'\"").split()) if literal else 1))
    missing = len(words) - sum(count for _, count in wanted)
    if missing == 1 and words[0][-1:] in ":=>":
        words, missing = words[1:], 0  # "output: 6 8 0"
    several = [at for at, (one, _) in enumerate(wanted) if _pattern("several").search(one)]
    if missing < 0 or (missing and len(several) != 1):
        return
    if missing:
        wanted[several[0]] = (wanted[several[0]][0], 1 + missing)
    found: list[Value] = []
    at = 0
    for one, count in wanted:
        found.append(Value(one, " ".join(words[at : at + count]).strip("'\""), answer))
        at += count
    if all(_may_be(one.expression, one.text) for one in found):
        yield from found


def _may_be(expression: str, text: str) -> bool:
    """Can the text be this expression's value? Other programs print between a command and its answer."""
    for end, shape in _SHAPES:
        if expression.endswith(end):
            return re.fullmatch(shape, text.strip("'\"")) is not None
    return True
