"""The baseline: written once, held against later, and never taken for that of another machine."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.model import Verdict
from torchdoctor.probes.machine import Json, Outcome
from torchdoctor.selftest import baseline
from torchdoctor.selftest.registry import find
from torchdoctor.selftest.results import Job, Judged, judge
from torchdoctor.selftest.siblings import Siblings
from torchdoctor.selftest.survey import Survey

from .test_cli_selftest import LSTSQ, needs_torch

MACHINE = Survey("2.11", ("NVIDIA H100 80GB HBM3",), (132,), ("uuid-1",))


def run(name: str, *lines: dict[str, Json]) -> tuple[Job, Outcome]:
    check = find(name)
    assert check is not None
    return Job(check, "cuda:0", 0), Outcome(exit_code=0, lines=(*lines, {"done": True}))


def speed(value: float, name: str = "gemm-rate") -> tuple[Job, Outcome]:
    return run(name, {"case": name, "verdict": "measured", "measured": "", "value": value, "unit": "TFLOP/s"})


def bits(word: str) -> tuple[Job, Outcome]:
    passed: dict[str, Json] = {"case": "sum", "verdict": "pass", "measured": "0 wrong"}
    return run("bit-equal", passed, {"case": "sum, fingerprint", "verdict": "measured", "measured": word})


def compared(
    before: tuple[Job, Outcome], now: tuple[Job, Outcome], machine: Survey = MACHINE, seed: int = 0
) -> tuple[Judged, baseline.Drift]:
    drift = baseline.Drift(
        baseline.gather(MACHINE, 0, [before]), machine, seed, Siblings(machine, [now]).judge
    )
    return judge(*now, lambda text: (), drift.judge), drift


@pytest.mark.parametrize(
    ("value", "verdict"), [(790.0, Verdict.PASS), (720.0, Verdict.WARN), (660.0, Verdict.FAIL)]
)
def test_a_speed_against_that_of_the_baseline(value: float, verdict: Verdict) -> None:
    """All three are above the model's floor."""
    judged, drift = compared(speed(800.0), speed(value))
    assert judged.result.verdict is verdict
    assert drift.compared == 1
    if verdict is not Verdict.PASS:
        assert "of the baseline's 800" in (judged.result.observed or "")
        assert judged.result.threshold_source == "the baseline"


def test_a_copy_through_the_host_only_warns() -> None:
    judged, _ = compared(speed(110.0, "h2d"), speed(49.0, "h2d"))
    assert judged.result.verdict is Verdict.WARN


def test_an_unknown_model_is_judged_by_its_baseline() -> None:
    unheard = replace(MACHINE, gpus=("NVIDIA Unheard",))
    drift = baseline.Drift(
        baseline.gather(unheard, 0, [speed(100.0)]), unheard, 0, Siblings(unheard, [speed(99.0)]).judge
    )
    assert judge(*speed(99.0), lambda text: (), drift.judge).result.verdict is Verdict.PASS


def test_other_bits_fail_and_the_same_pass() -> None:
    assert compared(bits("aa"), bits("aa"))[0].result.verdict is Verdict.PASS
    judged, _ = compared(bits("aa"), bits("bb"))
    assert judged.result.verdict is Verdict.FAIL
    assert "different bits than in the baseline" in (judged.result.observed or "")


@pytest.mark.parametrize(
    ("machine", "seed", "note", "speeds"),
    [
        (replace(MACHINE, uuids=("uuid-2",)), 0, "Different GPUs than in the baseline", 0),
        (replace(MACHINE, torch="2.12"), 0, "of torch 2.11: speeds were compared", 1),
        (MACHINE, 5, "of seed 0: bits were not", 1),
    ],
)
def test_what_cannot_be_compared_is_said(machine: Survey, seed: int, note: str, speeds: int) -> None:
    judged, drift = compared(bits("aa"), bits("bb"), machine, seed)
    assert (judged.result.verdict, drift.compared) == (Verdict.PASS, 0)
    assert note in drift.notes[0]
    assert compared(speed(800.0), speed(790.0), machine, seed)[1].compared == speeds


def test_a_file_keeps_everything(tmp_path: Path) -> None:
    path = str(tmp_path / "b.json")
    assert baseline.load(path) is None
    made = baseline.gather(MACHINE, 3, [speed(800.0), bits("aa")])
    baseline.save(path, made)
    assert baseline.load(path) == made
    assert os.listdir(tmp_path) == ["b.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "torchdoctor.selftest-baseline/1"}', "\xff"])
def test_a_file_that_is_no_baseline(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(baseline.BaselineError, match="--baseline"):
        baseline.load(str(path))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(baseline.BaselineError, match="cannot be written"):
        baseline.save(str(tmp_path / "no" / "b.json"), baseline.gather(MACHINE, 0, []))


@pytest.mark.usefixtures("imported")
@needs_torch
def test_the_command_writes_and_compares_it(
    tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.json"
    words = [*LSTSQ[:-2], "--only", "bit-equal", "--baseline", str(path)]
    monkeypatch.setenv("TORCHDOCTOR_FAULT", "one-element")
    assert "No baseline was written" in " ".join(printed(words, 1).split())
    monkeypatch.delenv("TORCHDOCTOR_FAULT")
    assert main(words) == 0
    assert len(json.loads(path.read_text(encoding="utf-8"))["bits"]) == 7
    monkeypatch.setenv("TORCHDOCTOR_FAULT", "odd")
    assert "7 measurements were compared" in " ".join(printed(words, 1).split())
    path.write_text("[]", encoding="utf-8")
    assert "no baseline of a self-test" in " ".join(printed.errors(words, 2).split())
