"""``check --target``: which line switches a setting for the whole process; and targets that misbehave."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchdoctor.engine.target import with_target
from torchdoctor.model import CheckResult, Outcome, Report, Verdict
from torchdoctor.probes.machine import LiveMachine

pytest.importorskip("torch")


def look(tmp_path: Path, code: str, limit_s: float = 60.0) -> Report:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    machine = LiveMachine()
    try:
        return with_target(Report(Outcome.NO_FAILURE), machine, sys.executable, str(path), limit_s)
    finally:
        machine.close()


def only(report: Report) -> CheckResult:
    (result,) = report.checks
    return result


@pytest.mark.parametrize(
    ("code", "check", "line"),
    [
        ("import torch\ntorch.set_grad_enabled(False)\n", "grad-mode-disabled", 2),
        ("import torch\ndef f():\n    torch.set_grad_enabled(False)\nf()\n", "grad-mode-disabled", 3),
        ("import torch\ntorch.autograd.set_grad_enabled(mode=False)\n", "grad-mode-disabled", 2),
        ("import torch\ntorch.no_grad().__enter__()\n", "grad-mode-disabled", 2),
        ("import torch\n\ntorch.set_default_dtype(torch.float64)\n", "target-default-dtype", 3),
        ("import torch\ntorch.use_deterministic_algorithms(True)\n", "target-deterministic", 2),
        ("import torch\ntorch.set_default_device('meta')\n", "target-default-device", 2),
    ],
)
def test_the_line_that_switches_a_setting_is_named(tmp_path: Path, code: str, check: str, line: int) -> None:
    result = only(look(tmp_path, code))
    assert (result.id, result.verdict) == (check, Verdict.WARN)
    assert result.evidence[0].file == str(tmp_path / "train.py")
    assert result.evidence[0].line == line


def test_a_line_of_an_imported_module_is_named_with_the_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "detector.py").write_text(
        "import torch\nx = 1\ntorch.set_grad_enabled(False)\n", encoding="utf-8"
    )
    result = only(look(tmp_path, "import torch\nimport detector\n"))
    assert [(Path(item.file or "").name, item.line) for item in result.evidence] == [
        ("detector.py", 3),
        ("train.py", 2),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nwith torch.no_grad():\n    x = torch.ones(2)\n",
        "import torch\ntorch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)\n",
        "import torch\nif __name__ == '__main__':\n    torch.set_grad_enabled(False)\n",
        "import torch\n@torch.no_grad()\ndef f(): return torch.ones(1)\nf()\n",
        "import os\npid = os.fork()\nif pid == 0:\n"
        "    import torch; torch.set_grad_enabled(False); os._exit(0)\n"
        "os.waitpid(pid, 0)\n",
    ],
)
def test_what_is_undone_or_elsewhere_is_no_finding(tmp_path: Path, code: str) -> None:
    report = look(tmp_path, code)
    assert only(report).verdict is Verdict.PASS
    assert report.not_checked == ()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ValueError('no data')\n", "raises ValueError: no data"),
        ("import sys\nsys.exit(3)\n", "ends the process (SystemExit: 3)"),
        ("input()\n", "raises EOFError"),
        ("import os\nos._exit(7)\n", "ended the interpreter (exit code 7)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "crashed the interpreter (signal 11)"),
        ("import torch\ntorch.zeros(1, device='cuda')\n", "raises"),
        ("this is no python\n", "raises SyntaxError"),
    ],
)
def test_a_target_that_cannot_be_imported_is_told(tmp_path: Path, code: str, words: str) -> None:
    report = look(tmp_path, code)
    (unclear,) = report.not_checked
    assert words in unclear.reason


def test_a_target_that_hangs_is_ended(tmp_path: Path) -> None:
    report = look(tmp_path, "import time\ntime.sleep(600)\n", limit_s=8.0)
    assert "did not end within 8 s" in report.not_checked[0].reason


def test_what_a_target_switched_before_it_failed_is_told_too(tmp_path: Path) -> None:
    report = look(tmp_path, "import torch\ntorch.set_grad_enabled(False)\nimport os\nos._exit(1)\n")
    assert only(report).id == "grad-mode-disabled"
    assert "exit code 1" in report.not_checked[0].reason
