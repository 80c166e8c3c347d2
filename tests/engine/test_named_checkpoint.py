"""What the files that a log names add to the answer: a checkpoint that lies here, a program."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from checkpoint.made import folder
from printed import Printed

from torchdoctor.cli.main import main

SCRIPT = """\
import torch
from project import build_the_model


def load_weights(model, path):
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])


if __name__ == "__main__":
    load_weights(build_the_model(), "weights/epoch7.pt")
"""

LOG = """\
loading {file}
Traceback (most recent call last):
  File "{script}", line 11, in <module>
    load_weights(build_the_model(), "weights/epoch7.pt")
  File "{script}", line {line}, in load_weights
    {code}
{message}
"""

REFUSED = (
    6, "_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed the default value of "
    "the `weights_only` argument in `torch.load` from `False` to `True`.\n\tWeightsUnpickler error: "
    "Unsupported global: GLOBAL argparse.Namespace was not an allowed global by default.",
)  # fmt: skip

CORRUPT = (6, "_pickle.UnpicklingError: invalid load key, 'v'.")

MISMATCH = (
    7, "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for {name}: copying a param "
    "with shape torch.Size({have}) from checkpoint, the shape in current model is torch.Size({want}).",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(
    place: Path, failure: tuple[int, str], capsys: pytest.CaptureFixture[str], *options: str, file: str = ""
) -> dict[str, Any]:
    line, message = failure
    code = SCRIPT.splitlines()[line - 1].strip()
    named = file or str(place / "weights" / "epoch7.pt")
    text = LOG.format(script=place / "train.py", file=named, line=line, code=code, message=message)
    (place / "train.log").write_text(text, encoding="utf-8")
    assert main(["explain", "--format", "json", *options, "train.log"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def facts(found: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in found["facts"] if one["name"].startswith("ckpt.")}


def test_every_class_that_the_file_needs_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(folder() / "2.6" / "trainer.pt", place / "weights" / "epoch7.pt")
    found = report(place, REFUSED, capsys)
    assert "argparse.Namespace" in facts(found)["ckpt.imports"]
    best = found["diagnoses"][0]
    assert best["rule"] == "checkpoint-weights-only"
    assert best["evidence"][-1]["file"] == str(place / "weights" / "epoch7.pt")
    assert "torch.serialization.add_safe_globals([" in best["fixes"][0]["run"]
    assert any("nothing in it was executed" in note for note in found["notes"])


def test_another_cause_than_the_message_names(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123456789\n"
    (place / "weights" / "epoch7.pt").write_text(pointer)
    best = report(place, CORRUPT, capsys)["diagnoses"][0]
    assert any(
        "git-lfs" in one["text"].lower() or "git lfs" in one["text"].lower() for one in best["evidence"]
    )
    assert "git lfs pull" in json.dumps(best["fixes"][0])


def test_a_relative_name_counts_where_the_log_is_said_to_be_from_here(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "weights" / "epoch7.pt").write_bytes(b"")
    assert not facts(report(place, CORRUPT, capsys, file="weights/epoch7.pt"))
    assert facts(report(place, CORRUPT, capsys, "--here", file="weights/epoch7.pt"))["ckpt.size_bytes"] == 0


@pytest.mark.parametrize("why", ["offline", "foreign", "absent", "pipe", "link"])
def test_it_is_left_alone(why: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / "weights" / "epoch7.pt"
    if why == "pipe":
        os.mkfifo(path)
    elif why == "link":
        path.symlink_to(folder() / "2.6" / "trainer.pt")
    elif why != "absent":
        shutil.copy(folder() / "2.6" / "trainer.pt", path)
    if why == "foreign":
        (place / "train.py").write_text("# another program\n")
    begun = time.monotonic()
    found = report(place, REFUSED, capsys, *(["--offline"] if why == "offline" else []))
    assert not facts(found)
    assert found["diagnoses"][0]["rule"] == "checkpoint-weights-only"
    assert time.monotonic() - begun < 30


def test_the_shapes_of_the_message_are_held_against_the_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(folder() / "2.6" / "net.pt", place / "weights" / "epoch7.pt")
    first = facts_of_tensors(place / "weights" / "epoch7.pt")
    name, have = next((name, shape) for name, shape in first.items() if len(shape) == 2)
    want = [have[0] + 8, have[1]]
    line, message = MISMATCH
    found = report(place, (line, message.format(name=name, have=list(have), want=want)), capsys)
    evidence = [one["text"] for one in found["diagnoses"][0]["evidence"] if one["file"].endswith("epoch7.pt")]
    assert any(name in text and str(list(have)) in text for text in evidence)


def facts_of_tensors(path: Path) -> dict[str, tuple[int, ...]]:
    from torchdoctor.checkpoint.inspect import inspect

    weights = inspect(str(path)).weights
    return {name: tensor.shape for name, tensor in weights.tensors.items()}


# ``explain`` names what ``lint`` finds in the program that failed
SCRIPT_PITFALLS = """\
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

LOG_PITFALLS = """\
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
    (tmp_path / "train.py").write_text(SCRIPT_PITFALLS, encoding="utf-8")
    path = tmp_path / "train.log"
    path.write_text(LOG_PITFALLS.format(path=tmp_path / "train.py"), encoding="utf-8")
    return path


def pitfalls(log: Path, printed: Printed, *options: str) -> list[tuple[str, int, bool]]:
    """(id, line, against) of each piece of evidence out of the program."""
    first = json.loads(printed(["explain", str(log), "--format", "json", *options]))["diagnoses"][0]
    assert (first["rule"], first["standing"]) == ("no-grad-fn", "confirmed")
    return [
        (one["text"].split()[2].rstrip(","), one["line"], one["against"])
        for one in first["evidence"]
        if one["file"] and one["file"].endswith("train.py")
    ]


def test_the_pitfall_behind_the_failure_is_named(log: Path, printed: Printed) -> None:
    assert pitfalls(log, printed) == [("graph-cut", 9, False)]


def test_nothing_is_read_offline(log: Path, printed: Printed) -> None:
    assert pitfalls(log, printed, "--offline") == []


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
def test_what_the_program_does_not_show_is_not_named(log: Path, printed: Printed, old: str, new: str) -> None:
    script = log.with_name("train.py")
    script.write_text(script.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    named = [] if old != "opt.zero_grad()" else ["graph-cut"]
    assert [one for one, _, _ in pitfalls(log, printed, "--here")] == named
