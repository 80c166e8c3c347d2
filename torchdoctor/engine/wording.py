"""The words of a rule with the values of the message in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from torchdoctor.engine.conditions import shown
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.finding import Occurrence
from torchdoctor.model import Fact, Fix, State
from torchdoctor.patterns import pattern, search
from torchdoctor.typed import is_python

COMMANDS = ("install.", "outputs.")  # namespaces of facts that are whole commands
_SIZE_SUFFIX = "_bytes"
# checkpoint['optimizer'] of optimizer.load_state_dict(checkpoint['optimizer'])
_LOADED = r"\.load_state_dict\(([A-Za-z_][\w.]{0,60}(?:\[(?:'[^'\]]{1,60}'|\"[^\"\]]{1,60}\")\]){0,3})\)"
_REQUIREMENT = r"[\w.]*[<>=~]=?[\w.]+"


@cache
def _placeholder() -> re.Pattern[str]:
    # dotted lower-case names only: braces of shells, dicts and format strings stay what they are
    return re.compile(r"\{([a-z_]+\.[A-Za-z_][A-Za-z0-9_]*)\}")


def names(text: str) -> tuple[str, ...]:
    """Facts that a text asks to be filled in."""
    return tuple(_placeholder().findall(text)) if "{" in text else ()


def asked(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The fact; where it is a whole command, as it is made for these surroundings."""
    if not name.startswith(COMMANDS):
        return ask(name)
    from torchdoctor.engine import install, outputs

    command = install.command if name.startswith("install.") else outputs.command
    return command(name, seen, ask)


def size(value: float) -> str:
    """Bytes as people read them: 512 B, 20.00 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1024 or unit == "PiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def duration(milliseconds: float) -> str:
    """Milliseconds as people read them: 900 ms, 90 s, 10 min, 2.5 h."""
    for unit, length, limit in (("ms", 1, 1_000), ("s", 1_000, 120_000), ("min", 60_000, 7_200_000)):
        if abs(milliseconds) < limit:
            return f"{round(milliseconds / length, 1):g} {unit}"
    return f"{round(milliseconds / 3_600_000, 1):g} h"


def _in_words(name: str, fact: Fact, sizes: frozenset[str]) -> str:
    if isinstance(fact.value, (int, float)) and (name.endswith(_SIZE_SUFFIX) or name in sizes):
        return size(fact.value)
    if isinstance(fact.value, (int, float)) and name.endswith("_ms"):
        return duration(fact.value)
    return shown(fact.value)


def first_known(name: str, readings: Sequence[Occurrence], facts: TextFacts) -> Fact:
    """The fact where it is known first, else where it is absent, else what the first place says of it."""
    told = [facts.fact(name, item.event, item.captures) for item in readings]
    sure = [fact for state in (State.KNOWN, State.ABSENT) for fact in told if fact.state is state]
    return sure[0] if sure else told[0]


def filled(fix: Fix, ask: Callable[[str], Fact], sizes: frozenset[str] = frozenset()) -> Fix | None:
    """The fix with its placeholders filled in; None when ``ask`` cannot tell one of them, or it is empty.

    ``sizes`` names the holes that hold bytes.
    """
    wanted = names(fix.do) + names(fix.run or "")
    if not wanted:
        return fix
    values: dict[str, str] = {}
    for name in wanted:
        fact = ask(name)
        if fact.state is not State.KNOWN:
            return None
        # a command is shown whole, whatever its length
        values[name] = str(fact.value) if name.startswith(COMMANDS) else _in_words(name, fact, sizes)
        if not values[name]:
            return None

    do = _placeholder().sub(lambda found: values[found.group(1)], fix.do)
    return Fix(do, _command(fix.run, values) if fix.run else None, fix.risk)


def _command(run: str, values: Mapping[str, str]) -> str | None:
    """A command is there to be pasted into a shell, and a log may hold anything.

    None when a value that needs quotes would stand inside quotes, which its own would end; the bounds of a
    requirement mean the same inside of any.
    """
    from shlex import quote

    pieces, done = [], 0
    for found in _placeholder().finditer(run):
        value = values[found.group(1)]
        quoted = value if found.group(1).startswith(COMMANDS) else quote(value)
        if quoted != value and _in_quotes(run[: found.start()]):
            if not re.fullmatch(_REQUIREMENT, value):
                return None
            quoted = value
        pieces += [run[done : found.start()], quoted]
        done = found.end()
    return "".join([*pieces, run[done:]])


def _in_quotes(before: str) -> bool:
    opened = ""
    escaped = False
    for character in before:
        if escaped:
            escaped = False
        elif character == "\\" and opened != "'":
            escaped = True
        elif opened:
            opened = "" if character == opened else opened
        elif character in "'\"":
            opened = character
    return bool(opened)


def stand_ins(statement: str, code: str) -> tuple[str, ...]:
    """The names of a line of Python that neither it, Python nor the reader's ``code`` defines, in order."""
    import ast
    import builtins

    try:
        tree = ast.parse(statement)
    except (SyntaxError, ValueError):
        return ()
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in used if isinstance(node.ctx, ast.Store)}
    own |= {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    own |= {"torch", *dir(builtins), *re.findall(r"\w+", code)}
    used.sort(key=lambda node: node.col_offset)
    return tuple(dict.fromkeys(node.id for node in used if node.id not in own))


def of_program(statement: str, code: str, model: str) -> str:
    """A line of Python with the reader's own names for loss, model and saved state, where they are told."""
    named = search(r"(?<![\w.])([A-Za-z_][\w.]{0,60})\.backward\(", code, ".backward(")
    if named is not None:
        statement = re.sub(r"(?<![\w.])loss\b(?!=)", named[1], statement)
    loaded = pattern(_LOADED).findall(code) if "saved" in statement else []
    if len(loaded) == 1:
        statement = pattern(r"(?<![\w.])saved\b").sub(lambda _: loaded[0], statement)
    return re.sub(r"(?<![\w.])model(?=\.)", model, statement) if model else statement


# what rules write in commands of the shell for a thing that only the reader knows
_BLANKS = (
    r"(?<![\w$.-])(FILE|PACKAGE|PID|MAIN_PID|WORKER_PID|NODE|FIRST_NODE|MODEL|MODEL_FILE|GPU|JOBID|POD|CONTAINER"
    r"|IMAGE|MOUNT|SYMBOL|TAG|OLDER_VERSION|YOUR_PACKAGE|YOUR_MODULE|URL_FROM_THE_MESSAGE|PATH_OF_THE_LIBRARY|train\.py)(?!=|\w)"
)
_PATTERN_OF_GREP = r"\b(?:grep|findstr)(?: -{1,2}[\w-]+| /\w)* (?:'[^']*'|\"[^\"]*\"|\S+)"


def to_put_in(command: str | None, said: str, code: str) -> str:
    """A sentence on the names in a command that the reader replaces by his own; "" where there are none.

    ``said`` and ``code`` are what is told beside it and the line of the program: a name in them is known.
    """
    if not command:
        return ""
    if is_python(command):
        names = stand_ins(command, code)
    else:
        blanks = dict.fromkeys(re.findall(_BLANKS, re.sub(_PATTERN_OF_GREP, "", command)))
        names = tuple(name for name in blanks if not re.search(rf"\b{name}\b", said))
    if not names:
        return ""
    *most, last = names
    named = f"{', '.join(most)} and {last}" if most else last
    return f"Put your own in place of {named}."
