"""Files of cases for tests, tables of cases, and the cases of the catalog by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

from torchdoctor.workbench.blocks import block
from torchdoctor.workbench.case import Case
from torchdoctor.workbench.cases import read_all

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def put(root: Path, case: str, rule: str, text: str, origin: str = "reconstructed", **label: object) -> None:
    """Add a case, called ID/NAME, to the tree."""
    of, _, name = case.partition("/")
    made = Case(name, rule, of=of, origin=origin, data=text.encode(), **label)  # type: ignore[arg-type]
    root.mkdir(parents=True, exist_ok=True)
    with open(root / f"{of}.cases", "ab") as file:
        file.write(block(made))


@cache
def catalogued() -> dict[str, Case]:
    """All cases of the catalog by ID/NAME."""
    cases, problems = read_all(str(FIXTURES))
    assert problems == []
    return {case.id: case for case in cases}


def case_text(case: str) -> str:
    """The input of a case of the catalog, called ID/NAME."""
    return catalogued()[case].input().decode("utf-8", "replace")


def table(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each ``=== HEAD`` of a file: its head, the lines up to ``---``, and those behind it but empty ones."""
    for part in f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")[1:]:
        head, *lines = part.split("\n")
        given = list(takewhile(lambda line: line != "---", lines))
        yield head, given, [line for line in lines[len(given) + 1 :] if line]


def rewrite(path: Path, answer: Callable[[str, list[str]], list[str]]) -> None:
    """Record what is answered now to each case of a table, to be reviewed as a diff."""
    parts = [(head, given, answer(head, given)) for head, given, _ in table(path)]
    blocks = ("\n".join([f"=== {head}", *given, "---", *told]) for head, given, told in parts)
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
