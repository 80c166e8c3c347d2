"""The stand-alone programs: complete, and the same as what runs."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor.cli.main import main
from torchdoctor.selftest import standalone
from torchdoctor.selftest.registry import CHECKS

from .conftest import needs_torch

NAMES = [check.name for check in CHECKS]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_needs_nothing_of_ours(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--show", name]) == 0
    text = capsys.readouterr().out
    tree = ast.parse(text, feature_version=(3, 8))
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert not any(name.startswith("torchdoctor") for name in names)
    assert "torch" in names
    assert "--fault" in text


def test_every_program_under_child_is_a_check() -> None:
    files = {path.stem for path in Path(standalone.FOLDER).glob("*.py")}
    assert files == {check.file for check in CHECKS} | {
        "__init__", "batch", "bench", "forker", "survey", "watching",
    }  # fmt: skip


@needs_torch
def test_a_program_runs_alone_and_its_exit_code_tells(tmp_path: Path) -> None:
    path = tmp_path / "check.py"
    path.write_text(standalone.compose("lstsq_rank"), encoding="utf-8")
    argv = [sys.executable, "-I", str(path), "--seed", "5"]
    good = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (good.returncode, good.stderr) == (0, "")
    assert "pass     wide float32" in good.stdout
    bad = subprocess.run([*argv, "--fault", "nan"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert bad.returncode == 1
    assert "fail     wide float32: inf" in bad.stdout
    # read by somebody who reads a line and no more
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as piped:
        assert piped.stdout is not None
        assert piped.stderr is not None
        piped.stdout.readline()
        piped.stdout.close()
        assert piped.stderr.read() == b""
    assert piped.returncode == -signal.SIGPIPE
