"""The fixtures of a check: short sources that have its pitfall, and some that only look like it.

In ``spellings.cases`` those of a check stand behind the line ``=== ID``. Each begins with a line ``#: bad
WHAT`` or ``#: good WHAT``; what follows ``#: prelude`` stands before each of them, and ``# <-`` marks the
lines on which the check finds something.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "spellings.cases"


@dataclass(frozen=True)
class Spelling:
    check: str
    kind: str  # bad or good
    what: str
    text: str

    @property
    def marked(self) -> set[int]:
        return {at for at, line in enumerate(self.text.split("\n"), 1) if line.endswith("# <-")}

    def __str__(self) -> str:
        return f"{self.check}: {self.kind} {self.what}"


_PARTS = ("\n" + CASES.read_text(encoding="utf-8")).split("\n=== ")[1:]
TEXTS = {name: f"{text}\n" for name, _, text in (part.partition("\n") for part in _PARTS)}  # by check


def spellings(check: str) -> list[Spelling]:
    prelude = ""
    found: list[Spelling] = []
    for part in ("\n" + TEXTS[check]).split("\n#: ")[1:]:
        head, _, text = part.partition("\n")
        kind, _, what = head.partition(" ")
        if kind == "prelude":
            prelude = text
        else:
            assert kind in ("bad", "good"), head
            found.append(Spelling(check, kind, what, f"{prelude}\n{text}\n"))
    return found


def all_spellings() -> list[Spelling]:
    return [one for check in TEXTS for one in spellings(check)]
