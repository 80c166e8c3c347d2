"""What is looked for and where: the options of the call over those of ``pyproject.toml``."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from torchdoctor.lint import gitignore, registry
from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_KEYS = ("select", "ignore", "per-file-ignores", "exclude")


@record(frozen=True, slots=True)
class Settings(Record):
    """``ids`` are the checks to make. ``per_file`` holds patterns with the ids that their files are spared.
    ``problems`` are mistakes: what they say is left out, and told."""

    ids: frozenset[str] = frozenset()
    per_file: tuple[tuple[gitignore.Pattern, frozenset[str]], ...] = ()
    exclude: tuple[str, ...] = ()
    folder: str = ""
    problems: tuple[str, ...] = ()

    def ids_for(self, path: str) -> frozenset[str]:
        """The checks to make in one file."""
        if not self.per_file:
            return self.ids
        below = os.path.relpath(os.path.abspath(path), self.folder or ".").replace(os.sep, "/")
        spared: frozenset[str] = frozenset()
        for pattern, ids in self.per_file:
            if pattern.regex.fullmatch(below):
                spared |= ids
        return self.ids - spared


@record(frozen=True, slots=True)
class Asked(Record):
    """The options of the call."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    advice: bool = False


def nearest(name: str) -> str:
    """``no check "x"; did you mean "y"?``"""
    near = get_close_matches(name, registry.all_ids(), 1, 0.5)
    hint = f'; did you mean "{near[0]}"?' if near else "; torchdoctor lint --list names them"
    return f'no check "{name}"{hint}'


def settings(path: str, asked: Asked) -> Settings:
    """The settings for a path: those of the nearest ``pyproject.toml`` at or above it, and the call's.

    Never raises: what is wrong with them stands in ``problems``.
    """
    file, table, problems = _table(path)
    ids = set(registry.default_ids(asked.advice))
    select = _known(asked.select, "--select", problems)
    if not asked.select:
        select = _known(_strings(table, "select", file, problems), f"{file}: select", problems)
    if asked.select or select:
        ids = select
    ids -= _known(asked.ignore, "--ignore", problems)
    ids -= _known(_strings(table, "ignore", file, problems), f"{file}: ignore", problems)
    return Settings(
        frozenset(ids),
        _per_file(table, file, problems),
        (*asked.exclude, *_strings(table, "exclude", file, problems)),
        os.path.dirname(os.path.abspath(file)) if file else "",
        tuple(problems),
    )


def _known(names: Iterable[str], where: str, problems: list[str]) -> set[str]:
    known = registry.all_ids()
    found: set[str] = set()
    for name in names:
        if name in known:
            found.add(name)
        else:
            problems.append(f"{where}: {nearest(name)}")
    return found


def _table(path: str) -> tuple[str, dict[str, Any], list[str]]:
    at = os.path.abspath(path if path != "-" else ".")
    if not os.path.isdir(at):
        at = os.path.dirname(at)
    while True:
        file = os.path.join(at, "pyproject.toml")
        if os.path.isfile(file):
            break
        parent = os.path.dirname(at)
        if parent == at:
            return "", {}, []
        at = parent
    shown = os.path.relpath(file)
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(file, "rb") as opened:
            data = tomllib.load(opened)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return shown, {}, [f"{shown}: cannot be used: {error}"]
    table: Any = data
    for key in ("tool", "torchdoctor", "lint"):
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        return shown, {}, [f"{shown}: [tool.torchdoctor.lint] is no table"]
    problems = []
    for key in table:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1)
            hint = f'; did you mean "{near[0]}"?' if near else f"; there are: {', '.join(_KEYS)}"
            problems.append(f'{shown}: [tool.torchdoctor.lint] unknown key "{key}"{hint}')
    return shown, table, problems


def _strings(table: dict[str, Any], key: str, file: str, problems: list[str]) -> Sequence[str]:
    value = table.get(key, [])
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    problem = f"{file}: {key} is to be a list of strings"
    if problem not in problems:
        problems.append(problem)
    return ()


def _per_file(
    table: dict[str, Any], file: str, problems: list[str]
) -> tuple[tuple[gitignore.Pattern, frozenset[str]], ...]:
    value = table.get("per-file-ignores", {})
    if not isinstance(value, dict):
        problems.append(f"{file}: per-file-ignores is to be a table of patterns with lists of ids")
        return ()
    found = []
    for glob in value:
        pattern = gitignore.pattern(glob)
        ids = _known(_strings(value, glob, file, problems), f"{file}: per-file-ignores", problems)
        if pattern is not None:
            found.append((pattern, frozenset(ids)))
    return tuple(found)
