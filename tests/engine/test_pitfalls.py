"""``explain`` names what ``lint`` finds in the program that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdoctor.cli.main import main

SCRIPT = """\
import torch
from torch import nn


def train_one_epoch(model, opt):
    for batch, target in loader:
        opt.zero_grad()
        loss = torch.tensor(nn.functional.mse_loss(model(batch), target).item())
        loss.backward()
        opt.step()


if __name__ == "__main__":
    model = nn.Linear(4, 1)
    train_one_epoch(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""
LOG = """\
Traceback (most recent call last):
  File "{path}", line 15, in <module>
    train_one_epoch(model, torch.optim.SGD(model.parameters(), lr=0.1))
  File "{path}", line 9, in train_one_epoch
    loss.backward()
  File "/opt/env/lib/python3.11/site-packages/torch/_tensor.py", line 623, in backward
    torch.autograd.backward(
RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    path = tmp_path / "train.log"
    path.write_text(LOG.format(path=tmp_path / "train.py"), encoding="utf-8")
    return path


def pitfalls(log: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[str, int, bool]]:
    """(id, line, against) of each piece of evidence out of the program."""
    assert main(["explain", str(log), "--format", "json", *options]) == 0
    first = json.loads(capsys.readouterr().out)["diagnoses"][0]
    assert (first["rule"], first["standing"]) == ("no-grad-fn", "confirmed")
    return [
        (one["text"].split()[2].rstrip(","), one["line"], one["against"])
        for one in first["evidence"]
        if one["file"] and one["file"].endswith("train.py")
    ]


def test_the_pitfall_behind_the_failure_is_named(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pitfalls(log, capsys) == [("graph-cut", 9, False)]


def test_nothing_is_read_offline(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pitfalls(log, capsys, "--offline") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss = torch.tensor(nn.functional.mse_loss(model(batch), target).item())", "loss = step(batch)"),
        ("loss.backward()", "loss.backward()  # torchdoctor: ignore[graph-cut]"),
        ("opt.zero_grad()", "pass"),
        ("import torch\n", "import torch\nimport os\n"),
    ],
    ids=["no pitfall", "ignored", "one of another rule", "another version of the file"],
)
def test_what_the_program_does_not_show_is_not_named(
    log: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    script = log.with_name("train.py")
    script.write_text(script.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    named = [] if old != "opt.zero_grad()" else ["graph-cut"]
    assert [one for one, _, _ in pitfalls(log, capsys, "--here")] == named
