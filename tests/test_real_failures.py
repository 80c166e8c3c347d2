"""The programs that fail on GPUs: each is sound, and the harness keeps only what bears its label."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchdoctor.workbench.cases import read_all

ROOT = Path(__file__).resolve().parent.parent

PROGRAMS = """\
#### fails-as-told
rule: loss-nan
kit: steps
says: nan
-- train.py
from lib.steps import step

step(3)
#### does-not-fail
rule: loss-nan
-- train.py
print("all is well")
#### fails-otherwise
rule: loss-nan
says: nan
-- train.py
raise KeyError("x")
#### never-ends
rule: dataloader-hang
limit: 1
-- train.py
import time
time.sleep(60)
#### ends-well
rule: none
-- train.py
print("WARNING: retry")
#### lacks-something
rule: no-kernel-image
needs: a_package_of_no_name
-- train.py
@@@@ steps
-- lib/steps.py
def step(number):
    raise ValueError(f"step {number}: loss is nan")  #!here
"""


@pytest.fixture
def harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_failures", ROOT / "benchmarks" / "real_failures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_programs_are_sound(harness: ModuleType) -> None:
    assert harness.faults(harness.read_programs()) == []


def test_a_label_goes_with_what_bears_it(
    harness: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "some.txt").write_text(PROGRAMS, encoding="utf-8")
    monkeypatch.setattr(harness, "PROGRAMS", programs)
    out = tmp_path / "out"
    outcomes = harness.run_all(harness.read_programs(), out, 3, "2.11.0", "a card", 60)
    said = {one.case.name: one.left_out or one.unplanned for one in outcomes}
    assert said["fails-as-told"] == said["ends-well"] == ""
    assert said["does-not-fail"] == "exit code 0: it did not fail"
    assert said["fails-otherwise"] == "it does not say 'nan'"
    assert said["never-ends"] == "ran out of time"
    assert said["lacks-something"] == "no package a_package_of_no_name in this Python"
    assert len(read_all(str(out / "aside"))[0]) == 3
    cases, problems = read_all(str(out / "cases"))
    assert not problems
    found = {(one.of, one.rule, one.frame) for one in cases}
    assert found == {("gpu", "loss-nan", "steps.py:2"), ("clean", "none", None)}
    text = next(one for one in cases if one.of == "gpu").input().decode()
    assert "ValueError: step 3: loss is nan" in text
    assert "#!here" not in text
    assert str(tmp_path) not in text
    assert "/rf-" not in text


def test_a_wrong_key_is_told_with_its_case(
    harness: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.txt").write_text(
        "#### one\nrule: loss-nan\nruns: python\n-- train.py\n", encoding="utf-8"
    )
    monkeypatch.setattr(harness, "PROGRAMS", tmp_path)
    with pytest.raises(harness.ProgramError, match=r"some.txt: one: no such key: 'runs: python'"):
        harness.read_programs()


def test_results_can_be_written(harness: ModuleType) -> None:
    case = harness.Case("a", 1, {"rule": "none"})
    assert json.loads(json.dumps(harness.Outcome(case, 1.26, 0).as_data()))["seconds"] == 1.3
