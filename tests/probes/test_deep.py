"""``check --deep``: each thing is done for itself, what it says is a result, and nothing stays behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.engine import FactBook
from torchdoctor.engine.deep import with_deep
from torchdoctor.model import Outcome, Reason, Report, Verdict
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.probe import Limits
from torchdoctor.probes.source import ProbeSource

TORCH = """
class cuda: is_available = staticmethod(lambda: False)
class device:
    type = "cpu"
    def __init__(self, name): pass
float32 = None
class Values:
    def __mul__(self, other): return self
    def sum(self): return 4032.0
def arange(*a, **k): return Values()
"""


def look(environment: Environment, deep_s: float = 20.0) -> Report:
    source = ProbeSource(LiveMachine(), str(environment.python), limits=Limits(deep_s=deep_s), deep=True)
    try:
        return with_deep(Report(Outcome.NO_FAILURE), FactBook(source))
    finally:
        source.close()
        assert source.faults == []


def test_each_step_is_a_result_of_its_own(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    environment.plant(TORCH, cuda=None)
    (environment.site / "torchvision.py").write_text("import os\nos.abort()\n")
    (environment.site / "torchaudio.py").write_text("import time\ntime.sleep(99)\n")
    (environment.site / "xformers.py").write_text(
        "raise OSError('libcudart.so.12: cannot open shared object '\n'file: No such file or directory')\n"
    )
    report = look(environment, 4.0)
    found = {one.id: (one.verdict, one.observed) for one in report.checks}
    assert found["deep-kernel"][0] is Verdict.PASS
    assert found["deep-torchvision"] == (Verdict.FAIL, "ended by signal 6")
    assert found["deep-xformers"][0] is Verdict.FAIL
    assert found["deep-loader"][0] is Verdict.FAIL  # this torch has none
    (xformers,) = (one for one in report.checks if one.id == "deep-xformers")
    assert "(cuda-library-missing)" in xformers.evidence[-1].text
    assert [item.id for item in report.not_checked] == ["deep-torchaudio"]
    assert "cublas: no GPU that torch can use" in report.notes
    assert "inductor: torch before 2.0 has no torch.compile" in report.notes
    assert report.outcome is Outcome.DIAGNOSED
    assert os.listdir(temporary) == []


def test_without_torch_nothing_is_green(environment: Environment) -> None:
    report = look(environment)
    assert report.checks == ()
    assert [item.id for item in report.not_checked] == ["deep"]
    assert "No module named 'torch'" in report.not_checked[0].reason


def test_only_when_asked(environment: Environment) -> None:
    source = ProbeSource(LiveMachine(), str(environment.python))
    fact = source.fetch("deep.steps")
    assert (fact.reason, fact.detail) == (Reason.NOT_ASKED, "only with --deep")
    source.close()
