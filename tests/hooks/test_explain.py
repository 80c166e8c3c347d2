"""The Python API, and that the hook says of ten programs what ``explain`` says of their traceback."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import time
from pathlib import Path

import failing_programs as failing
import jsonschema
import pytest
import torch
from torch import nn

import torchdoctor
from torchdoctor import catalog
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.hooks import memory
from torchdoctor.model import Frame
from torchdoctor.render.note import text

SCHEMA = json.loads((Path(torchdoctor.__file__).parent / "schema" / "report-1.json").read_text("utf-8"))
LOG = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    x\nKeyError: 'b'\n"


def error_of(name: str) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it raises
        getattr(failing, name)()
    return caught.value


@pytest.mark.parametrize("name", failing.PROGRAMS)
def test_hook_run_and_explain_agree(name: str, tmp_path: Path) -> None:
    """On the rule and the frame; ``explain`` also of a log that holds the note."""
    file = tmp_path / "report.json"
    doctor = (sys.executable, "-P" if sys.version_info >= (3, 11) else "-E", "-m", "torchdoctor", "run")
    command = (*doctor, "--quiet", "--format", "json", "-o", str(file), "--", sys.executable)
    ended = subprocess.run([*command, failing.__file__, name], capture_output=True, timeout=120)
    assert ended.returncode == 1
    told = ended.stderr.decode()
    traceback, _, note = told.partition("✗ torchdoctor: ")
    assert f"[{failing.PROGRAMS[name]}," in " ".join(note.split())
    around = json.loads(file.read_text(encoding="utf-8"))["diagnoses"][0]
    assert around["rule"] == failing.PROGRAMS[name]
    assert f"{around['frame']['file']}:{around['frame']['line']}, in {around['frame']['function']}" in note
    for log in (traceback, told):
        report = explain(["-"], FactBook(), catalog.load(), io.BytesIO(log.encode())).report
        first = report.diagnoses[0]
        assert first.rule == failing.PROGRAMS[name]
        assert f"{first.frame.file}:{first.frame.line}, in {first.frame.function}" in note
    if name == "matmul_shape":
        assert "input is float32 [4, 16] on cpu; self.body.2.weight is float32 [5, 20]" in " ".join(
            note.split()
        )


def test_a_report_is_text_html_json_and_can_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)  # no program is run for it
    report = torchdoctor.explain(error_of("dtype_mismatch"))
    jsonschema.validate(report.to_dict(), SCHEMA)
    assert isinstance(report, torchdoctor.Report)
    assert str(report).startswith("✗ A tensor has another dtype than the operation takes\n")
    html = report._repr_html_()
    assert "features is float64 [4, 8] on cpu" in html
    assert "<script" not in html
    assert repr(report) == "<torchdoctor report: dtype-mismatch; print it to read it>"
    assert pickle.loads(pickle.dumps(report)) == report


def test_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.log"
    file.write_text(LOG, encoding="utf-8")
    assert torchdoctor.explain(LOG).diagnoses[0].rule == "own-code-error"
    assert torchdoctor.explain(file).diagnoses[0].evidence[0].file == str(file)
    assert torchdoctor.explain(str(file)).outcome.value == "no-failure"  # a str is always text
    assert torchdoctor.explain(tmp_path / "none").outcome.value == "unreadable"
    with pytest.raises(TypeError, match="not int"):
        torchdoctor.explain(3)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    monkeypatch.setattr(sys, "last_exc", None, raising=False)
    with pytest.raises(ValueError, match="no error yet"):
        torchdoctor.explain()
    try:
        {}["b"]
    except KeyError:
        assert torchdoctor.explain().diagnoses[0].rule == "own-code-error"
    monkeypatch.setattr(sys, "last_value", error_of("label_range"), raising=False)
    assert torchdoctor.explain().diagnoses[0].rule == "cuda-assert-label-range"


def test_a_huge_message_is_cut() -> None:
    begun = time.process_time()
    report = torchdoctor.explain(RuntimeError("x" * 50_000_000))
    assert report.outcome.value == "unrecognised"
    assert len(str(report)) < 10_000
    assert time.process_time() - begun < 5


class Spying(torch.Tensor):
    """A tensor whose class wants to see every use."""

    calls = 0

    @classmethod
    def __torch_function__(cls, *args: object, **named: object) -> object:
        Spying.calls += 1
        return super().__torch_function__(*args, **named)


def test_tensors_are_named_without_a_call() -> None:
    tied = nn.Linear(3, 3)
    holder = nn.ModuleDict({"head": tied})
    value = torch.zeros(2, 3).as_subclass(Spying)
    batch = [torch.zeros(4, 5).as_subclass(Spying), {"secret": value}]
    Spying.calls = 0
    try:
        raise ValueError(value is batch, holder.head.weight is value, batch[0] is tied)
    except ValueError as error:
        frame = Frame(__file__, error.__traceback__.tb_lineno, "")  # type: ignore[union-attr]
        named = dict(memory.tensors(error, frame))
    assert named == {
        "value": "float32 [2, 3] on cpu",
        "batch[0]": "float32 [4, 5] on cpu",
        "holder.head.weight": "float32 [3, 3] on cpu",
    }
    assert Spying.calls == 0


def test_the_layer_that_failed_is_named_through_its_frames() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Sequential(nn.Conv2d(16, 8, 3)))
    image = torch.zeros(1, 3, 9, 9)
    with pytest.raises(RuntimeError) as caught:
        net(image)
    evidence = torchdoctor.explain(caught.value).diagnoses[0].evidence[-1].text
    assert evidence == (
        "image is float32 [1, 3, 9, 9] on cpu; input is float32 [1, 8, 7, 7] on cpu; net.1.0.weight is "
        "float32 [8, 16, 3, 3] on cpu; net.1.0.bias is float32 [8] on cpu"
    )


def test_facts_of_memory() -> None:
    with torch.no_grad():
        facts = {fact.name: fact.value for fact in torchdoctor.explain(error_of("label_range")).facts}
    assert facts["memory.grad_enabled"] is False
    assert facts["memory.tensors"] == (
        ("logits", "float32 [3, 5] on cpu"),
        ("labels", "int64 [3] on cpu"),
    )


@pytest.mark.parametrize("width", [40, 100])
def test_a_note_is_short_and_clean(width: int) -> None:
    error = KeyError("\x1b]0;owned\x07b")
    lines = text(torchdoctor.explain(error), width).splitlines()
    assert all(len(line) <= width and line.isprintable() for line in lines)
