"""Retired rules: they load, match nothing, and nothing may lead to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.catalog.page import gather
from torchdoctor.catalog.pages import in_text
from torchdoctor.catalog.reader import CatalogError
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text

RULE = """id = "{id}"
family = "memory"
severity = "fatal"
role = "cause"
title = "{id} happened"
why = "Because."
{more}
[[match]]
text = "the pool of {id} is exhausted"
"""
RETIRED = 'retired = "0.4: two causes in one"\nreplaced_by = ["new-one"]'
LOG = (
    'Traceback (most recent call last):\n  File "/home/me/a.py", line 1, in f\n    g()\n'
    "RuntimeError: the pool of {} is exhausted\n"
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "rules" / "memory").mkdir(parents=True)
    write(tmp_path / "rules", "new-one")
    write(tmp_path / "rules", "old-one", RETIRED)
    return tmp_path / "rules"


def write(root: Path, rule_id: str, more: str = "") -> None:
    (root / "memory" / f"{rule_id}.toml").write_text(RULE.format(id=rule_id, more=more), encoding="utf-8")


def test_it_loads_and_never_matches(tree: Path) -> None:
    rules = load(str(tree))
    assert rules.retired == {"old-one": ("new-one",)}
    assert rules.rule("old-one").matches == ()
    for name, expected in (("new-one", ["new-one"]), ("old-one", [])):
        report = diagnose(read_text(LOG.format(name)), FactBook(None), rules)
        assert [item.rule for item in report.diagnoses] == expected


def test_its_page_names_the_rule_in_its_place(tree: Path) -> None:
    page = in_text(gather(load(str(tree)), "old-one"))
    assert "Retired: 0.4: two causes in one. Its failures are told by new-one." in page


@pytest.mark.parametrize("key", ["leads_to", "refines"])
@pytest.mark.parametrize("name", ["old-one", "@gone"])
def test_nothing_names_it(tree: Path, key: str, name: str) -> None:
    (tree / "groups.toml").write_text('gone = ["old-one"]\n', encoding="utf-8")
    write(tree, "third", f'{key} = ["{name}"]')
    with pytest.raises(CatalogError) as error:
        load(str(tree))
    assert error.value.problems == (
        f'memory/third.toml: {key} names the retired rule "old-one"; name new-one',
    )


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('replaced_by = ["new-one"]', "replaced_by stands only beside retired"),
        ('retired = "0.4: gone"\nreplaced_by = ["new-on"]', 'unknown rule "new-on"; did you mean "new-one"'),
        ('retired = "0.4: gone"\nreplaced_by = ["old-one"]', 'replaced_by names the retired rule "old-one"'),
        ("retired = true", "retired must be text"),
    ],
)
def test_faulty_retirements(tree: Path, more: str, complaint: str) -> None:
    write(tree, "third", more)
    with pytest.raises(CatalogError, match=complaint):
        load(str(tree))
