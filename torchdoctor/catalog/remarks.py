"""What stands beside the rules for readers: comments above the matches, examples out of the fixtures."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

EXAMPLES = "examples.json"


@dataclass(frozen=True, slots=True)
class Example:
    """Decisive lines of a labelled input, its name, and the rules that the rule's near misses belong to."""

    fixture: str = ""
    lines: tuple[str, ...] = ()
    near: tuple[str, ...] = ()


def rule_file(folders: Sequence[str], family: str, rule_id: str) -> str | None:
    """The file of a rule in the first of the folders that has it."""
    paths = (os.path.join(folder, family, f"{rule_id}.toml") for folder in folders)
    return next((path for path in paths if os.path.isfile(path)), None)


def versions(path: str | None) -> tuple[str, ...]:
    """The comment above each ``[[match]]`` of a rule file, in order; "" where there is none.

    () when there is no such file.
    """
    if path is None:
        return ()
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError:
        return ()
    found: list[str] = []
    for number, line in enumerate(lines):
        if line.partition("#")[0].strip() != "[[match]]":
            continue
        start = number
        while start and lines[start - 1].startswith("#"):
            start -= 1
        found.append(" ".join(item.lstrip("# ") for item in lines[start:number]))
    return tuple(found)


def read_examples(directory: str) -> dict[str, Example]:
    """The examples recorded beside the rules; {} where there are none."""
    try:
        with open(os.path.join(directory, EXAMPLES), encoding="utf-8") as file:
            table = json.load(file)
    except (OSError, ValueError):
        return {}
    return {
        rule_id: Example(row["fixture"], tuple(row["lines"]), tuple(row["near"]))
        for rule_id, row in table.items()
    }


def examples_text(examples: Mapping[str, Example]) -> str:
    """The recorded form of the examples, one rule after the other."""
    table = {
        rule_id: {"fixture": item.fixture, "lines": item.lines, "near": item.near}
        for rule_id, item in sorted(examples.items())
    }
    return json.dumps(table, ensure_ascii=False, indent=1) + "\n"
