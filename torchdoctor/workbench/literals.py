"""Whether the literals of the templates are what programs really print: the recorded index, and its gaps."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping

from torchdoctor.catalog import RuleSet, template
from torchdoctor.catalog.page import readable
from torchdoctor.model import counted

PLACE = "literals.tsv"
BY_HAND = ("historic: ", "other program: ")
PRINTED = "printed: "  # NAME VERSION: the call that made the program print it
JOINED = "joined: "  # PIECE (NAME VERSION: FILE) + PIECE (NAME VERSION: FILE), which a program puts together
_HEAD = (
    "# The longest literal of every template, and a program that holds it (NAME VERSION: FILE), or by hand:\n"
    "# historic: which versions printed it, other program: which one; joined: its pieces, each with the\n"
    "# program that holds it; printed: the call that made a program print it.\n"
    "# benchmarks/find_literals.py and benchmarks/print_literals.py write what they find.\n"
)
_FOUND = re.compile(r"\S+ \d\S*: \S")
_PIECE = r".+ \(\S+ \d\S*: \S.*\)"
_JOINED = re.compile(rf"{JOINED}{_PIECE} \+ {_PIECE}")


def every_literal(rules: RuleSet) -> dict[str, tuple[str, ...]]:
    """The longest literal of each template -> ids of the rules that have it."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for rule in rules.rules():
        for match in rule.matches:
            for pattern in match.patterns:
                try:
                    literal = template.parse(readable(pattern.pattern)).literal
                except template.TemplateError:
                    continue  # a regular expression, which has no literal
                found[literal][rule.id] = None
    return {literal: tuple(ids) for literal, ids in found.items()}


def read_recorded(directory: str) -> dict[str, str]:
    """literal -> where it was found; {} where nothing is recorded."""
    try:
        with open(os.path.join(directory, PLACE), encoding="utf-8") as file:
            rows = [
                line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("# ")
            ]
    except OSError:
        return {}
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows}


def recorded_text(where: Mapping[str, str]) -> str:
    """The recorded form, in order of the literals."""
    return _HEAD + "".join(f"{literal}\t{where[literal]}\n" for literal in sorted(where))


def problems(directory: str, rules: RuleSet) -> list[str]:
    """One line for each literal that is not recorded, is recorded without a place, or is no template's."""
    recorded = read_recorded(directory)
    if not recorded:
        return []
    current = every_literal(rules)
    found = [
        f"{PLACE}: {literal!r} of {', '.join(ids)} is not recorded; "
        "benchmarks/find_literals.py looks for it, else say which program prints it"
        for literal, ids in current.items()
        if literal not in recorded
    ]
    for literal, where in recorded.items():
        if literal not in current:
            found.append(f"{PLACE}: {literal!r} is the literal of no template; drop the line")
        elif where.startswith(JOINED):
            if not _JOINED.fullmatch(where):
                found.append(
                    f"{PLACE}: {literal!r} needs {JOINED}PIECE (NAME VERSION: FILE) + "
                    "PIECE (NAME VERSION: FILE)"
                )
        elif not _FOUND.match(where) and not (
            where.startswith((*BY_HAND, PRINTED)) and where.partition(": ")[2].strip()
        ):
            found.append(f"{PLACE}: {literal!r} needs NAME VERSION: FILE, or {' or '.join(BY_HAND)}and why")
    return found


def summary(directory: str, rules: RuleSet) -> str | None:
    """How many literals were found in a program."""
    recorded = read_recorded(directory)
    if not recorded:
        return None
    current = every_literal(rules)
    by_hand = sum(recorded.get(literal, "").startswith(BY_HAND) for literal in current)
    found = sum(literal in recorded for literal in current) - by_hand
    return f"{counted(len(current), 'literal')}: {found:,} found in a program, {by_hand:,} recorded by hand"
