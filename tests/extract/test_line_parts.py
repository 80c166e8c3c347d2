"""Which part of its line an exception of Python is about."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event
from torchdoctor.intake.transcript import read_text

HEAD = 'Traceback (most recent call last):\n  File "/srv/own/t.py", line 7, in turn\n    '


def facts(line: str, message: str) -> dict[str, object]:
    transcript = read_text(f"{HEAD}{line}\n{message}\n")
    event = next(one for one in transcript.events if one.type)
    return {one.name: one.value for one in of_event("line", event, transcript) if one.value is not None}


@pytest.mark.parametrize(
    ("line", "message", "found"),
    [
        ("self.a.b(3)", "AttributeError: 'NoneType' object has no attribute 'b'", {"line.none": "self.a"}),
        ("x = find(a)[0]", "TypeError: 'NoneType' object is not subscriptable", {"line.none": "find(a)"}),
        ("for one in knobs(a):", "TypeError: 'NoneType' object is not iterable", {"line.none": "knobs(a)"}),
        ("a, b = turn(x)", "TypeError: cannot unpack non-iterable NoneType object", {"line.none": "turn(x)"}),
        ("if 'k' in opts:", "TypeError: argument of type 'NoneType' is not iterable", {"line.none": "opts"}),
        ("n = len(rows)", "TypeError: object of type 'NoneType' has no len()", {"line.none": "rows"}),
        ("y = self.net(x)", "TypeError: 'list' object is not callable",
         {"line.part": "self.net", "line.type": "list"}),
        # two that it can be
        ("f(a.turn, b.turn)", "AttributeError: 'NoneType' object has no attribute 'turn'", {}),
        ("w = (1.0 / (k - 1)) * a", "ZeroDivisionError: float division by zero", {"line.divisor": "k - 1"}),
        ("w = a / n + b / m", "ZeroDivisionError: division by zero", {"line.divisor": "n or m"}),
        ("w = a / n + b / m + c / k", "ZeroDivisionError: division by zero", {}),
        ("print('%d of' % n, a % n)", "ZeroDivisionError: integer modulo by zero", {"line.divisor": "n"}),
        ("lr = cfg['train']['lr']", "KeyError: 'lr'", {"line.container": "cfg['train']"}),
        ("row = a[i]", "IndexError: list index out of range", {"line.container": "a", "line.index": "i"}),
        ("row = rows[i][j]", "IndexError: list index out of range", {}),
        # the first line of a call over several
        ("out = turn(self.rows[i],", "IndexError: list index out of range",
         {"line.container": "self.rows", "line.index": "i"}),
        ("elif opts['k']:", "KeyError: 'k'", {"line.container": "opts"}),
        ("not a line of Python", "KeyError: 'k'", {}),
    ],
)  # fmt: skip
def test_the_part_that_is_meant(line: str, message: str, found: dict[str, str]) -> None:
    assert facts(line, message) == found


@pytest.mark.parametrize(
    "line",
    [f"{'-' * 900}x[k]", f"x{'[k]' * 320}", f"{'(' * 400}x[k]", "x[k] + " * 140 + "x[k]", "x[k]" * 2_000],
)
def test_a_line_that_is_nested_deep_or_very_long_breaks_nothing(line: str) -> None:
    assert set(facts(line, "KeyError: 'k'")) <= {"line.container", "line.index"}


TUPLE = {"line.part": "acc", "line.type": "tuple"}
FORMAT = "TypeError: unsupported format string passed to tuple.__format__"
TAKES = "TypeError: Net.forward() takes 2 positional arguments but {} were given"


@pytest.mark.parametrize(
    ("line", "signs", "message", "found"),
    [
        (
            "x = a.cfg.n + b.n",
            "              ^^^",
            "AttributeError: 'list' object has no attribute 'n'",
            {"line.part": "b", "line.type": "list"},
        ),
        (
            "y = a / n + b / m",
            "            ~~^~~",
            "ZeroDivisionError: division by zero",
            {"line.divisor": "m"},
        ),
        (
            "z = d[i] + e[j]",
            "           ~^^^",
            "IndexError: list index out of range",
            {"line.container": "e", "line.index": "j"},
        ),
        ('log(f"{loss:.3f} {acc:.3f}")', "                 ^^^^^^^^^", FORMAT, TUPLE),
        ('log(f"{loss} {acc:.3f}")', "    ^^^^^^^^^^^^^^^^^^^", FORMAT, TUPLE),
        ('log("{} {:.3f}".format(a, acc))', "", FORMAT, TUPLE),
        ('log(f"{loss:.3f} {acc:.3f}")', "", FORMAT, {}),
        ("y = net(x, z.edge)", "    ^^^^^^^^^^^^^^", TAKES.format(3), {"line.surplus": "z.edge"}),
        ("y = net(*parts, x)", "", TAKES.format(3), {}),
        ("y = net(loss(a), b, c)", "", TAKES.format(4), {"line.surplus": "b, c"}),
    ],
)
def test_the_part_that_python_marks(line: str, signs: str, message: str, found: dict[str, str]) -> None:
    marks = f"\n    {signs}" if signs else ""
    assert facts(f"{line}{marks}", message) == found
