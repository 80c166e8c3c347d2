"""Every check is there, finds its pitfall in every spelling, and raises on no broken source."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest
from lint.spellings import TEXTS, Spelling, all_spellings, spellings

from torchdoctor.lint import page, registry
from torchdoctor.lint.examine import examine
from torchdoctor.lint.finding import Check
from torchdoctor.lint.registry import default_ids
from torchdoctor.lint.repair import repaired
from torchdoctor.lint.sources import Source

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


# Each pitfall in the spellings of the fixtures, on the marked lines and nowhere else
@pytest.mark.parametrize("spelling", all_spellings(), ids=str)
def test_found_where_it_is(spelling: Spelling) -> None:
    result = examine(Source("x.py", spelling.text), frozenset([spelling.check, "syntax-error"]))
    assert result.faults == ()
    assert {one.line for one in result.findings} == spelling.marked
    assert {one.check for one in result.findings} <= {spelling.check}
    assert bool(spelling.marked) == (spelling.kind == "bad")


# Sources that are cut, mixed and misspelt: no check raises, whatever the tree looks like
ALL = default_ids(True)

WHOLE = [one.text for one in all_spellings()]

LINES = [line for text in WHOLE for line in text.split("\n") if line.strip()]

WORDS = sorted({word for line in LINES for word in line.replace("(", " ").replace(")", " ").split()})


def broken(seed: int) -> str:
    """A fixture with a few lines lost, doubled, moved, or taken from others, and a few words exchanged."""
    draw = random.Random(seed)
    lines = draw.choice(WHOLE).split("\n")
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(lines))
        kind = draw.randrange(6)
        if kind == 0:
            del lines[at]
            lines = lines or [""]
        elif kind == 1:
            lines.insert(at, draw.choice(LINES))
        elif kind == 2:
            lines[at] = lines[at].replace(draw.choice(WORDS), draw.choice(WORDS))
        elif kind == 3:
            lines[at] = "    " + lines[at]
        elif kind == 4:
            lines[at:at] = draw.choice(WHOLE).split("\n")
        else:
            lines[at] = lines[at][: draw.randint(0, len(lines[at]))]
    return "\n".join(lines)


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_no_check_raises(start: int) -> None:
    parsed = 0
    for seed in range(start, start + 100):
        text = broken(seed)
        result = examine(Source("x.py", text), ALL)
        assert result.faults == (), seed
        parsed += not any(one.check == "syntax-error" for one in result.findings)
    assert parsed > 20


def test_all_of_them_in_one_file() -> None:
    result = examine(Source("x.py", "\n".join(WHOLE)), ALL)
    assert result.faults == ()
    assert len(result.findings) > 100


@pytest.mark.parametrize("start", range(0, 100, 50))
def test_a_repair_leaves_a_source_that_parses(start: int) -> None:
    for seed in range(start, start + 50):
        before = Source("x.py", broken(seed))
        after, result = repaired(before, ALL)
        if after.text != before.text:
            assert not any(one.check == "syntax-error" for one in result.findings), seed


def test_names_that_stand_for_themselves() -> None:
    text = (
        "import torch\nfrom torch import nn\na = b\nb = a\nc = c\ndef f(x=None):\n    return f(x)\n"
        "class A(A):\n    def __init__(self):\n        self.a = self.a\nclass B(C): pass\nclass C(B): pass\n"
        "x = B()\nx.forward(1)\na.backward()\nc.step()\nf().backward()\nx, y = y, x\ny.backward()\n"
        "g = lambda: g()\ng().backward()\nmodel = model\nfor m in m:\n    m(m).backward()\n    m.step()\n"
    )
    assert examine(Source("x.py", text), ALL).faults == ()
