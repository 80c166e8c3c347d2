"""Three hundred secrets and names, each alone in a line, drawn from the formats that their issuers document.

Written before the redactor knew of them, and from no rule file: the sources stand beside the formats. A hole
between « and » holds what nobody else may read: a class of characters and how many of it (``w36``), or a
kind of name. Everything outside of holes may stay.
"""

from __future__ import annotations

import json
import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

_CLASSES = {
    "w": string.ascii_letters + string.digits,
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
}
_CODE_LIKE = "$(</>{&!#%*^)"
_PEOPLE = (
    "mkowalska", "j.doerr42", "xchen7", "priya_r", "tobias-w", "aokafor", "lindqvist", "rsato", "gferrari",
    "zhangwei",
)  # fmt: skip
_HOSTS = (
    "gpu-17", "dgx-a100-04", "r7i3n2", "nid001234", "cn0412", "hgx07", "tau-gpu3", "node-b12", "jwb0097",
    "nautilus",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A format: what it is, where its issuer describes it, and lines in which it appears."""

    kind: str
    source: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A line of a log and the pieces of it that nobody else may read."""

    kind: str
    line: str
    pieces: tuple[str, ...]

    def left(self, shown: str) -> tuple[str, ...]:
        """The pieces of which six characters in a row, or all where they are fewer, are still to be read."""
        return tuple(
            piece
            for piece in self.pieces
            if any(piece[at : at + 6] in shown for at in range(max(1, len(piece) - 5)))
        )


def planted(count: int = 300, seed: int = 2026) -> list[Planted]:
    """``count`` lines, every format in turn, the same for the same seed."""
    lot = random.Random(seed)
    rounds: list[Planted] = []
    number = 0
    while len(rounds) < count:
        for form in FORMS:
            if number < len(form.lines) or number >= _MOST_LINES:
                rounds.append(_filled(form.kind, form.lines[number % len(form.lines)], lot))
        number += 1
    return rounds[:count]


def _filled(kind: str, line: str, lot: random.Random) -> Planted:
    pieces: list[str] = []
    text: list[str] = []
    for at, part in enumerate(re.split(r"«(.+?)»", line)):
        made = _hole(part, lot) if at % 2 else part
        text.append(made)
        if at % 2:
            pieces.append(made)
    return Planted(kind, "".join(text), tuple(pieces))


def _hole(name: str, lot: random.Random) -> str:
    if name == "user":
        return lot.choice(_PEOPLE)
    if name == "host":
        return lot.choice(_HOSTS)
    if name == "ipv4":
        return ".".join(map(str, (lot.choice((3, 18, 34, 52, 129, 141)), *lot.choices(range(1, 255), k=3))))
    if name == "private":
        return f"10.{lot.randint(0, 255)}.{lot.randint(0, 255)}.{lot.randint(1, 254)}"
    if name == "dashed":
        return f"10-{lot.randint(0, 255)}-{lot.randint(0, 255)}-{lot.randint(1, 254)}"
    if name == "person":
        return lot.choice(("Marta Kowalska", "Jan Doerr", "Xin Chen", "Priya Raman", "Tobias Wendt"))
    if name == "uuid":
        return "-".join(_some("x", length, lot) for length in (8, 4, 4, 4, 12))
    if name == "codelike":
        marks = lot.sample(_CODE_LIKE, 3)
        return "".join(_some("w", 3, lot) + mark for mark in marks) + _some("w", 2, lot)
    if name == "marked":
        return lot.choice("$(</") + _some("w", 4, lot) + lot.choice("(<&!") + _some("w", 4, lot)
    if name == "password":
        return _some("w", 6, lot) + lot.choice("!-_.+") + _some("w", 4, lot)
    return "".join(_some(part[0], int(part[1:]), lot) for part in name.split("+"))


def _some(kind: str, length: int, lot: random.Random) -> str:
    """Characters of a class; a long run holds a digit, as what is drawn at random practically always does."""
    alphabet = _CLASSES[kind]
    while True:
        text = "".join(lot.choice(alphabet) for _ in range(length))
        if length < 16 or any(char.isdigit() for char in text):
            return text


FORMS = tuple(
    Form(kind, source, tuple(lines))
    for kind, source, *lines in map(
        json.loads, Path(__file__).with_name("issuers.jsonl").read_text(encoding="utf-8").splitlines()
    )
)
_MOST_LINES = max(len(form.lines) for form in FORMS)
