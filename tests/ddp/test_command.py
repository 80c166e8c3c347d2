"""``torchdoctor ddp`` and ``check --model``: factories of every kind, and how it ends with each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from printed import Printed

from torchdoctor.cli.main import main

pytest.importorskip("torch")

FACTORIES = """
import os, sys, time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.unused, self.head = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.a(x).relu())

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)

    def forward(self, x):
        return self.a(x)

def loss(out):
    return out.square().mean()

def unused(): return Net(), (torch.randn(5, 3),), loss
def whole(): return Whole(), [(torch.randn(5, 3),), (torch.randn(2, 3),)], loss
def named(): return {"model": Whole(), "inputs": {"x": torch.randn(5, 3)}, "loss_fn": loss}
def no_model(): return 3
def raises(): raise RuntimeError("no data here")
def hangs(): time.sleep(60)
def prints():
    print('{"fake": "result"}'); sys.stderr.write("x" * 10000)
    return whole()
def leaves(): sys.exit(7)
def dies(): os._exit(9)
def crashes(): os.kill(os.getpid(), 11)
def no_gpu(): return Whole().cuda(), (torch.randn(5, 3),), loss
def bad_shape(): return Whole(), (torch.randn(5, 7),), loss
def no_scalar(): return Whole(), (torch.randn(5, 3),), lambda out: out
def no_graph(): return Whole(), (torch.randn(5, 3),), lambda out: out.detach().sum()
def reads():
    input()
    return whole()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ddp") / "factories_for_ddp.py"
    path.write_text(FACTORIES, encoding="utf-8")
    return path


def run(
    file: Path, factory: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any], str]:
    words = ["ddp", f"{file}:{factory}", "--python", sys.executable, "--format", "json", *options]
    code = main(words)
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def test_a_sound_model_passes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for factory in ("whole", "named", "prints"):
        code, report, _ = run(file, factory, capsys)
        assert code == 0, factory
        assert [one["id"] for one in report["checks"] if one["verdict"] in ("fail", "warn")] == []


def test_unused_parameters_are_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report, _ = run(file, "unused", capsys)
    assert code == 1
    found = next(one for one in report["checks"] if one["verdict"] == "fail")
    assert found["id"] == "ddp-unused-parameters"
    told = " ".join(item["text"] for item in found["evidence"])
    assert "unused.weight" in told
    assert "unused.bias" in told
    assert "head.weight" not in told
    assert report["diagnoses"][0]["rule"] == "ddp-unused-parameters"


@pytest.mark.parametrize(
    ("factory", "codes", "words"),
    [
        ("no_model", {1, 2}, "model, inputs, loss_fn"),
        ("raises", {1, 2}, "no data here"),
        ("leaves", {1, 2, 3}, "7"),
        ("dies", {1, 2, 3}, "9"),
        ("crashes", {1, 2, 3}, "SIGSEGV"),
        ("bad_shape", {1}, "mat1 and mat2"),
        ("no_scalar", {1}, "loss"),
        ("no_graph", {1}, "loss"),
        ("reads", {1, 2, 3}, "EOF"),
        ("nothing", {2}, "has no 'nothing'"),
    ],
)
def test_a_factory_that_does_not_do_gets_a_clear_word(
    factory: str, codes: set[int], words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report, err = run(file, factory, capsys, "--strict")
    assert code in codes
    assert words in json.dumps(report) + err


def test_a_factory_that_hangs_is_ended(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report, err = run(file, "hangs", capsys, "--time-limit", "5", "--strict")
    assert code in (1, 2, 3)
    assert "5 s" in json.dumps(report) + err


def test_a_gpu_that_is_not_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is there")
    code, report, err = run(file, "no_gpu", capsys, "--strict")
    assert code in (1, 2, 3)
    assert "CUDA" in json.dumps(report) + err


def test_check_takes_the_model_along(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", "--python", sys.executable, "--model", f"{file}:unused", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 1
    assert "ddp-unused-parameters" in {one["id"] for one in report["checks"] if one["verdict"] == "fail"}


@pytest.mark.skipif(not Path("/bin/true").exists(), reason="needs a program that is no Python")
def test_a_program_that_is_no_interpreter(file: Path, printed: Printed) -> None:
    told = " ".join(printed(["ddp", f"{file}:unused", "--python", "/bin/true"], 1).split())
    assert "could not be run: the interpreter does not start" in told
    assert "Do: Name the interpreter that runs your program: --python PATH." in told
