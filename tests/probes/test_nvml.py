"""NVML in a process of its own: what it tells, and that its hanging, dying and refusing are facts."""

from __future__ import annotations

import ast
import getpass
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import replay

from torchdoctor.model import Reason, State
from torchdoctor.probes import nvml
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Outcome
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Limits
from torchdoctor.probes.source import ProbeSource

# A pynvml of two GPUs, as far as the program asks it. A test replaces functions of it.
FAKE = """
class NVMLError(Exception): pass
class NVMLError_NotSupported(NVMLError): pass
class NVMLError_FunctionNotFound(NVMLError): pass
class NVMLError_NoPermission(NVMLError): pass
class NVMLError_InvalidArgument(NVMLError): pass
class Bag:
    def __init__(self, **values): self.__dict__.update(values)
NVML_BRAND_NVIDIA, NVML_BRAND_COUNT, NVML_NVLINK_MAX_LINKS = 14, 18, 4
NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return "580.159.04"
def nvmlSystemGetCudaDriverVersion(): return 13000
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetName(gpu): return b"NVIDIA H100 80GB HBM3"
def nvmlDeviceGetCudaComputeCapability(gpu): return (9, 0)
def nvmlDeviceGetUUID(gpu): return "GPU-%08d" % gpu
def nvmlDeviceGetPciInfo(gpu): return Bag(domain=0x1, bus=0x9A + gpu, device=0)
def nvmlDeviceGetBrand(gpu): return 14
def nvmlDeviceGetComputeMode(gpu): return 3 * gpu
def nvmlDeviceGetVirtualizationMode(gpu): return 1
def nvmlDeviceGetPersistenceMode(gpu): return 1
def nvmlDeviceGetDisplayActive(gpu): return 0
def nvmlDeviceGetMigMode(gpu): return [gpu, gpu]
def nvmlDeviceGetMaxMigDeviceCount(gpu): return 7
def nvmlDeviceGetMigDeviceHandleByIndex(gpu, index):
    if index > 1: raise NVMLError("Not Found")
def nvmlDeviceGetMemoryInfo(gpu): return Bag(total=80 << 30, used=gpu << 30, free=(80 - gpu) << 30)
def nvmlDeviceGetComputeRunningProcesses(gpu): return [Bag(pid=4711, usedGpuMemory=1 << 30)] if gpu else []
def nvmlDeviceGetGraphicsRunningProcesses(gpu): return []
def nvmlDeviceGetFieldValues(gpu, fields): return [Bag(nvmlReturn=0, value=Bag(uiVal=gpu))]
def nvmlDeviceGetCurrentClocksEventReasons(gpu): return 0x41 if gpu else 0x1
def nvmlDeviceGetCurrPcieLinkWidth(gpu): return 16 >> gpu
def nvmlDeviceGetMaxPcieLinkWidth(gpu): return 16
def nvmlDeviceGetCurrPcieLinkGeneration(gpu): return 1
def nvmlDeviceGetMaxPcieLinkGeneration(gpu): return 5
def nvmlDeviceGetEccMode(gpu): return [1, 1]
def nvmlDeviceGetTotalEccErrors(gpu, kind, counter): return gpu * 2 if counter else 0
def nvmlDeviceGetRemappedRows(gpu): return (0, 0, gpu, 0)
def nvmlDeviceGetNvLinkState(gpu, link):
    if link == 3: raise NVMLError_NotSupported("Not Supported")
    return int(link != 2 or not gpu)
class c_nvmlGpuFabricInfo_t:
    pass
def nvmlDeviceGetGpuFabricInfo(gpu, info): raise NVMLError_NotSupported("Not Supported")
def nvmlDeviceGetUtilizationRates(gpu): return Bag(gpu=gpu * 97)
def nvmlDeviceGetTemperature(gpu, sensor): return 33
def nvmlDeviceGetPowerUsage(gpu): return 125400
def nvmlDeviceGetEnforcedPowerLimit(gpu): return 700000
def nvmlDeviceGetClockInfo(gpu, clock): return 1980
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProbeSource]:
    """A machine whose NVML is the fake one, with some of it replaced."""

    def open_it(changes: str = "", limit_s: float = 20.0) -> ProbeSource:
        (tmp_path / "pynvml.py").write_text(FAKE + changes, encoding="utf-8")
        monkeypatch.setattr(nvml, "any_sign", lambda context: True)
        monkeypatch.setattr(nvml, "_folder_of_pynvml", lambda: str(tmp_path))
        return ProbeSource(LiveMachine(), limits=Limits(nvml_s=limit_s))

    return open_it


def test_two_gpus(ask: Callable[..., ProbeSource]) -> None:
    source = ask()
    values = {name: source.fetch(name).value for name in CATALOGUE["nvml"]}
    assert values["driver.nvml_version"] == "580.159.04"
    assert values["driver.nvml_cuda"] == "13.0"
    assert values["gpu.nvml_count"] == 2
    assert values["gpu.names"] == ("NVIDIA H100 80GB HBM3",) * 2
    assert values["gpu.compute_capability"] == ("9.0", "9.0")
    assert values["gpu.pci"] == ("00000001:9a:00.0", "00000001:9b:00.0")  # with its domain
    assert values["gpu.compute_modes"] == ("default", "exclusive-process")
    assert values["gpu.virtualization"] == ("passthrough", "passthrough")
    assert values["gpu.mig_modes"] == (False, True)
    assert values["gpu.mig_instances"] == 2
    assert values["gpu.memory_used_bytes"] == (0, 1 << 30)
    assert values["gpu.processes"] == ((1, 4711, 1 << 30, "compute"),)
    assert values["gpu.recovery_actions"] == ("none", "reset")
    assert values["gpu.throttle_reasons"] == ((), ("hw-thermal-slowdown",))
    assert values["gpu.pcie_width"] == (16, 8)
    assert values["gpu.ecc_uncorrected"] == (0, 0)
    assert values["gpu.ecc_uncorrected_total"] == (0, 2)
    assert values["gpu.remap_pending"] == (False, True)
    assert values["gpu.nvlinks_active"] == (3, 2)
    assert values["gpu.nvlinks_inactive"] == (0, 1)
    assert values["gpu.power_w"] == (125.4, 125.4)
    assert values["gpu.errors"] == ()
    assert source.fetch("gpu.fabric_states").state is State.ABSENT
    assert source.fetch("driver.nvml_error").state is State.ABSENT
    assert source.fetch("gpu.count").value == 2
    assert source.faults == []


def test_nvml_refuses(ask: Callable[..., ProbeSource]) -> None:
    source = ask('def nvmlInit(): raise NVMLError("Driver/library version mismatch")')
    assert source.fetch("driver.nvml_error").value == "Driver/library version mismatch"
    count = source.fetch("gpu.count")
    assert (count.state, count.reason) == (State.UNKNOWN, Reason.CRASHED)
    assert "mismatch" in count.detail


def test_nvml_hangs(ask: Callable[..., ProbeSource]) -> None:
    source = ask("import time\ndef nvmlInit(): time.sleep(600)", limit_s=0.7)
    begun = time.monotonic()
    fact = source.fetch("gpu.names")
    assert time.monotonic() - begun < 4
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.TIMED_OUT)
    assert "did not answer" in str(source.fetch("driver.nvml_error").value)
    assert source.fetch("gpu.count").state is State.UNKNOWN  # and not 0


def test_nvml_dies_half_way(ask: Callable[..., ProbeSource]) -> None:
    source = ask("import os\ndef nvmlDeviceGetUUID(gpu): os.abort()")
    assert source.fetch("gpu.names").state is State.KNOWN  # asked before
    assert source.fetch("gpu.count").value == 2
    fact = source.fetch("gpu.uuids")
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.CRASHED)
    assert "SIGABRT" in fact.detail


def test_a_lost_gpu(ask: Callable[..., ProbeSource]) -> None:
    source = ask(
        "def nvmlDeviceGetName(gpu):\n"
        "    if gpu == 1: raise NVMLError('GPU is lost')\n    return 'NVIDIA A100-SXM4-80GB'\n"
    )
    assert source.fetch("gpu.names").value == ("NVIDIA A100-SXM4-80GB", None)
    assert source.fetch("gpu.errors").value == ("GPU 1: GPU is lost",)
    assert source.fetch("gpu.lost").value is True


def test_a_gpu_without_handle(ask: Callable[..., ProbeSource]) -> None:
    source = ask(
        "def nvmlDeviceGetHandleByIndex(index):\n"
        "    if index == 0: raise NVMLError('Unknown Error')\n    return index\n"
    )
    assert source.fetch("gpu.names").value == (None, "NVIDIA H100 80GB HBM3")
    assert source.fetch("gpu.errors").value == ("GPU 0: Unknown Error",)
    assert source.fetch("gpu.compute_capability").value == (None, "9.0")


def test_an_older_pynvml_that_lacks_calls(ask: Callable[..., ProbeSource]) -> None:
    source = ask(
        "del nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetRemappedRows, nvmlDeviceGetFieldValues"
    )
    assert source.fetch("gpu.remap_failed").state is State.ABSENT
    assert source.fetch("gpu.throttle_reasons").state is State.ABSENT
    assert source.fetch("gpu.sm_clock_mhz").value == (1980, 1980)
    assert source.fetch("gpu.errors").value == ()


def test_no_gpu_behind_a_driver(ask: Callable[..., ProbeSource]) -> None:
    source = ask("def nvmlDeviceGetCount(): return 0")
    assert source.fetch("gpu.nvml_count").value == 0
    assert source.fetch("gpu.names").value == ()
    assert source.fetch("gpu.count").value == 0


def test_no_sign_of_a_driver_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "any_sign", lambda context: False)
    source = ProbeSource(LiveMachine())
    assert source.fetch("driver.nvml_version").state is State.ABSENT
    assert source.fetch("gpu.count").value == 0
    assert not source.machine.running("nvml")


def test_without_pynvml_nvidia_smi_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[..., ProbeSource]
) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\n[ "$1" = -q ] || { echo 8.6; exit; }\n'
        'printf "Driver Version                        : 535.54.03\\nCUDA Version                   : 12.2\\n'
        'GPU 00000000:01:00.0\\n    Product Name                : NVIDIA RTX A6000\\n"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    source = ask()
    (tmp_path / "pynvml.py").write_text("raise ImportError('none here')")
    assert source.fetch("driver.version").value == "535.54.03"
    assert source.fetch("driver.cuda").value == "12.2"
    assert source.fetch("gpu.names").value == ("NVIDIA RTX A6000",)
    assert source.fetch("gpu.compute_capability").value == ("8.6",)


def test_every_call_is_one_that_pynvml_has() -> None:
    pynvml = pytest.importorskip("pynvml")
    source = Path(nvml.__file__).parent / "child" / "nvml.py"
    names = {
        node.attr
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nvml"
    }
    assert len(names) > 30
    assert {name for name in names if not hasattr(pynvml, name)} == set()


def test_who_owns_a_process(ask: Callable[..., ProbeSource]) -> None:
    pid = os.getpid()
    running = f"[Bag(pid=one, usedGpuMemory=1) for one in ({pid}, 2**22 + 1)]"
    source = ask(f"def nvmlDeviceGetComputeRunningProcesses(gpu): return {running}\n")
    (row,) = source.fetch("gpu.owners").value  # type: ignore[misc, union-attr]
    assert isinstance(row, tuple)
    assert (row[0], row[2], row[4]) == (pid, getpass.getuser(), False)
    assert isinstance(row[3], int)
    assert 0 <= row[3] < 36000


def test_errors_in_the_kernel_log() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    told = (
        {"name": "kernel.now_s", "value": 9000.0},
        {"name": "kernel.lines", "value": [[1800.0, line], [5.0, "x"]]},
    )
    source = replay({}, {"kernel-log": Outcome(exit_code=0, lines=told)})
    assert source.fetch("kernel.gpu_errors").value == (("0000:3b:00", 79, 7200),)
    refused = {"name": "kernel.lines", "state": "unknown", "reason": "not-permitted", "detail": "/dev/kmsg"}
    fact = replay({}, {"kernel-log": Outcome(exit_code=0, lines=(refused,))}).fetch("kernel.gpu_errors")
    assert (fact.reason, fact.detail) == (Reason.NOT_PERMITTED, "/dev/kmsg")
