"""What NVML says about driver and GPUs. Runs in a process of its own, since a sick driver hangs or kills it.

Called as ``python nvml.py FOLDER FILE``: FOLDER holds pynvml, facts go to FILE, one JSON object a line, the
harmless questions first. A GPU that does not answer has None in a list; what it said stands in gpu.errors.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

REPORT = sys.argv[2] if len(sys.argv) > 2 else ""

# nvmlClocksEventReason* of nvml.h; idle, application clocks and display clocks hold nothing down
THROTTLE = {
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x20: "sw-thermal-slowdown",
    0x40: "hw-thermal-slowdown",
    0x80: "hw-power-brake",
}
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host-vgpu", 4: "host-vsga"}
RECOVERY = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain-p2p",
    4: "drain-and-reset",
    5: "recover-imex-domain",
    6: "bus-reset",
    7: "system-reboot",
}
FABRIC = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}
UNCORRECTED, SINCE_LOAD, EVER = 1, 0, 1


def write(record: dict[str, object]) -> None:
    with open(REPORT, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")


def fact(name: str, value: object) -> None:
    write({"name": name, "value": value})


def text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Gpus:
    """All GPUs, asked one question after the other."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml
        self.errors: list[str] = []
        self.handles: list[Any] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = None
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
            except nvml.NVMLError as error:
                self.errors.append(f"GPU {index}: {error}")
            self.handles.append(handle)

    def each(self, name: str, ask: Callable[[Any], object]) -> list[object]:
        """Ask every GPU and write the list, unless none of them knows the question."""
        answers: list[object] = []
        for index, handle in enumerate(self.handles):
            answers.append(self._one(index, handle, ask))
        if any(answer is not None for answer in answers) or not answers:
            fact(name, answers)
        else:
            write({"name": name, "state": "absent", "detail": "no GPU answers this"})
        return answers

    def _one(self, index: int, handle: Any, ask: Callable[[Any], object]) -> object:
        nvml = self.nvml
        if handle is None:
            return None
        try:
            return ask(handle)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NoPermission):
            return None
        except nvml.NVMLError as error:
            said = f"GPU {index}: {error}"
            if said not in self.errors:
                self.errors.append(said)
            return None
        except (AttributeError, TypeError):  # an older pynvml that lacks the call or takes it otherwise
            return None


def capability(major: int, minor: int) -> str:
    return f"{major}.{minor}"


def address(info: Any) -> str:
    return f"{info.domain:08x}:{info.bus:02x}:{info.device:02x}.0"


def describe(gpus: Gpus, nvml: Any) -> None:
    names = [name for name in dir(nvml) if name.startswith("NVML_BRAND_") and name != "NVML_BRAND_COUNT"]
    brands = {getattr(nvml, name): name[len("NVML_BRAND_") :].lower() for name in names}
    gpus.each("gpu.names", lambda gpu: text(nvml.nvmlDeviceGetName(gpu)))
    gpus.each("gpu.compute_capability", lambda gpu: capability(*nvml.nvmlDeviceGetCudaComputeCapability(gpu)))
    gpus.each("gpu.uuids", lambda gpu: text(nvml.nvmlDeviceGetUUID(gpu)))
    gpus.each("gpu.pci", lambda gpu: address(nvml.nvmlDeviceGetPciInfo(gpu)))
    gpus.each("gpu.brand", lambda gpu: brands.get(nvml.nvmlDeviceGetBrand(gpu), "unknown"))
    gpus.each("gpu.compute_modes", lambda gpu: COMPUTE_MODES.get(nvml.nvmlDeviceGetComputeMode(gpu)))
    gpus.each("gpu.virtualization", lambda gpu: VIRTUALIZATION.get(nvml.nvmlDeviceGetVirtualizationMode(gpu)))
    gpus.each("gpu.persistence", lambda gpu: bool(nvml.nvmlDeviceGetPersistenceMode(gpu)))
    gpus.each("gpu.display_active", lambda gpu: bool(nvml.nvmlDeviceGetDisplayActive(gpu)))
    modes = gpus.each("gpu.mig_modes", lambda gpu: bool(nvml.nvmlDeviceGetMigMode(gpu)[0]))
    pairs = zip(gpus.handles, modes, strict=True)
    fact("gpu.mig_instances", sum(mig_instances(nvml, gpu) for gpu, mode in pairs if mode))


def mig_instances(nvml: Any, gpu: Any) -> int:
    found = 0
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
            found += 1
        except nvml.NVMLError:
            continue
    return found


def measure(gpus: Gpus, nvml: Any) -> None:
    # The second version tells what the driver reserves apart from what is used.
    version = getattr(nvml, "nvmlMemory_v2", None)

    def memory(gpu: Any) -> Any:
        if version is not None:
            try:
                return nvml.nvmlDeviceGetMemoryInfo(gpu, version=version)
            except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported, TypeError):
                pass
        return nvml.nvmlDeviceGetMemoryInfo(gpu)

    gpus.each("gpu.memory_total_bytes", lambda gpu: int(memory(gpu).total))
    gpus.each("gpu.memory_used_bytes", lambda gpu: int(memory(gpu).used))
    gpus.each("gpu.memory_free_bytes", lambda gpu: int(memory(gpu).free))
    processes: list[list[Any]] = []
    for index, gpu in enumerate(gpus.handles):
        for kind, ask in (
            ("compute", nvml.nvmlDeviceGetComputeRunningProcesses),
            ("graphics", nvml.nvmlDeviceGetGraphicsRunningProcesses),
        ):
            try:
                running = ask(gpu) if gpu is not None else []
            except (nvml.NVMLError, AttributeError):
                continue
            processes.extend([index, one.pid, one.usedGpuMemory, kind] for one in running)
    fact("gpu.processes", processes)
    gpus.each("gpu.utilization", lambda gpu: int(nvml.nvmlDeviceGetUtilizationRates(gpu).gpu))
    pids = sorted({one[1] for one in processes})
    fact("gpu.owners", [told for pid in pids if (told := owner(pid)) is not None])


