"""PCIe links and AMD GPUs: what the kernel counted and printed, who is to blame, and what is harmless."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from gate_machines import ROOT, Altered
from planted_modules import loaded

from torchdoctor.gate.finding import Action, Finding, Verdict, Weight
from torchdoctor.gate.outcome import GateOutcome
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Blame
from torchdoctor.probes.machine import Outcome

FIT, UNFIT, OPEN = Verdict.FIT, Verdict.UNFIT, Verdict.INCONCLUSIVE
GPU1, AMD0 = "0000:43:00.0", "0000:c1:00.0"


def by_tag(outcome: GateOutcome, tag: str) -> Finding:
    (found,) = [one for one in outcome.findings if one.tag == tag]
    return found


# --- errors on a PCIe link


@pytest.mark.parametrize(
    ("row", "tag"),
    [
        ([GPU1, GPU1, 1000, 0, 0], "pcie-corrected"),
        ([GPU1, "0000:40:01.1", 250_000, 0, 0], "pcie-corrected"),
        ([GPU1, GPU1, 0, 2, 0], "pcie-uncorrected"),
        ([GPU1, GPU1, 0, 0, 1], "pcie-uncorrected"),
    ],
)
def test_errors_on_a_link_are_told_with_their_gpu(row: list[Any], tag: str) -> None:
    it = Altered()
    it.put("node.pcie_errors", [row])
    outcome = it.judge()
    found = by_tag(outcome, tag)
    assert (outcome.verdict, found.weight, found.blame) == (FIT, Weight.WARN, Blame.NODE)
    assert (found.gpu, found.pci, found.action) == (1, "0000:43:00", Action.INSPECT)
    assert found.observed
    assert found.source
    if row[1] != GPU1:
        assert row[1] in found.observed


@pytest.mark.parametrize(
    "line",
    [
        f"nvidia {GPU1}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
        f"nvidia {GPU1}: AER: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer",
        f"pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: {GPU1}",
        f"pcieport 0000:40:01.1: AER: Multiple Uncorrectable (Non-Fatal) error message received: {GPU1}",
    ],
)
def test_the_kernel_log_tells_of_them_where_nobody_counts(line: str) -> None:
    it = Altered()
    it.log(line)
    found = by_tag(it.judge(), "pcie-uncorrected")
    assert (found.gpu, found.weight) == (1, Weight.WARN)
    assert line in found.evidence


def test_a_site_may_count_them() -> None:
    it = Altered()
    it.put("node.pcie_errors", [[GPU1, GPU1, 0, 0, 1]])
    it.policy = Policy("site.toml", weights={"pcie-errors": "fail"})
    assert it.judge().verdict is UNFIT


@pytest.fixture
def node() -> ModuleType:
    return loaded(ROOT / "torchdoctor/probes/child/node.py")


def test_counters_of_sysfs_are_read(
    tmp_path: Path, node: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU below a port, as /sys/devices shows them: counters of both, requests nobody knows left out."""
    port = tmp_path / "devices" / "pci0000:40" / "0000:40:01.1"
    gpu = port / GPU1
    bus = tmp_path / "bus"
    gpu.mkdir(parents=True)
    bus.mkdir()
    (bus / GPU1).symlink_to(gpu)
    (gpu / "vendor").write_text("0x10de\n")
    (gpu / "class").write_text("0x030200\n")
    (gpu / "aer_dev_correctable").write_text("RxErr 0\nBadTLP 12\nBadDLLP 3\nTOTAL_ERR_COR 15\n")
    (gpu / "aer_dev_nonfatal").write_text("CmpltTO 1\nUnsupReq 40\nTOTAL_ERR_NONFATAL 41\n")
    (gpu / "aer_dev_fatal").write_text("DLP 0\nTOTAL_ERR_FATAL 0\n")
    (port / "aer_dev_correctable").write_text("RxErr 7\nTOTAL_ERR_COR 7\n")
    real = node.glob.glob
    monkeypatch.setattr(
        node.glob, "glob", lambda pattern: real(pattern.replace("/sys/bus/pci/devices", str(bus)))
    )
    assert node.pcie_errors() == {
        "node.pcie_errors": [[GPU1, GPU1, 15, 1, 0], [GPU1, "0000:40:01.1", 7, 0, 0]]
    }


