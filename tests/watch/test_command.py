"""``torchdoctor globals`` and ``check --target``: exit codes, text and JSON."""

from __future__ import annotations

import json
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from printed import Printed

import torchdoctor
from torchdoctor.cli.main import main

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is what is watched")
QUIET = "import sys\n"
LOUD = "import os\nos.environ['WORLD_SIZE'] = '2'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    for name, code in (
        ("quiet", QUIET),
        ("loud", LOUD),
        ("broken", "raise ValueError('no data')\n"),
        ("exits", "import sys\nsys.exit(2)\n"),
        ("train", "import sys, loud\nassert sys.argv[1:] == ['--fast'], sys.argv\n"),
    ):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["quiet"], 0),
        (["quiet.py", "loud"], 0),
        (["--fail-on", "warn", "quiet"], 0),
        (["--fail-on", "warn", "loud"], 1),
        (["--fail-on", "never", "broken"], 0),
        (["broken"], 1),
        (["exits.py"], 0),
        (["--strict", "exits.py"], 3),
        (["--strict", "--fail-on", "warn", "exits.py", "loud"], 1),
        (["--", "python", "train.py", "--fast"], 0),
        (["--fail-on", "warn", "--", "python", "-m", "train", "--fast"], 1),
        (["-c", "import loud", "--fail-on", "warn"], 1),
        (["broken.py"], 1),
        (["loud", "--fail-on", "warn"], 1),
        (["quiet", "--no-such-option"], 2),
        ([], 2),
        (["missing.py"], 2),
        (["--", "torchrun", "train.py"], 2),
        (["--python", "/no/such/python", "quiet"], 2),
        (["--time-limit", "0", "quiet"], 2),
        (["--python", sys.executable, "--", sys.executable, "quiet.py"], 2),
        (["--", sys.executable, "-u", "quiet.py"], 0),
        (["--", "/no/such/python", "quiet.py"], 2),
    ],
)
@needs_torch
def test_exit_codes(folder: Path, args: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    if "--python" not in args and sys.executable not in args and "/no/such/python" not in args:
        args = ["--python", sys.executable, *args]
    assert main(["globals", *args]) == code


def test_the_text_names_the_statement(folder: Path, printed: Printed) -> None:
    out = printed(["globals", "--python", sys.executable, "--", "python", "train.py", "--fast"])
    assert out.startswith("! 1 warning")
    assert "os.environ['WORLD_SIZE']: not set -> 2" in out
    flat = " ".join(out.split())
    assert "loud.py:2)" in flat
    assert "called from: import sys, loud" in flat


def test_the_json_is_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["globals", "--python", sys.executable, "--format", "json", "loud"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = Path(torchdoctor.__file__).parent / "schema" / "report-1.json"
    jsonschema.validate(report, json.loads(schema.read_text(encoding="utf-8")))
    found = next(one for one in report["checks"] if one["id"] == "environment-changed")
    assert found["verdict"] == "warn"
    assert [(Path(one["file"]).name, one["line"]) for one in found["evidence"] if one["file"]] == [
        ("loud.py", 2)
    ]


@pytest.mark.parametrize(
    "command", [["globals", "quiet"], ["globals", "train.py"], ["ddp", "quiet:f"], ["selftest"], ["check"]]
)
def test_without_torch_every_command_says_so(
    folder: Path, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import torch\n", encoding="utf-8")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    assert main([*command, "--python", "env", "--format", "json"]) == 1
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in report["checks"] if one["verdict"] == "fail"] == ["torch-missing"]
    assert command[0] == "check" or [one["id"] for one in report["checks"] if one["verdict"] == "pass"] in (
        [],
        ["target-import"],
    )


@needs_torch
def test_check_uses_the_same_mechanism(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "detector.py").write_text("import torch\ntorch.set_grad_enabled(False)\n", encoding="utf-8")
    (folder / "train.py").write_text("import detector\nraise SystemExit('usage')\n", encoding="utf-8")
    main(["check", "--python", sys.executable, "--format", "json", "--target", "train.py"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    found = next(
        one for one in report["checks"] if one["id"] == "grad-mode-disabled" and one["verdict"] == "warn"
    )
    places = [(Path(one["file"]).name, one["line"]) for one in found["evidence"] if one["file"]]
    assert places == [("detector.py", 2), ("train.py", 1)]
    assert any(one["id"] == "target-import" and "code 1" in one["reason"] for one in report["not_checked"])


def test_check_refuses_a_target_that_is_none(folder: Path, printed: Printed) -> None:
    assert "missing.py: no such file" in printed.errors(
        ["check", "--python", sys.executable, "--target", "missing.py"], 2
    )


@needs_torch
def test_a_gpu_that_is_not_there_is_told_as_such(folder: Path, printed: Printed) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is one")
    (folder / "gpu.py").write_text(
        "import torch\ntorch.backends.cudnn.benchmark = True\nx = torch.ones(2, device='cuda')\n",
        encoding="utf-8",
    )
    out = " ".join(printed(["globals", "--python", sys.executable, "gpu.py"]).split())
    assert "gpu.py needs a GPU that is not here (torch-cpu-only)" in out
    assert "at gpu.py:3" in out
    assert "cudnn benchmark: False -> True at gpu.py:2" in out
