"""Labelled inputs in the form of folders, ``<id>/<case>/input.txt`` with ``about.toml``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from torchdoctor.workbench.case import CLEAN, NONE, ORIGINS, UNKNOWN, UNRECOGNISED, Case, CaseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SHARED = ("variants", "near")  # folders that hold a folder for each rule
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
    }
)


def read_folders(root: str) -> tuple[list[Case], list[str]]:
    """The cases of a tree of folders that can be read, in order, and one line for each that cannot."""
    cases: list[Case] = []
    problems: list[str] = []
    seen: set[str] = set()
    for path, of, near in _places(root):
        try:
            case = _case(path, of, near, seen)
        except CaseError as error:
            problems.append(str(error))
        else:
            seen.add(case.id)
            cases.append(case)
    return cases, problems


def _places(root: str) -> Iterator[tuple[str, str, bool]]:
    """Path and file of every case, and whether it is a near miss; positives first."""
    groups = _folders(root)
    for group in groups:
        if group not in (*_SHARED, "machines", "big", "samples"):
            for case in _folders(os.path.join(root, group)):
                yield os.path.join(root, group, case), group, False
    for group in _SHARED:
        if group in groups:
            for of in _folders(os.path.join(root, group)):
                for case in _folders(os.path.join(root, group, of)):
                    path = os.path.join(root, group, of, case)
                    yield path, CLEAN if of == NONE else of, group == "near"


def _folders(path: str) -> list[str]:
    names = (name for name in os.listdir(path) if not name.startswith("."))
    return sorted(name for name in names if os.path.isdir(os.path.join(path, name)))


def _case(path: str, of: str, near: bool, seen: set[str]) -> Case:
    table = _about(path)
    text = os.path.join(path, "input.txt")
    if not os.path.exists(text):
        raise CaseError(f"{text}: missing")
    name = os.path.basename(path)
    if f"{of}/{name}" in seen:
        name += "-near" if near else "-variant"
    if of == CLEAN and table.get("also"):  # where a rule may answer after all, it is one of that rule's
        of = table["also"][0]
    rule = UNRECOGNISED if of == UNKNOWN and table["rule"] == NONE else table["rule"]
    return Case(
        name=name,
        rule=rule,
        of=of,
        origin=table["origin"],
        also=tuple(table.get("also", ())),
        standing=table.get("standing"),
        rank=table.get("rank"),
        suspect=table.get("suspect"),
        frame=table.get("user_frame") or None,
        torch=table.get("torch") or None,
        note=table.get("note", ""),
        path=text,
        place=path,
    )


def _about(path: str) -> dict[str, Any]:
    about = os.path.join(path, "about.toml")
    try:
        with open(about, "rb") as file:
            table: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        raise CaseError(
            f"{about}: missing; it says which rule is expected and where the input comes from"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"{about}: {error}") from error
    for key in table:
        if key not in _KEYS:
            raise CaseError(f'{about}: unknown key "{key}"; known: {", ".join(sorted(_KEYS))}')
    if table.get("origin") not in ORIGINS:
        raise CaseError(f"{about}: origin must be one of {', '.join(ORIGINS)}")
    if not isinstance(table.get("rule"), str):
        raise CaseError(f'{about}: key "rule" is missing; "{NONE}" where no diagnosis is right')
    return table
