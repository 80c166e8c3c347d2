"""What must hold of a rule's advice: short, an action first, and commands that run as they are printed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

from torchdoctor.catalog.rule import RuleText
from torchdoctor.typed import is_python

MOST_WHY = 60  # words
MOST_FIRST = 160  # characters, before the values are filled in
_HOLE = re.compile(r"\{[a-z_]+\.\w+\}")
# closed classes of words, with which no order begins, and verbs that only look
_NO_ACTION = re.compile(
    r"(?:[{'\"\d(]|(?:If|The|An?|It|Its|This|That|These|There|In|On|At|For|From|With|Without|Where|When"
    r"|While|What|Which|Who|Some|Both|Each|Every|No|One|Two|Or|And|Else|Otherwise|Under|After|Until|Last"
    r"|See|Look at|Look whether|Mend)\b)"
)
# closed classes of words by which a sentence goes on from the one before it; above a check stands none
_GOES_ON = re.compile(
    r"(?:And|Or|But|Nor|Yet|So|Then|Also|Too|Else|Otherwise|It|They|Them|This|That|These|Those)\b"
)
# what stands for something that the reader would have to fill in, or is no command at all
_PROSE = re.compile(r"…|\.\.\.|(?:^|\s)#(?:\s|$)|<[a-z]+>|(?:^|[;&|] *)[a-z]+(?: [a-z]+){6}")
# a program of its own cannot show what another one holds
_SHOWS_NOTHING = re.compile(
    r"python\S* -c .*(?:memory_summary|memory_snapshot|_dump_snapshot|memory_allocated)"
)


def problems(words: RuleText) -> Iterator[str]:
    """Every fault of the advice of one rule, in words."""
    count = len(words.why.split())
    if count > MOST_WHY:
        yield f"why has {count} words, more than {MOST_WHY}; what goes beyond is for `more`"
    if words.fixes:
        first = words.fixes[0].fix.do
        if len(first) > MOST_FIRST:
            yield f"the first fix has {len(first)} characters, more than {MOST_FIRST}"
        if _NO_ACTION.match(first):
            yield f"the first fix is no action on a thing that the reader has: {first[:40]!r}"
    if words.decide_note and not words.decide_note.rstrip().endswith((".", "?", "!")):
        yield "decide_note is a sentence"
    if words.decide_note and _GOES_ON.match(words.decide_note):
        yield f"decide_note makes no sense alone, it goes on from another: {words.decide_note[:40]!r}"
    for name, command in (
        ("decide_with", words.decide_with),
        *((f"run of fix {number}", item.fix.run) for number, item in enumerate(words.fixes, start=1)),
    ):
        fault = command and fault_of(command)
        if fault:
            yield f"{name} {fault}: {command}"


def fault_of(command: str) -> str | None:
    """Why a command does not run as it is printed; None when it parses. Starts nothing."""
    filled = _HOLE.sub("x7", command)
    if _PROSE.search(filled):
        return "holds prose or a gap, which belong into do or decide_note"
    if _SHOWS_NOTHING.search(filled):
        return "starts a new process, which cannot show what the failed one held"
    if is_python(filled):
        return _python(filled)
    try:
        parts = shlex.split(filled)
    except ValueError as error:
        return f"is no shell command ({error})"
    for at in range(len(parts) - 2):
        code = parts[at + 2]
        # a command within $(…) ends in its bracket
        if parts[at].endswith("python") and parts[at + 1] == "-c" and _python(code):
            fault = _python(code.removesuffix(")"))
            if fault:
                return fault
    return _requirements(parts)


def _python(code: str) -> str | None:
    try:
        ast.parse(code)
    except SyntaxError as error:
        return f"is no Python ({error.msg})"
    return None


def _requirements(parts: list[str]) -> str | None:
    """Requirements behind ``pip install``, up to the end of that command."""
    from packaging.requirements import InvalidRequirement, Requirement

    for at, part in enumerate(parts[:-2]):
        if part != "pip" or parts[at + 1] != "install":
            continue
        skip = False
        for word in parts[at + 2 :]:
            if word in ("&&", "||", ";", "|", "pip") or word.endswith(";"):
                break
            if skip or word.startswith("-"):
                skip = not skip and word in (
                    "--index-url",
                    "--extra-index-url",
                    "--no-binary",
                    "--python",
                    "-r",
                    "-e",
                )
                continue
            if not re.fullmatch(r"[A-Za-z][\w.\[\],<>=!~+ -]*", word):
                continue  # a path, or what another command prints
            try:
                Requirement(word.replace("=x7", "=7").replace("x7", "7") if "=" in word else word)
            except InvalidRequirement:
                return f"asks pip for {word!r}, which is no requirement"
    return None
