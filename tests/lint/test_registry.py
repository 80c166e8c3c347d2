"""Every check of the catalog is there, with texts and cases, with the group and cause of the catalog."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from lint.spellings import TEXTS, spellings

from torchdoctor.lint import page, registry
from torchdoctor.lint.finding import Check

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CATALOG = {
    row["id"]: row
    for row in csv.DictReader((HERE / "catalog.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
}
CHECKS = registry.all_checks()
_ids = [*CATALOG]


def test_all_of_the_catalog_and_nothing_else() -> None:
    assert set(CHECKS) == {*CATALOG, registry.SYNTAX_ERROR}
    assert set(TEXTS) == set(CATALOG)


@pytest.mark.parametrize("id_", _ids)
def test_group_and_cause(id_: str) -> None:
    assert str(CHECKS[id_].group) == CATALOG[id_]["group"]
    assert CHECKS[id_].cause == (CATALOG[id_]["cause"] or "")


def test_causes_are_rules() -> None:
    known = set((ROOT / "rules" / "ids.txt").read_text().split())
    assert {one.cause for one in CHECKS.values() if one.cause} <= known


@pytest.mark.parametrize("id_", _ids)
def test_cases(id_: str) -> None:
    found = spellings(id_)
    assert sum(one.kind == "bad" for one in found) >= 5
    assert sum(one.kind == "good" for one in found) >= 2
    assert len({one.text for one in found}) == len(found)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda one: one.id)
def test_texts(check: Check) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", check.id)
    assert 20 <= len(check.title) <= 90
    assert not check.title.endswith(".")
    assert 15 <= len(check.why.split()) <= 60
    assert check.why.rstrip().endswith((".", ")"))
    assert 1 <= len(check.fix) <= 3
    assert all(one == " ".join(one.split()) for one in check.fix)
    assert check.id in page.in_text(check, 80)
    assert max(map(len, page.in_text(check, 80).splitlines())) <= 90


@pytest.mark.parametrize("id_", [one.id for one in CHECKS.values() if one.fixable])
def test_what_says_that_it_can_be_repaired_is(id_: str) -> None:
    from torchdoctor.lint.repair import repaired
    from torchdoctor.lint.sources import Source

    mended = 0
    for one in spellings(id_):
        source, result = repaired(Source("x.py", one.text), frozenset([id_]))
        mended += one.kind == "bad" and not result.findings
        if one.kind == "good":
            assert source.text == one.text
        taken = set(one.text.split("\n")) - set(source.text.split("\n"))
        assert {line for line in taken if not line.endswith("# <-")} == set()
    assert mended >= 3
