"""Whole machines: recorded ones as they are, and with one fault put in."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from torchdoctor import catalog
from torchdoctor.engine import FactBook
from torchdoctor.engine.check import check
from torchdoctor.engine.torch_imports import with_import
from torchdoctor.model import Reason, Report, State, Verdict
from torchdoctor.probes import nvidia_smi
from torchdoctor.probes.recording import RecordedSource

MACHINES = Path(__file__).parents[2] / "fixtures" / "machines"
HEALTHY = ("container-cpu", "laptop-cpu", "workstation-cuda-no-gpu", "h100")


def report(source: RecordedSource) -> Report:
    facts = FactBook(source)
    return with_import(check(facts, catalog.load()), facts)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine(name: str) -> None:
    """Nothing above a note: stock limits, no GPU, an idle GPU are no findings."""
    found = report(RecordedSource(str(MACHINES / f"{name}.json")))
    assert [(one.id, one.verdict) for one in found.checks if one.verdict is not Verdict.PASS] == []
    assert len(found.checks) > 15


class Faulty:
    """The H100 machine, to be changed before it is opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data: dict[str, Any] = json.loads((MACHINES / "h100.json").read_text(encoding="utf-8"))
        del self.data["facts"]  # only what was read counts

    def read(self, key: str, value: object) -> None:
        assert key in self.data["reads"], key
        self.data["reads"][key] = value

    def smi(self, old: str, new: str) -> None:
        """Replace in the listing; one blank before ":" stands for as many as there are."""
        program = self.data["programs"]["nvidia-smi -q"]
        pattern = re.escape(old).replace(r"\ :", r" +:")
        program["stdout"], number = re.subn(pattern, new, program["stdout"])
        assert number, old

    def torch_says(self, name: str, value: object) -> None:
        lines = self.data["programs"]["import+cuda"]["lines"]
        assert any(line.get("name") == name for line in lines), name
        for line in lines:
            if line.get("name") == name:
                line.pop("state", None)
                line["value"] = value

    def open(self) -> RecordedSource:
        path = self.folder / "machine.json"
        path.write_text(json.dumps(self.data), encoding="utf-8")
        return RecordedSource(str(path))

    def findings(self) -> set[str]:
        source = self.open()
        found = {one.id for one in report(source).checks if one.verdict in (Verdict.FAIL, Verdict.WARN)}
        assert source.faults == []
        return found


@pytest.fixture
def h100(tmp_path: Path) -> Faulty:
    return Faulty(tmp_path)


def test_what_the_h100_tells(h100: Faulty) -> None:
    source = h100.open()
    values = {
        name: source.fetch(name).value
        for name in (
            "driver.version",
            "driver.kernel_kind",
            "driver.cuda",
            "driver.present",
            "driver.library_matches",
            "driver.covers_torch_cuda",
            "gpu.count",
            "gpu.names",
            "gpu.compute_capability",
            "gpu.memory_total_bytes",
            "gpu.mig",
            "gpu.exclusive",
            "gpu.visible_count",
            "torch.covers_gpu",
            "gpu.recovery_actions",
            "gpu.ecc_failed",
            "gpu.throttled",
        )
    }
    assert values == {
        "driver.version": "580.159.04",
        "driver.kernel_kind": "open",
        "driver.cuda": "13.0",
        "driver.present": True,
        "driver.library_matches": True,
        "driver.covers_torch_cuda": True,
        "gpu.count": 1,
        "gpu.names": ("NVIDIA H100 80GB HBM3",),
        "gpu.compute_capability": ("9.0",),
        "gpu.memory_total_bytes": (81559 << 20,),
        "gpu.mig": False,
        "gpu.exclusive": False,
        "gpu.visible_count": 1,
        "torch.covers_gpu": True,
        "gpu.recovery_actions": ("none",),
        "gpu.ecc_failed": False,
        "gpu.throttled": False,
    }


def _driver(h100: Faulty, version: str, cuda: str) -> None:
    text = json.dumps(h100.data).replace("580.159.04", version)
    h100.data = json.loads(text)
    h100.smi(": 13.0\n", f": {cuda}\n")


def test_a_driver_that_is_too_old(h100: Faulty) -> None:
    _driver(h100, "535.54.03", "12.2")
    assert "driver-too-old" in h100.findings()


def test_an_older_driver_of_the_same_major_version_is_no_error(h100: Faulty) -> None:
    _driver(h100, "535.54.03", "12.2")
    version = next(key for key in h100.data["reads"] if key.endswith("/torch/version.py"))
    h100.data["reads"][version]["is"] = "__version__ = '2.5.1+cu124'\ncuda: Optional[str] = '12.4'\n"
    source = h100.open()
    assert source.fetch("driver.covers_torch_cuda").value is True
    assert source.fetch("driver.minor_compatible").value is True
    assert "driver-too-old" not in h100.findings()


def test_no_code_for_the_gpu(h100: Faulty) -> None:
    h100.torch_says("torch.arch_list", ["sm_100", "sm_120"])
    assert h100.findings() == {"no-kernel-image"}


