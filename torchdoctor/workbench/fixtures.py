"""The labelled inputs of a fixtures tree: what stands in each folder and what is expected of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchdoctor.catalog.loader import rule_files
from torchdoctor.model import TorchdoctorError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ORIGINS = ("captured", "reported", "reconstructed")
NONE = "none"
UNFINISHED = "TODO"  # what a stub holds where a person has something to say
# folders beside those named after a rule
SPECIAL = ("near", "clean", "unknown", "machines", "variants")
_KEYS = frozenset(
    {
        "rule",
        "also",
        "origin",
        "torch",
        "platform",
        "standing",
        "rank",
        "user_frame",
        "note",
        "suspect",
        "facts",
    }
)


class FixtureError(TorchdoctorError):
    """A fixture that cannot be read; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """One labelled input; ``group`` is its folder, ``of`` the rule it is a positive or near miss of.

    ``unfinished`` says that its label still holds a mark of a stub.
    """

    path: str
    group: str
    of: str
    name: str
    rule: str
    also: tuple[str, ...]
    origin: str
    standing: str | None
    rank: int | None
    user_frame: str | None
    suspect: str | None
    unfinished: bool = False

    @property
    def input(self) -> str:
        return os.path.join(self.path, "input.txt")

    @property
    def machine(self) -> str | None:
        """The recording of the machine that the input comes from, where there is one."""
        path = os.path.join(self.path, "machine.json")
        return path if os.path.exists(path) else None


def _about(path: str) -> dict[str, Any]:
    about = os.path.join(path, "about.toml")
    try:
        with open(about, "rb") as file:
            table: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        raise FixtureError(
            f"{about}: missing; it says which rule is expected and where the input comes from"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FixtureError(f"{about}: {error}") from error
    for key in table:
        if key not in _KEYS:
            raise FixtureError(f'{about}: unknown key "{key}"; known: {", ".join(sorted(_KEYS))}')
    if table.get("origin") not in ORIGINS:
        raise FixtureError(f"{about}: origin must be one of {', '.join(ORIGINS)}")
    if not isinstance(table.get("rule"), str):
        raise FixtureError(f'{about}: key "rule" is missing; "{NONE}" where no diagnosis is right')
    return table


def _folders(path: str) -> list[str]:
    names = (name for name in os.listdir(path) if not name.startswith("."))
    return sorted(name for name in names if os.path.isdir(os.path.join(path, name)))


def read_fixture(path: str, group: str, of: str) -> Fixture:
    """One fixture folder. Raises FixtureError."""
    table = _about(path)
    if not os.path.exists(os.path.join(path, "input.txt")):
        raise FixtureError(f"{path}/input.txt: missing")
    return Fixture(
        path=path,
        group=group,
        of=of,
        name=os.path.relpath(path, os.path.dirname(os.path.dirname(path))).replace(os.sep, "/"),
        rule=table["rule"],
        also=tuple(table.get("also", ())),
        origin=table["origin"],
        standing=table.get("standing"),
        rank=table.get("rank"),
        user_frame=table.get("user_frame") or None,
        suspect=table.get("suspect"),
        unfinished=any(isinstance(value, str) and UNFINISHED in value for value in table.values()),
    )


def _cases(root: str) -> Iterator[tuple[str, str, str]]:
    """Path, group and rule of every fixture folder, in order."""
    for group in _folders(root):
        folder = os.path.join(root, group)
        if group == "machines":
            continue
        if group in ("near", "variants"):
            for of in _folders(folder):
                for case in _folders(os.path.join(folder, of)):
                    yield os.path.join(folder, of, case), group, of
        else:
            for case in _folders(folder):
                yield os.path.join(folder, case), group, "" if group in SPECIAL else group


def beside(rules: str) -> str | None:
    """The fixtures tree that belongs to a rules directory: ``fixtures`` in the same folder.

    None where there is no such folder, or where it holds something else: none of its folders is named after
    a rule of the directory.
    """
    root = os.path.join(os.path.dirname(os.path.abspath(rules)), "fixtures")
    if not os.path.isdir(root) or not os.path.isdir(rules):
        return None
    named = {os.path.splitext(os.path.basename(path))[0] for path in rule_files(rules)}
    return root if named.intersection(_folders(root)) else None


def walk(root: str) -> Iterator[Fixture]:
    """All fixtures of a tree, in order. Raises FixtureError at the first that cannot be read."""
    for path, group, of in _cases(root):
        yield read_fixture(path, group, of)


def read_all(root: str) -> tuple[list[Fixture], list[str]]:
    """The fixtures of a tree that can be read, in order, and one line for each that cannot."""
    fixtures: list[Fixture] = []
    problems: list[str] = []
    for path, group, of in _cases(root):
        try:
            fixtures.append(read_fixture(path, group, of))
        except FixtureError as error:
            problems.append(str(error))
    return fixtures, problems
