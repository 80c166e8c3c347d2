"""What NVML says of driver and GPUs, and beyond that what only the health of a node is judged by.

Called as ``python nvml_health.py FOLDER FILE`` like ``nvml.py``, which it runs first.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contextlib

import nvml as base  # type: ignore[import-not-found,unused-ignore]

CORRECTED, UNCORRECTED, SINCE_LOAD, EVER = 0, 1, 0, 1
TEMPERATURE_SLOWDOWN = 1
PR_SET_PDEATHSIG = 1  # of prctl(2)
CLOCK_SETTING = 0x2  # nvmlClocksEventReasonApplicationsClocksSetting


def die_with_parent() -> None:
    """End when the supervisor is killed: nobody would hold our limits any more. Linux only, else nothing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def examine(gpus: Any, nvml: Any) -> None:
    gpus.each("gpu.ecc_corrected", lambda gpu: nvml.nvmlDeviceGetTotalEccErrors(gpu, CORRECTED, SINCE_LOAD))
    gpus.each("gpu.sram_threshold", lambda gpu: sram(nvml, gpu)[0])
    gpus.each("gpu.sram_uncorrected_total", lambda gpu: sram(nvml, gpu)[1])
    gpus.each("gpu.sram_corrected", lambda gpu: sram(nvml, gpu)[2])
    gpus.each("gpu.retired_pages", lambda gpu: retired(nvml, gpu))
    gpus.each("gpu.remap_histogram", lambda gpu: histogram(nvml, gpu))
    gpus.each("gpu.retired_pending", lambda gpu: bool(nvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu)))
    gpus.each(
        "gpu.temperature_slowdown_c",
        lambda gpu: nvml.nvmlDeviceGetTemperatureThreshold(gpu, TEMPERATURE_SLOWDOWN),
    )
    gpus.each("gpu.temperature_margin_c", lambda gpu: nvml.nvmlDeviceGetMarginTemperature(gpu))
    gpus.each("gpu.sm_clock_max_mhz", lambda gpu: nvml.nvmlDeviceGetMaxClockInfo(gpu, 1))
    gpus.each("gpu.application_clock_mhz", lambda gpu: nvml.nvmlDeviceGetApplicationsClock(gpu, 1) or None)
    gpus.each(
        "gpu.application_clock_default_mhz",
        lambda gpu: nvml.nvmlDeviceGetDefaultApplicationsClock(gpu, 1) or None,
    )
    gpus.each("gpu.clock_held", lambda gpu: held(nvml, gpu))
    gpus.each(
        "gpu.power_limit_default_w",
        lambda gpu: round(nvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) / 1000, 1),
    )
    gpus.each("gpu.performance_state", nvml.nvmlDeviceGetPerformanceState)
    gpus.each("gpu.nvlink_errors", lambda gpu: link_errors(nvml, gpu))
    gpus.each("gpu.nvlinks_down", lambda gpu: down(nvml, gpu))
    gpus.each("gpu.fabric_status", lambda gpu: fabric_status(nvml, gpu))
    gpus.each("gpu.firmware", lambda gpu: firmware(nvml, gpu))
    gpus.each("gpu.serials", lambda gpu: base.text(nvml.nvmlDeviceGetSerial(gpu)))


def firmware(nvml: Any, gpu: Any) -> str:
    """The versions of its VBIOS and of the GSP's firmware, which comes with the driver."""
    found = str(base.text(nvml.nvmlDeviceGetVbiosVersion(gpu)))
    with contextlib.suppress(nvml.NVMLError, AttributeError):
        found += f", GSP {base.text(nvml.nvmlDeviceGetGspFirmwareVersion(gpu))}"
    return found


def sram(nvml: Any, gpu: Any) -> tuple[bool, int, int]:
    """Past the threshold for exchange; uncorrectable errors ever; corrected ones since the driver's load."""
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(status))
    uncorrected = int(status.aggregateUncParity + status.aggregateUncSecDed)
    return bool(status.bThresholdExceeded), uncorrected, int(status.volatileCor)


def retired(nvml: Any, gpu: Any) -> int:
    """Memory pages that are not used any more (before Ampere): for many corrected errors, or a double one."""
    return sum(len(nvml.nvmlDeviceGetRetiredPages(gpu, cause)) for cause in (0, 1))


def histogram(nvml: Any, gpu: Any) -> list[int]:
    """Banks with all, much, some, little and no room left for remapped rows."""
    found = nvml.nvmlDeviceGetRowRemapperHistogram(gpu)
    return [int(getattr(found, name)) for name in ("max", "high", "partial", "low", "none")]


def held(nvml: Any, gpu: Any) -> bool:
    """Does a clock set by hand, with -lgc or -ac, hold the GPU down at this moment?"""
    try:
        mask = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except (AttributeError, nvml.NVMLError_FunctionNotFound):
        mask = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return bool(mask & CLOCK_SETTING)


def down(nvml: Any, gpu: Any) -> list[int]:
    found = []
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(gpu, link):
                found.append(link)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            continue
    return found


def link_errors(nvml: Any, gpu: Any) -> int:
    """Replays and recoveries over all links since the driver was loaded."""
    total = 0
    for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        for counter in (nvml.NVML_NVLINK_ERROR_DL_REPLAY, nvml.NVML_NVLINK_ERROR_DL_RECOVERY):
            try:
                total += nvml.nvmlDeviceGetNvLinkErrorCounter(gpu, link, counter)
            except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
                continue
    return total


def fabric_status(nvml: Any, gpu: Any) -> int:
    """What registering with the fabric ended with: an nvmlReturn_t, 0 for success."""
    info = nvml.c_nvmlGpuFabricInfo_t()
    nvml.nvmlDeviceGetGpuFabricInfo(gpu, ctypes.byref(info))
    return int(info.status)


def main() -> None:
    die_with_parent()
    base.main()
    try:
        import pynvml as nvml
    except ImportError:
        return
    try:
        gpus = base.Gpus(nvml)
    except nvml.NVMLError:  # said by nvml.py already
        return
    try:
        examine(gpus, nvml)
    except Exception as error:  # what was told stands
        gpus.errors.append(f"health: {type(error).__name__}: {error}")
    base.fact("gpu.health_errors", gpus.errors)
    base.write({"stage": "health", "state": "end"})


if __name__ == "__main__":
    main()