def test_an_arch_list_that_could_not_be_told(h100: Faulty) -> None:
    lines = h100.data["programs"]["import+cuda"]["lines"]
    lines[:] = [line for line in lines if line.get("name") != "torch.arch_list"]
    lines.append(
        {"name": "torch.arch_list", "state": "unknown", "reason": "unparsable", "detail": "no answer"}
    )
    assert h100.findings() == set()
    assert h100.open().fetch("torch.covers_gpu").reason is Reason.UNPARSABLE


def test_all_gpus_hidden(h100: Faulty) -> None:
    h100.read("variable CUDA_VISIBLE_DEVICES", {"is": "-1"})
    assert "no-cuda-gpus" in h100.findings()


def test_libraries_newer_than_the_kernel_module(h100: Faulty) -> None:
    for name in ("libcuda", "libnvidia-ml"):
        path = f"/usr/lib/x86_64-linux-gnu/{name}.so"
        h100.read(f"real {path}.1", {"is": f"{path}.590.48.01"})
    words = "Failed to initialize NVML: Driver/library version mismatch"
    h100.data["programs"]["nvidia-smi -q"] = {
        "exit_code": 18,
        "stdout": f"{words}\nNVML library version: 590.48\n",
    }
    source = h100.open()
    assert (
        source.fetch("driver.nvml_error").value
        == "Failed to initialize NVML: Driver/library version mismatch"
    )
    assert source.fetch("gpu.count").state is State.UNKNOWN
    assert "driver-library-mismatch" in h100.findings()


def test_a_container_started_without_the_gpu_runtime(h100: Faulty) -> None:
    """It sees the host's /proc/driver/nvidia and its PCI bus, and nothing else of the driver."""
    nodes = next(key for key in h100.data["reads"] if key.startswith("folder /dev?nvidia[0-9]*|"))
    h100.read(nodes, {"is": []})
    for name in ("libcuda", "libnvidia-ml"):
        h100.read(f"cache {name}.so.1", {"is": {}})
        for folder in (
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
            "/usr/lib/wsl/lib",
            "/usr/local/nvidia/lib64",
        ):
            h100.data["reads"][f"status {folder}/{name}.so.1"] = {"missing": True}
    source = h100.open()
    present = source.fetch("driver.present")
    assert present.value is False
    assert "was not given it" in present.detail


def test_no_driver_for_a_gpu(h100: Faulty) -> None:
    h100.read("file /proc/driver/nvidia/version", {"missing": True})
    h100.read("status /proc/driver/nvidia/version", {"missing": True})
    nodes = next(key for key in h100.data["reads"] if key.startswith("folder /dev?nvidia[0-9]*|"))
    h100.read(nodes, {"is": []})
    h100.read("status /dev/nvidiactl", {"missing": True})
    for path in ("/dev/dxg", "/dev/nvhost-ctrl-gpu"):
        h100.data["reads"][f"status {path}"] = {"missing": True}
    for name in ("libcuda", "libnvidia-ml"):
        h100.read(f"cache {name}.so.1", {"is": {}})
        for folder in (
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
            "/usr/lib/wsl/lib",
            "/usr/local/nvidia/lib64",
        ):
            h100.data["reads"][f"status {folder}/{name}.so.1"] = {"missing": True}
    del h100.data["programs"]["nvidia-smi -q"]
    source = h100.open()
    assert source.fetch("driver.version").state is State.ABSENT
    assert source.fetch("gpu.count").value == 0
    assert source.fetch("gpu.pci_count").value == 1
    assert "driver-not-found" in h100.findings()


def test_nvml_that_hung_is_not_no_gpu(h100: Faulty) -> None:
    h100.data["programs"]["nvml"] = {"timed_out": True, "seconds": 20.0, "note": "timed out"}
    del h100.data["programs"]["nvidia-smi -q"]
    source = h100.open()
    assert source.fetch("gpu.count").reason is Reason.TIMED_OUT
    assert source.fetch("gpu.names").reason is Reason.TIMED_OUT
    # the kernel's own file tells the version all the same
    assert source.fetch("driver.version").value == "580.159.04"
    assert source.fetch("driver.covers_torch_cuda").value is True
    assert "no-cuda-gpus" not in h100.findings()


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("MIG Mode\n        Current : Disabled", "MIG Mode\n        Current : Enabled", "gpu.mig"),
        ("Compute Mode : Default", "Compute Mode : Exclusive_Process", "gpu.exclusive"),
        ("HW Power Brake Slowdown : Not Active", "HW Power Brake Slowdown : Active", "gpu.throttled"),
        ("Current : 16x", "Current : 8x", "gpu.pcie_degraded"),
        ("Remapping Failure Occurred : No", "Remapping Failure Occurred : Yes", "gpu.ecc_failed"),
        ("Used : 0 MiB", "Used : 70000 MiB", "gpu.held_by_dead"),
        ("Pass-Through", "VGPU", "gpu.virtual"),
        ("Product Architecture : Hopper", "Product Architecture : Blackwell", ""),
    ],
)
def test_states_of_the_gpu(old: str, new: str, fact: str, h100: Faulty) -> None:
    h100.smi(old, new)
    source = h100.open()
    if fact:
        assert source.fetch(fact).value is True
    else:  # a generation of several compute capabilities is no answer
        assert source.fetch("gpu.compute_capability").state is State.UNKNOWN


