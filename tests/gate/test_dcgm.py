"""dcgmi diag as one more witness: each GPU judged, and no pass where nothing was tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gate_machines import ROOT, Altered

from torchdoctor.gate import checks_dcgm
from torchdoctor.gate.finding import Action, Finding, Verdict, Weight
from torchdoctor.gate.outcome import GateOutcome
from torchdoctor.gate.policy import Policy
from torchdoctor.gate.supervisor import Wish, wants_dcgm
from torchdoctor.probes.machine import Outcome

PROGRAM = ROOT / "torchdoctor" / "gate" / "child" / "dcgm.py"
FIT, UNFIT = Verdict.FIT, Verdict.UNFIT
GPUS = "0,1,2,3,4,5,6,7"


def v3(*tests: dict[str, Any]) -> str:
    """As dcgmi 3.x prints it, with its warning before the JSON and null in its lists."""
    deployment = {"name": "Denylist", "results": [{"gpu_ids": GPUS, "status": "PASS"}]}
    categories = [
        {"category": "Deployment", "tests": [deployment, None]},
        {"category": "Hardware", "tests": [*tests, None]},
    ]
    return "WARNING: something\n" + json.dumps(
        {"DCGM GPU Diagnostic": {"test_categories": categories, "version": "3.2.0"}}
    )


def v4(*tests: dict[str, Any]) -> str:
    return json.dumps(
        {
            "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": list(tests)}]},
            "entity_groups": [{"entity_group": "GPU", "entities": [{"entity_id": 0, "serial_num": "1"}]}],
            "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
        }
    )


def test3(name: str, statuses: dict[int, str], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "results": [{"gpu_ids": str(gpu), "status": one, **more} for gpu, one in statuses.items()],
    }


def test4(name: str, statuses: dict[int, str], **more: Any) -> dict[str, Any]:
    results = [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": one, **more}
        for gpu, one in statuses.items()
    ]
    worst = "Fail" if "Fail" in statuses.values() else "Pass"
    return {"name": name, "results": results, "test_summary": {"status": worst}}


test3.__test__ = test4.__test__ = False  # type: ignore[attr-defined]


def passing(**but: str) -> dict[int, str]:
    return dict.fromkeys(range(8), "Pass") | {int(name[3:]): status for name, status in but.items()}


@pytest.fixture
def dcgmi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "dcgmi"


def asked(dcgmi: Path, output: str, code: int = 0, text: str = "", limit_s: float = 10) -> GateOutcome:
    """Run the program that asks a dcgmi which answers so, and judge what it told."""
    (dcgmi.parent / "answer").write_text(output)
    dcgmi.write_text(
        f'#!/bin/sh\n{text}\necho "$@" > {dcgmi.parent}/called\ncat {dcgmi.parent}/answer\nexit {code}\n'
    )
    dcgmi.chmod(0o755)
    return judged(told(dcgmi.parent, limit_s))


def told(folder: Path, limit_s: float = 10) -> list[dict[str, Any]]:
    report = folder / "report"
    report.unlink(missing_ok=True)
    argv = [sys.executable, "-I", "-S", str(PROGRAM), "2", str(limit_s), "0,1", str(report)]
    assert subprocess.run(argv, timeout=60, check=False).returncode == 0
    return [json.loads(line) for line in report.read_text().splitlines()]


def judged(lines: list[dict[str, Any]]) -> GateOutcome:
    it = Altered()
    for line in lines:
        it.put(line["name"], line["value"])
    it.ended[checks_dcgm.PROGRAM] = Outcome(exit_code=0)
    return it.judge()


def one(outcome: GateOutcome) -> Finding:
    (found,) = outcome.findings
    return found


def untold(outcome: GateOutcome) -> str:
    return " | ".join(one.reason for one in outcome.untold if one.check == "dcgm")


@pytest.mark.parametrize("form", [v3, v4])
def test_all_passed(form: Any, dcgmi: Path) -> None:
    make = test3 if form is v3 else test4
    outcome = asked(dcgmi, form(make("memory", passing(), info=["Allocated 83091914096 bytes (98.1%)"])))
    assert (outcome.verdict, outcome.findings, untold(outcome)) == (FIT, (), "")
    assert (dcgmi.parent / "called").read_text() == "diag -r 2 -j -i 0,1\n"


@pytest.mark.parametrize("form", [v3, v4])
@pytest.mark.parametrize("gpu", [0, 7])
def test_traps_8_and_26_a_failure_of_any_gpu_counts(form: Any, gpu: int, dcgmi: Path) -> None:
    make = test3 if form is v3 else test4
    statuses = passing(**{f"gpu{gpu}": "Fail"})
    outcome = asked(dcgmi, form(make("diagnostic", statuses, warnings=["a result was wrong"])), code=226)
    assert outcome.verdict is UNFIT
    found = one(outcome)
    assert (found.gpu, found.tag, found.weight) == (gpu, "dcgm-diagnostic", Weight.FAIL)
    assert found.observed == "a result was wrong"


def test_trap_8_gpus_without_a_result_are_said(dcgmi: Path) -> None:
    outcome = asked(dcgmi, v4(test4("memory", {0: "Pass"})))
    assert untold(outcome).count("no result of dcgmi diag is about it") == 7


@pytest.mark.parametrize(
    "words", ["Unable to allocate memory on GPU 0", "cuMemAlloc failed", "Allocation of 10 bytes failed"]
)
def test_trap_17_a_memory_test_without_memory_is_no_pass(words: str, dcgmi: Path) -> None:
    outcome = asked(dcgmi, v4(test4("memory", passing(), info=[words])))
    assert "passed without testing" in untold(outcome)


def test_trap_16_links_that_are_down_are_found_where_dcgm_passes(dcgmi: Path) -> None:
    lines = [{"name": "dcgm.results", "value": []}]
    it = Altered()
    it.put("gpu.nvlinks_active", [0] * 8)
    it.put("gpu.nvlinks_inactive", [18] * 8)
    it.put("dcgm.results", lines[0]["value"])
    it.ended[checks_dcgm.PROGRAM] = Outcome(exit_code=0)
    assert it.judge().verdict is UNFIT


@pytest.mark.parametrize("name", ["PCIe", "Memory Bandwidth", "nvbandwidth", "Targeted Power", "pcie"])
def test_traps_18_and_19_speeds_of_dcgm_warn_and_ours_decide(name: str, dcgmi: Path) -> None:
    outcome = asked(dcgmi, v3(test3(name, passing(gpu3="Fail"), warnings=["12 GB/s is below 20 GB/s"])))
    assert (outcome.verdict, one(outcome).weight) == (FIT, Weight.WARN)
    assert "own measurements decide" in one(outcome).advice


@pytest.mark.parametrize(("severity", "weight", "action"), [
    (6, Weight.FAIL, Action.RESET_GPU),
    (2, Weight.FAIL, Action.INSPECT),
    (5, Weight.WARN, Action.CHANGE_SETTING),
])  # fmt: skip
def test_the_gravity_that_dcgm_4_gives_decides(
    severity: int, weight: Weight, action: Action, dcgmi: Path
) -> None:
    warning = {"error_category": 8, "error_id": 29, "error_severity": severity, "warning": "words"}
    outcome = asked(dcgmi, v4(test4("pcie", passing(gpu2="Fail"), warnings=[warning])))
    assert (one(outcome).weight, one(outcome).action, one(outcome).observed) == (weight, action, "words")


def test_a_setting_is_no_fault_of_the_hardware(dcgmi: Path) -> None:
    """As a node with persistence mode off answers (DCGM 4.2.3)."""
    text = "Persistence Mode: Persistence mode for GPU 0 is disabled."
    warnings = [{"error_category": 8, "error_id": 29, "error_severity": 5, "warning": text}]
    data = json.loads(v4(test4("software", {0: "Fail"}, warnings=warnings)))
    data["DCGM Diagnostic"]["test_categories"][0]["category"] = "Deployment"
    outcome = asked(dcgmi, json.dumps(data), code=226)
    assert outcome.verdict is FIT
    assert {one.action for one in outcome.findings} == {Action.CHANGE_SETTING}


@pytest.mark.parametrize("status", ["Skip", "Not Run", "something new"])
def test_a_status_that_is_no_pass_is_said(status: str, dcgmi: Path) -> None:
    outcome = asked(dcgmi, v4(test4("memory", passing(gpu4=status))))
    assert f"memory on GPU 4: {status.lower()}" in untold(outcome)


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [
        (
            "Error: unable to establish a connection to the specified host: localhost",
            1,
            "no JSON, exit code 1",
        ),
        ('{"DCGM GPU Diagnostic": {"version": "4.2.3"}}', 1, "no result, exit code 1"),
        ('{"DCGM GPU Diagnostic": {"runtime_error": "no GPU is supported"}}', 1, "no GPU is supported"),
        (v4(test4("memory", passing())), 226, "dcgmi ended with 226 and names no failed test"),
    ],
)
def test_what_it_could_not_do_is_said(output: str, code: int, said: str, dcgmi: Path) -> None:
    outcome = asked(dcgmi, output, code)
    assert (outcome.verdict, outcome.findings) == (FIT, ())
    assert said in untold(outcome)


def test_one_that_takes_too_long_is_stopped_as_a_person_would(dcgmi: Path) -> None:
    mark = dcgmi.parent / "stopped"
    outcome = asked(dcgmi, "", text=f"trap 'touch {mark}; exit 1' INT; sleep 30 & wait", limit_s=0.5)
    assert untold(outcome) == "not finished within 0.5 s"
    assert mark.exists()


def test_without_dcgmi_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if any(
        Path(folder, "dcgmi").exists() for folder in ("/usr/bin", "/usr/local/bin", "/usr/local/dcgm/bin")
    ):
        pytest.skip("it is installed here")
    outcome = judged(told(tmp_path))
    assert (outcome.verdict, untold(outcome)) == (FIT, "dcgmi is not installed")


def test_only_the_deep_tier_asks_it_and_a_site_may_say_no() -> None:
    assert wants_dcgm(Wish("deep"))
    assert not wants_dcgm(Wish("standard"))
    assert not wants_dcgm(Wish("deep", Policy(options={"dcgm": 0})))