def test_counters_of_amd_blocks_are_added(
    tmp_path: Path, node: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ras = tmp_path / AMD0 / "ras"
    ras.mkdir(parents=True)
    (ras / "umc_err_count").write_text("ue: 2\nce: 5\nde: 0\n")
    (ras / "gfx_err_count").write_text("ue: 1\nce: 0\n")
    (tmp_path / "0000:c2:00.0").mkdir()  # a card whose driver counts nothing
    real = node.glob.glob
    monkeypatch.setattr(
        node.glob, "glob", lambda pattern: real(pattern.replace("/sys/bus/pci/drivers/amdgpu", str(tmp_path)))
    )
    assert node.amd_errors() == {"node.amd_errors": [[AMD0, 3, 5]]}


# --- AMD GPUs


def mi300(count: int = 8) -> Altered:
    """A node with AMD GPUs alone: NVML is not there, the bus and the driver's counters are."""
    it = Altered()
    addresses = [f"0000:{0xC1 + gpu:02x}:00.0" for gpu in range(count)]
    it.drop("gate-nvml", "gpu.", Outcome(exit_code=0))
    it.put("driver.nvml_error", "NVML Shared Library Not Found")
    it.put("node.driver_version", "")
    it.put("node.modules", ["amdgpu"])
    it.put("node.nvswitches", 0)
    it.put("node.pci_gpus", [[one, "0x1002", "amdgpu", 16, 16, 0] for one in addresses])
    it.put("node.amd_errors", [[one, 0, 0] for one in addresses])
    it.put("kernel.lines", [])
    it.put("kernel.now_s", 9000.0)
    it.policy = Policy("site.toml", {"gpus": 8})
    return it


def said(*words: str, address: str = AMD0) -> list[str]:
    return [f"amdgpu {address}: amdgpu: {one}" for one in words]


BEGIN, DONE, FAILED = "GPU reset begin!", "GPU reset(1) succeeded!", "GPU reset(1) failed"
RING = "ring gfx_0.0.0 timeout, signaled seq=7073226, emitted seq=7073228"


def test_a_healthy_node_of_amd_gpus_is_fit_and_one_too_few_is_not() -> None:
    outcome = mi300().judge()
    assert outcome.verdict is FIT, (outcome.findings, outcome.untold)
    assert outcome.findings == ()
    outcome = mi300(7).judge()
    assert outcome.verdict is UNFIT
    assert by_tag(outcome, "gpu-count").observed == "7 GPUs, 7 on the PCI bus"


@pytest.mark.parametrize(
    ("lines", "verdict", "tag", "action"),
    [
        (["RAS records:140 exceed threshold:128"], UNFIT, "amd-ras-full", Action.RMA),
        (["RAS records:129 exceeds bad page threshold 128"], UNFIT, "amd-ras-full", Action.RMA),
        (["Saved bad pages 128 reaches threshold value 128"], UNFIT, "amd-ras-full", Action.RMA),
        (["RAS records:120 exceeds 90% of threshold:128"], FIT, "amd-ras-nearly-full", Action.RMA),
        (
            ["2 uncorrectable hardware errors detected in umc block"],
            UNFIT,
            "amd-ras-uncorrected",
            Action.RESET_GPU,
        ),
        (
            ["{17} socket: 1, die: 0, 1 new uncorrectable hardware errors detected in gfx block"],
            UNFIT,
            "amd-ras-uncorrected",
            Action.RESET_GPU,
        ),
        (["RAS poison consumption, unmap queue flow succeed: client id 27"], FIT, "amd-ras-contained", None),
        ([RING], FIT, "amd-ring-timeout", Action.INSPECT),
        (["ring gfx timeout, but soft recovered"], FIT, "amd-ring-timeout", Action.NONE),
        (["MES failed to respond to msg=RESET"], FIT, "amd-mes-silent", Action.INSPECT),
        ([RING, BEGIN, FAILED, "GPU reset end with ret = -110"], UNFIT, "amd-reset-failed", Action.REBOOT),
        ([RING, BEGIN], UNFIT, "amd-reset-unfinished", Action.REBOOT),
        ([RING, "GPU reset begin!. Source:  1", DONE], FIT, "amd-reset-done", Action.NONE),
        ([BEGIN, DONE] * 3, FIT, "amd-resets", Action.INSPECT),
        (["device lost from bus!"], UNFIT, "amd-lost", Action.REBOOT),
        (["Fatal error during GPU init"], UNFIT, "amd-not-started", Action.REBOOT),
    ],
)
def test_what_the_driver_says(lines: list[str], verdict: Verdict, tag: str, action: Action | None) -> None:
    it = mi300()
    it.log(*said(*lines))
    outcome = it.judge()
    assert outcome.verdict is verdict, outcome.findings
    found = by_tag(outcome, tag)
    assert found.pci == "0000:c1:00"
    assert action is None or found.action is action
    assert found.evidence
    if verdict is UNFIT:
        assert {one.blame for one in outcome.findings if one.counts} == {Blame.NODE}


# --- nodes without GPUs


def no_gpu(**variables: str) -> Altered:
    it = Altered()
    it.drop("gate-nvml", "gpu.", Outcome(exit_code=0))
    it.put("driver.nvml_error", "NVML Shared Library Not Found")
    for name, value in (("pci_gpus", []), ("driver_version", ""), ("modules", []), ("nvswitches", 0)):
        it.put(f"node.{name}", value)
    it.variables(**variables)
    return it


@pytest.mark.parametrize("variables", [{}, {"LOCAL_WORLD_SIZE": "4"}, {"SLURM_GPUS_ON_NODE": "0"}])
def test_a_node_of_processors_is_fit_where_no_gpu_is_expected(variables: dict[str, str]) -> None:
    it = no_gpu(**variables)
    it.policy = Policy("site.toml", {"gpus": 0})
    for tier in ("passive", "quick"):
        if tier == "quick":
            it.environment(
                torch="2.11.0+cpu", torch_cuda=None, cuda_available=False, devices=[], arch_list=[]
            )
        outcome = it.judge()
        assert outcome.verdict is FIT, (outcome.findings, outcome.untold)
        assert outcome.untold == ()


@pytest.mark.parametrize(
    ("policy", "variables", "verdict"),
    [
        ({"gpus": 8}, {}, UNFIT),  # the site says so
        ({"gpus": 0}, {"SLURM_PROCID": "0", "SLURM_STEP_GPUS": "0,1"}, OPEN),  # a container may hide them
        ({}, {"CUDA_VISIBLE_DEVICES": "0,1"}, OPEN),  # only the job itself says so
        ({}, {}, OPEN),
    ],
)
def test_no_gpu_where_some_are_expected_is_never_fit(
    policy: dict[str, Any], variables: dict[str, str], verdict: Verdict
) -> None:
    it = no_gpu(**variables)
    it.policy = Policy("site.toml", policy)
    assert it.judge().verdict is verdict


def test_recordings_hold_the_counters() -> None:
    for path in (ROOT / "tests" / "gate" / "machines").glob("*.json"):
        lines = json.loads(path.read_text())["programs"]["gate-node"]["lines"]
        assert "node.pcie_errors" in {one["name"] for one in lines}
