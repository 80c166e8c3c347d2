"""The command: its output, exit codes, mistakes in the call, and an interrupt in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli import verdicts
from torchdoctor.cli.main import main
from torchdoctor.model import CheckResult, NotChecked, Outcome, Report, Verdict
from torchdoctor.selftest.registry import CHECKS

from .conftest import needs_torch
from .test_endings import alive

SCHEMA = Path(__file__).parents[2] / "torchdoctor" / "schema" / "report-1.json"
LSTSQ = ["selftest", "--python", sys.executable, "--device", "cpu", "--only", "lstsq-rank"]


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    data = json.loads(capsys.readouterr().out)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert isinstance(data, dict)
    return data


@needs_torch
def test_a_healthy_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LSTSQ, "--only", "lstsq-rank", "--seed", "11", "--strict"]) == 0  # named twice, run once
    out = capsys.readouterr().out
    assert out.startswith("✓ 1 check passed\n")
    assert "not broken hardware (torchdoctor rules show lstsq-rank-deficient)" in " ".join(out.split())
    assert "Seed 11" in out


@needs_torch
def test_a_limit_for_all_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDOCTOR_FAULT", "hang")
    words = ["selftest", "--python", sys.executable, "--device", "cpu", "--only", "fft", "--only", "linalg"]
    begun = time.monotonic()
    assert main([*words, "--time-limit", "5", "--strict", "--format", "json"]) == 3
    assert time.monotonic() - begun < 30  # each of them alone may take 60 s or more
    untold = json.loads(capsys.readouterr().out)["not_checked"]
    assert {one["id"] for one in untold} == {"fft@cpu", "linalg@cpu"}


@pytest.mark.usefixtures("imported")
@needs_torch
def test_json_holds_every_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LSTSQ, "--format", "json"]) == 0
    data = report(capsys)
    facts = {fact["name"]: fact for fact in data["facts"]}  # type: ignore[attr-defined]
    assert facts["selftest.seed"]["value"] == 0
    wide = facts["selftest.lstsq-rank@cpu.wide float32"]
    assert 0 < wide["value"] < 1e-5
    assert wide["source"].startswith("float64 on the CPU")
    check = data["checks"][0]  # type: ignore[index]
    assert (check["id"], check["verdict"], check["expected"][:7]) == ("lstsq-rank@cpu", "pass", "at most")


@pytest.mark.usefixtures("imported")
@needs_torch
def test_a_wrong_element_is_a_failure(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDOCTOR_FAULT", "one-element")
    out = printed(LSTSQ, 1)
    assert out.startswith("✗ 1 problem\n")
    assert "expected at most" in out
    assert "torchdoctor selftest --show lstsq-rank" in out


@pytest.mark.usefixtures("imported")
@needs_torch
def test_a_gpu_that_is_not_there_could_not_be_tested(printed: Printed) -> None:
    words = ["selftest", "--python", sys.executable, "--device", "cuda:99", "--only", "lstsq-rank"]
    assert printed([*words, "--strict"], 3).startswith("? 1 could not be determined\n")


def test_a_torch_that_does_not_import_could_not_be_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("raise OSError('libgomp.so.1: cannot open it')\n")
    assert main(["selftest", "--python", str(tmp_path / "env"), "--format", "json", "--strict"]) == 3
    data = report(capsys)
    assert {check["verdict"] for check in data["checks"]} == {"unknown"}  # type: ignore[attr-defined]
    assert "libgomp.so.1: cannot open it" in data["not_checked"][0]["reason"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("verdict", "fail_on", "strict", "code"),
    [
        (Verdict.FAIL, "fail", False, 1),
        (Verdict.FAIL, "never", True, 0),
        (Verdict.WARN, "fail", True, 0),
        (Verdict.WARN, "warn", False, 1),
        (Verdict.UNKNOWN, "warn", False, 0),
        (Verdict.UNKNOWN, "fail", True, 3),
    ],
)
def test_exit_codes(verdict: Verdict, fail_on: str, strict: bool, code: int) -> None:
    untold = (NotChecked("x", "why"),) if verdict is Verdict.UNKNOWN else ()
    report = Report(Outcome.NO_FAILURE, checks=(CheckResult("x", verdict, "x"),), not_checked=untold)
    assert verdicts.exit_code(report, fail_on, strict) == code


def test_list_names_every_check(printed: Printed) -> None:
    lines = printed(["selftest", "--list"]).splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--only", "lstsq-rnak"], "did you mean 'lstsq-rank'?"),
        (["--show", "zzz"], "no self-check 'zzz'; there are: gemm-exact"),
        (["--python", "/no/such/python"], "no such file"),
    ],
)
def test_a_mistake_in_the_call(words: list[str], complaint: str, printed: Printed) -> None:
    assert complaint in " ".join(printed.errors(["selftest", *words], 2).split())


@pytest.mark.usefixtures("imported")
@needs_torch
def test_a_device_that_is_none(printed: Printed) -> None:
    assert "there are cpu, cuda, cuda:0, mps" in printed.errors(
        ["selftest", "--python", sys.executable, "--device", "gpu", "--only", "lstsq-rank"], 2
    )


@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "facts"), (signal.SIGTERM, "facts"), (signal.SIGINT, "err")]
)
@needs_torch
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, number: int, moment: str) -> None:
    # "facts" is there when a program runs, "err" already while the forking process imports torch
    environment = {**os.environ, "TORCHDOCTOR_FAULT": "hang", "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-m", "torchdoctor", *LSTSQ]
    process = subprocess.Popen(
        argv,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a test run in the background ignores SIGINT, and its children would too
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.rglob(moment)) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    begun = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - begun < 5
    assert list(tmp_path.iterdir()) == []
    assert alive(str(tmp_path)) == []


@needs_torch
def test_children_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    environment = {**os.environ, "TORCHDOCTOR_FAULT": "hang", "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-m", "torchdoctor", *LSTSQ], env=environment)
    deadline = time.monotonic() + 30
    while not list(tmp_path.rglob("facts")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while alive(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(str(tmp_path)) == []
