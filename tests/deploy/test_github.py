"""The script of the action, in a plain shell with the variables that a runner sets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ACTION = Path(__file__).parents[2] / "deploy" / "github"
LOG = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    x\nKeyError: 1\n'

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def run(folder: Path, logs: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_WORKSPACE": str(folder),
        "RUNNER_TEMP": str(folder),
        "TD_LOGS": logs,
        **inputs,
    }
    command = ["bash", "-c", 'bash "$GITHUB_ACTION_PATH/explain.sh"']
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def test_logs_are_explained(tmp_path: Path) -> None:
    (tmp_path / "a b.log").write_text(LOG, encoding="utf-8")
    ended = run(tmp_path, "a b.log\n\n")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("::error file=train.py,line=1,title=torchdoctor own-code-error::")
    assert (tmp_path / "output").read_text("utf-8") == "rule=own-code-error\n"
    assert "own-code-error" in (tmp_path / "summary").read_text("utf-8")


@pytest.mark.parametrize("name", ["$(touch owned)", "--format=text", "gone.log"])
def test_inputs_are_data(tmp_path: Path, name: str) -> None:
    assert run(tmp_path, name).returncode == 2
    assert not (tmp_path / "owned").exists()


def test_a_check_that_fails_fails_the_step(tmp_path: Path) -> None:
    ended = run(tmp_path, "", TD_CHECK="true", TD_PYTHON="/bin/true")
    assert ended.returncode == 1
    assert "::error title=torchdoctor python-start::" in ended.stdout
