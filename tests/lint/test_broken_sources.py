"""Sources that are cut, mixed and misspelt: no check raises, whatever the tree looks like."""

from __future__ import annotations

import random

import pytest
from lint.spellings import all_spellings

from torchdoctor.lint.examine import examine
from torchdoctor.lint.registry import default_ids
from torchdoctor.lint.repair import repaired
from torchdoctor.lint.sources import Source

ALL = default_ids(True)
TEXTS = [one.text for one in all_spellings()]
LINES = [line for text in TEXTS for line in text.split("\n") if line.strip()]
WORDS = sorted({word for line in LINES for word in line.replace("(", " ").replace(")", " ").split()})


def broken(seed: int) -> str:
    """A fixture with a few lines lost, doubled, moved, or taken from others, and a few words exchanged."""
    draw = random.Random(seed)
    lines = draw.choice(TEXTS).split("\n")
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
            lines[at:at] = draw.choice(TEXTS).split("\n")
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
    result = examine(Source("x.py", "\n".join(TEXTS)), ALL)
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