def owner(pid: int) -> list[object] | None:
    """Number, command, user, age in seconds, and whether the parent is gone; None for one we cannot see."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            name, _, rest = stream.read().partition("(")[2].rpartition(")")
        with open("/proc/uptime", encoding="ascii") as stream:
            uptime_s = float(stream.read().split()[0])
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as stream:
            service = ".service" in stream.read()
        number = os.stat(f"/proc/{pid}").st_uid
    except (OSError, ValueError, IndexError):
        return None
    fields = rest.split()
    age_s = round(uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    try:
        import pwd

        user = pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        user = str(number)
    # a service is a child of the first process by right; a program whose parent died becomes one
    return [pid, name, user, age_s, fields[1] == "1" and not service]


def examine_health(gpus: Gpus, nvml: Any) -> None:
    gpus.each("gpu.recovery_actions", lambda gpu: recovery(nvml, gpu))
    gpus.each("gpu.throttle_reasons", lambda gpu: throttle(nvml, gpu))
    gpus.each("gpu.pcie_width", lambda gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu))
    gpus.each("gpu.pcie_width_max", lambda gpu: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu))
    gpus.each("gpu.pcie_generation", lambda gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu))
    gpus.each("gpu.pcie_generation_max", lambda gpu: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu))
    gpus.each("gpu.ecc_enabled", lambda gpu: bool(nvml.nvmlDeviceGetEccMode(gpu)[0]))
    gpus.each(
        "gpu.ecc_uncorrected", lambda gpu: nvml.nvmlDeviceGetTotalEccErrors(gpu, UNCORRECTED, SINCE_LOAD)
    )
    gpus.each(
        "gpu.ecc_uncorrected_total", lambda gpu: nvml.nvmlDeviceGetTotalEccErrors(gpu, UNCORRECTED, EVER)
    )
    gpus.each("gpu.remap_pending", lambda gpu: bool(nvml.nvmlDeviceGetRemappedRows(gpu)[2]))
    gpus.each("gpu.remap_failed", lambda gpu: bool(nvml.nvmlDeviceGetRemappedRows(gpu)[3]))
    gpus.each("gpu.nvlinks_active", lambda gpu: links(nvml, gpu).count(True) if links(nvml, gpu) else None)
    gpus.each("gpu.nvlinks_inactive", lambda gpu: links(nvml, gpu).count(False) if links(nvml, gpu) else None)
    gpus.each("gpu.fabric_states", lambda gpu: fabric(nvml, gpu))
    gpus.each("gpu.temperature_c", lambda gpu: nvml.nvmlDeviceGetTemperature(gpu, 0))
    gpus.each("gpu.power_w", lambda gpu: round(nvml.nvmlDeviceGetPowerUsage(gpu) / 1000, 1))
    gpus.each("gpu.power_limit_w", lambda gpu: round(nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000, 1))
    gpus.each("gpu.sm_clock_mhz", lambda gpu: nvml.nvmlDeviceGetClockInfo(gpu, 1))


def recovery(nvml: Any, gpu: Any) -> str | None:
    value = nvml.nvmlDeviceGetFieldValues(gpu, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    return RECOVERY.get(value.value.uiVal) if value.nvmlReturn == 0 else None


def throttle(nvml: Any, gpu: Any) -> list[str]:
    # the newer name of the call came with driver 535
    try:
        mask = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except (AttributeError, nvml.NVMLError_FunctionNotFound):
        mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return [name for bit, name in THROTTLE.items() if mask & bit]


def links(nvml: Any, gpu: Any) -> list[bool]:
    found = []
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            found.append(bool(nvml.nvmlDeviceGetNvLinkState(gpu, link)))
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            continue
    return found


def fabric(nvml: Any, gpu: Any) -> str | None:
    info = nvml.c_nvmlGpuFabricInfo_t()
    nvml.nvmlDeviceGetGpuFabricInfo(gpu, ctypes.byref(info))
    return FABRIC.get(info.state)


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    try:
        import pynvml as nvml
    except ImportError as error:
        write({"stage": "pynvml", "state": str(error)})
        return
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        fact("driver.nvml_error", str(error))
        write({"stage": "nvml", "state": "end"})
        return
    write({"name": "driver.nvml_error", "state": "absent"})
    fact("driver.nvml_version", text(nvml.nvmlSystemGetDriverVersion()))
    try:
        number = nvml.nvmlSystemGetCudaDriverVersion()
        fact("driver.nvml_cuda", f"{number // 1000}.{number % 1000 // 10}")
    except (nvml.NVMLError, AttributeError) as error:
        write({"name": "driver.nvml_cuda", "state": "unknown", "reason": "crashed", "detail": str(error)})
    gpus = Gpus(nvml)
    fact("gpu.nvml_count", len(gpus.handles))
    for part in (describe, measure, examine_health):
        try:
            part(gpus, nvml)
        except Exception as error:  # the parts after it can still be told
            gpus.errors.append(f"{part.__name__}: {type(error).__name__}: {error}")
    fact("gpu.errors", gpus.errors)
    write({"stage": "nvml", "state": "end"})


if __name__ == "__main__":
    main()
