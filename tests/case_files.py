"""Files of cases for tests, and the cases of the catalog by their names."""

from __future__ import annotations

from functools import cache
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
