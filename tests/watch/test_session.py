"""``torchdoctor.watch_globals()``: in a program of its own, which writes down what each block reported."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is what is watched")

PROGRAM = """
import io, json, os, sys
import torch
import torchdoctor

told = {}

def keep(name, watch):
    report = watch.report
    told[name] = {
        "checks": [
            [one.id, one.verdict.value, one.observed, [[e.text, e.file, e.line] for e in one.evidence]]
            for one in report.checks
        ],
        "notes": list(report.notes),
        "changes": [
            [c.setting, c.before, c.after, [[p.file, p.line] for p in c.stack]] for c in watch.changes
        ],
        "outcome": report.outcome.value,
    }

with torchdoctor.watch_globals() as watch:
    import detector
keep("import", watch)
torch.set_grad_enabled(True)

with torchdoctor.watch_globals() as watch:
    torch.set_grad_enabled(False)  # direct
keep("direct", watch)
torch.set_grad_enabled(True)

torch.set_grad_enabled(False)
with torchdoctor.watch_globals() as watch:
    x = 1
keep("before", watch)
torch.set_grad_enabled(True)

with torchdoctor.watch_globals() as watch:
    with torch.no_grad():
        x = 2
keep("restored", watch)

try:
    with torchdoctor.watch_globals() as watch:
        torch.set_num_threads(torch.get_num_threads() + 1)  # before the error
        raise ValueError("expected")
except ValueError:
    keep("error", watch)

def inner():
    with torchdoctor.watch_globals() as watch:
        torch.use_deterministic_algorithms(True)  # in a function
    return watch

keep("function", inner())
torch.use_deterministic_algorithms(False)

screen = io.StringIO()
with torchdoctor.watch_globals(stream=screen):
    torch.set_grad_enabled(False)
torch.set_grad_enabled(True)
told["screen"] = screen.getvalue()

quiet = io.StringIO()
with torchdoctor.watch_globals(stream=quiet):
    x = 3
told["quiet"] = quiet.getvalue()

seen = []
def foreign(frame, event, arg):
    seen.append(event)
    return None
sys.settrace(foreign)
with torchdoctor.watch_globals() as watch:
    torch.set_grad_enabled(False)
told["foreign kept"] = sys.gettrace() is foreign
sys.settrace(None)
keep("foreign", watch)
torch.set_grad_enabled(True)
told["trace after"] = sys.gettrace() is None
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    (folder / "detector.py").write_text(
        "import torch\n\ndef quiet():\n    torch.set_grad_enabled(False)\n\nquiet()\n", encoding="utf-8"
    )
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, str(folder / "program.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line_of(words: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if words in line)


def test_an_import_that_switches_gradients_off_is_found(told: dict[str, Any], folder: Path) -> None:
    (check,) = told["import"]["checks"]
    assert check[:2] == ["grad-mode-disabled", "warn"]
    places = [(Path(file).name, line) for _, file, line in check[3] if file]
    assert places == [("detector.py", 4), ("detector.py", 6), ("program.py", line_of("import detector"))]
    assert "grad mode: True -> False" in check[2]
    assert told["import"]["outcome"] == "diagnosed"


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("direct", "grad-mode", "# direct"),
        ("error", "threads", "# before the error"),
        ("function", "deterministic", "# in a function"),
    ],
)
def test_statements_of_the_block_itself(told: dict[str, Any], name: str, setting: str, words: str) -> None:
    (change,) = (one for one in told[name]["changes"] if one[0] == setting)
    assert change[3][-1] == [change[3][-1][0], line_of(words)]
    assert Path(change[3][-1][0]).name == "program.py"


def test_what_was_so_before_is_no_change(told: dict[str, Any]) -> None:
    assert told["before"]["changes"] == []
    assert told["before"]["outcome"] == "no-failure"


def test_what_is_put_back_is_no_finding(told: dict[str, Any]) -> None:
    assert len(told["restored"]["changes"]) == 2
    assert (told["restored"]["checks"], told["restored"]["notes"]) == ([], [])


def test_the_stream_gets_the_report_and_nothing_when_there_is_none(told: dict[str, Any]) -> None:
    assert told["screen"].startswith("! 1 warning")
    assert "[grad-mode-disabled]" in told["screen"]
    assert told["quiet"] == ""


def test_a_debugger_keeps_its_trace_function(told: dict[str, Any]) -> None:
    assert told["foreign kept"]
    assert told["trace after"]
    (change,) = told["foreign"]["changes"]
    assert change[:4] == ["grad-mode", "True", "False", []]
    assert any("another trace function" in note for note in told["foreign"]["notes"])
