"""``torchdoctor hook``, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python3*/site-packages"))


def test_from_refusal_to_a_note_and_back(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "enable", "--python", str(python)]) == 2
    assert f"{python} -m pip install torchdoctor" in capsys.readouterr().err
    assert list(site(python).glob("*hook*")) == []
    paths = [str(ROOT), *(path for path in sys.path if "site-packages" in path)]
    (site(python) / "_paths.pth").write_text("\n".join(paths), encoding="utf-8")

    file = site(python) / "torchdoctor_hook.pth"
    for verb, answer in (
        ("status", f"disabled: {file} is not there"),
        ("enable", f"enabled: {file}"),
        ("enable", f"enabled: {file}"),
        ("status", f"enabled: {file}"),
    ):
        assert main(["hook", verb, "--python", str(python)]) == 0
        assert capsys.readouterr().out.strip() == answer

    def failing(**environment: str) -> str:
        ended = subprocess.run(
            [str(python), "-c", "{}['b']"], capture_output=True, text=True, env={**os.environ, **environment}
        )
        assert ended.returncode == 1
        return ended.stderr

    assert "✗ torchdoctor: " in failing(PYTHONIOENCODING="utf-8")
    assert "torchdoctor:" not in failing(TORCHDOCTOR_HOOK="0")
    (site(python) / "_paths.pth").unlink()  # as when torchdoctor is uninstalled and the file stays
    assert failing() == failing(TORCHDOCTOR_HOOK="0")
    assert main(["hook", "disable", "--python", str(python)]) == 0
    assert main(["hook", "disable", "--python", str(python)]) == 0
    assert not file.exists()


def test_what_is_no_interpreter_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "status", "--python", "/bin/cat"]) == 2
    assert "/bin/cat does not answer: " in capsys.readouterr().err
    assert main(["hook", "status", "--python", "/nowhere/python"]) == 2
