"""All checks with their texts, and sources in every form that they come in."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path

import pytest
from lint.spellings import TEXTS, Spelling, all_spellings, spellings
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.lint import page, registry, sources
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


# Inputs that are no sources, or no good ones: each is one finding, or a skip that is told


SOURCES_ALL = default_ids(True)
LOOP = (
    "import torch\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "for x in loader:\n    net(x).sum().backward()\n    opt.step()\n"
)


def found(raw: bytes, path: str = "x.py") -> list[tuple[str, int]]:
    result = examine(sources.of(raw, path), SOURCES_ALL)
    assert result.faults == ()
    return [(one.check, one.line) for one in result.findings]


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"x = 1\ny = '\xff\xfe'\n", 2),
        (b"print 'hello'\n", 1),
        (b"try:\n    pass\nexcept Exception, e:\n    exec 'x'\n", 3),
        (b"x = 1\x00\n", 1),
        (b"# -*- coding: no-such-codec -*-\n", 1),
        ("x = '\N{GREEK SMALL LETTER ALPHA}'\n".encode("utf-16"), 1),
        (b"x = (" + b"(" * 5000 + b")" * 5000 + b")\n", 1),
        (b"def f(:\n", 1),
        (b"\tx = 1\n        y = 2\n", 1),
    ],
)
def test_no_python(raw: bytes, line: int) -> None:
    ((check, at),) = found(raw)
    assert check == "syntax-error"
    assert at in (1, line)


@pytest.mark.parametrize(
    "expression",
    [
        "-" * 3000 + "1",
        " + ".join(["x"] * 20000),
        "f(" * 80 + "1" + ")" * 80,
        "a" + ".b" * 5000,
        "a" + "[0]" * 3000,
    ],
)
def test_deep_nesting(expression: str) -> None:
    text = f"import torch\nx = {expression}\nloss = x\nloss.backward()\n"
    result = examine(sources.of(text.encode(), "x.py"), SOURCES_ALL)
    assert result.faults == ()
    assert len(result.findings) <= 1


def test_deep_blocks() -> None:
    text = "import torch\n" + "".join(f"{' ' * at}if x:\n" for at in range(90)) + " " * 90 + "pass\n"
    assert found(text.encode()) == []


def test_a_big_file_is_skipped_and_told(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "big.py"
    with path.open("wb") as file:
        file.truncate(50 << 20)
    assert "skipped, more than 2 MiB" in " ".join(printed(["lint", str(tmp_path)]).split())


def test_links_that_lead_nowhere_or_in_a_circle(tmp_path: Path, printed: Printed) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "no.py")
    (tmp_path / "c.py").write_text(LOOP)
    data = json.loads(printed(["lint", "--format", "json", str(tmp_path)], 1))
    assert len(data["diagnoses"]) == 1
    assert len(data["notes"]) == 3
    assert main(["lint", str(tmp_path / "a.py")]) == 2


def test_pipes_and_folders_named_like_sources(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "p.py")
    (tmp_path / "d.py").mkdir()
    assert main(["lint", str(tmp_path)]) == 0
    assert main(["lint", str(tmp_path / "p.py")]) == 2  # nobody writes to it, and nobody waits


def notebook(*cells: object) -> bytes:
    made = [{"cell_type": "code", "source": cell} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# for x in"}, *made]}).encode()


def test_a_notebook_is_one_program(tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(
        notebook(
            ["%matplotlib inline\n", "!pip install torch\n", "import torch\n", "files = !ls"],
            "opt = torch.optim.SGD(net.parameters(), 0.1)\nopt?",
            "%%bash\nfor x in a",
            "%%time\nfor x in loader:\n    net(x).sum().backward()\n    opt.step()\n    await y",
        )
    )
    assert "n.ipynb:cell 5:4:5: Gradients are never" in " ".join(printed(["lint", str(path)], 1).split())
    assert main(["lint", "--fix", str(path)]) == 1  # notebooks are left as they are


def test_a_cell_that_does_not_parse_hides_no_other() -> None:
    raw = notebook("import torch\nopt = torch.optim.SGD(p, 0.1)", "for x in\n", LOOP.partition("\n")[2])
    assert [check for check, _ in found(raw, "n.ipynb")] == ["syntax-error", "zero-grad-missing"]


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", b"{", b'{"cells": 3}', b'{"cells": [3]}', b"[" * 100000, b"\xff", b"null"]
)
def test_no_notebook(raw: bytes) -> None:
    assert [check for check, _ in found(raw, "n.ipynb")] == ["syntax-error"]


def test_modes_at_import_of_a_notebook_are_its_own() -> None:
    text = "import torch\ntorch.set_grad_enabled(False)\ndef f():\n    pass\n"
    assert found(notebook(text), "n.ipynb") == []
    assert [check for check, _ in found(text.encode())] == ["grad-mode-at-import"]