def test_processes_in_the_listing(h100: Faulty) -> None:
    h100.smi(
        "    Processes : None\n",
        "    Processes\n        GPU instance ID        : N/A\n        Process ID             : 4711\n"
        "            Type                          : C\n            Name                          : python3\n"
        "            Used GPU Memory               : 1024 MiB\n",
    )
    assert h100.open().fetch("gpu.processes").value == ((0, 4711, 1 << 30, "compute"),)


@pytest.mark.parametrize("text", ["", "garbage", "GPU 00000000:00:06.0\n", "a : b\n    c : d\n", "\x00" * 50])
def test_listings_that_are_none(text: str, h100: Faulty) -> None:
    h100.data["programs"]["nvidia-smi -q"]["stdout"] = text
    source = h100.open()
    assert source.fetch("gpu.names").state is not State.KNOWN
    assert source.faults == []


def test_a_listing_of_many_gpus() -> None:
    block = (
        "GPU 0001{:04X}:9A:00.0\n    Product Name : NVIDIA H200\n    PCI\n        GPU Link Info\n"
        "            Link Width\n                Current : 16x\n"
    )
    listing = nvidia_smi.parse(
        "Driver Version : 580.1\n" + "".join(block.format(index) for index in range(8))
    )
    assert len(listing.gpus) == 8
    assert listing.gpus[7]["address"] == "00010007:9a:00.0"  # with its domain
    assert listing.gpus[7]["PCI/GPU Link Info/Link Width/Current"] == "16x"


def test_a_laptop_with_debris(tmp_path: Path) -> None:
    """Small /dev/shm, a stale lock and a debug variable on an otherwise healthy machine."""
    data = json.loads((MACHINES / "laptop-cpu.json").read_text(encoding="utf-8"))
    del data["facts"]
    reads = copy.deepcopy(data["reads"])
    reads["space /dev/shm"] = {"is": {"total": 64 << 20, "free": 1 << 20, "used": 63 << 20}}
    reads["variable CUDA_LAUNCH_BLOCKING"] = {"is": "1"}
    reads["value now"] = {"is": 1_800_000_000.0}
    folder = next(key for key in reads if key.startswith("folder /") and key.endswith("/torch_extensions"))
    place = folder.removeprefix("folder ")
    reads[folder] = {"is": ["fused"]}
    reads[f"status {place}/fused"] = {"is": {"folder": True, "size": 1, "modified": 1.0, "mode": 0o755}}
    reads[f"folder {place}/fused"] = {"is": ["build.ninja", "lock"]}
    for name in ("build.ninja", "lock"):
        reads[f"status {place}/fused/{name}"] = {
            "is": {"folder": False, "size": 0, "modified": 1.0, "mode": 0o644}
        }
    reads[f"status {place}"] = {"is": {"folder": True, "size": 1, "modified": 1.0, "mode": 0o755}}
    reads[f"real {place}"] = {"is": place}
    reads[f"access wx:{place}"] = {"is": True}
    reads[f"space {place}"] = {"is": {"total": 9, "free": 9, "used": 0}}
    reads[f"holders {place}/fused/lock"] = {"is": {"pids": [], "complete": True}}
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({**data, "reads": reads}), encoding="utf-8")
    source = RecordedSource(str(path))
    assert source.fetch("shm.small").value is True
    assert source.fetch("extension.lock_stale").value is True
    assert source.fetch("env.leaked_debug").value == ("CUDA_LAUNCH_BLOCKING=1: every kernel launch waits",)
    found = {one.id for one in report(source).checks if one.verdict in (Verdict.FAIL, Verdict.WARN)}
    assert "dataloader-shm" in found
    assert source.faults == []


@pytest.mark.parametrize("question", ["torch.cudnn_error", "torch.cuda_error"])
def test_a_setting_of_the_allocator_that_torch_refuses(question: str, h100: Faulty) -> None:
    """torch 2.11 on an H200: the first question that starts CUDA is refused, the later ones are not."""
    words = "ValueError: Unrecognized key 'bogus' in CUDA allocator config."
    facts = json.loads((MACHINES / "h100.json").read_text(encoding="utf-8"))["facts"]
    facts[question] = {"state": "known", "value": words, "source": "python"}
    facts["env.PYTORCH_CUDA_ALLOC_CONF"] = {"state": "known", "value": "bogus:1", "source": "environment"}
    h100.data = {"schema": h100.data["schema"], "facts": facts}
    found = {one.id: one for one in report(h100.open()).checks}
    assert found["torch-cuda"].verdict is Verdict.FAIL
    assert found["torch-cuda"].action == "Change or unset PYTORCH_CUDA_ALLOC_CONF."
