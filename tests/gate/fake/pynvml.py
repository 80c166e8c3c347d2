"""A stand-in for NVML's Python binding: GPUs as FAKE_NVML says, as JSON; what is not told is not supported.

{"gpus": 2, "crash": true, "lost": [1], "width": [16, 8]}
"""

from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace
from typing import Any

TOLD: dict[str, Any] = json.loads(os.environ.get("FAKE_NVML", "{}"))
NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
NVML_BRAND_NVIDIA = 14
NVML_NVLINK_MAX_LINKS = 18
NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY = 0, 1


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_FunctionNotFound(NVMLError):
    pass


class NVMLError_NoPermission(NVMLError):
    pass


class NVMLError_InvalidArgument(NVMLError):
    pass


def nvmlInit() -> None:
    if TOLD.get("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if TOLD.get("error"):
        raise NVMLError(TOLD["error"])


def nvmlSystemGetDriverVersion() -> str:
    return "580.159.04"


def nvmlSystemGetCudaDriverVersion() -> int:
    return 13000


def nvmlDeviceGetCount() -> int:
    return int(TOLD.get("gpus", 0))


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    if index in TOLD.get("lost", ()):
        raise NVMLError("GPU is lost")
    return index


def nvmlDeviceGetUUID(gpu: int) -> str:
    return f"GPU-{gpu}"


def nvmlDeviceGetName(gpu: int) -> str:
    return "NVIDIA H100 80GB HBM3"


def nvmlDeviceGetPciInfo(gpu: int) -> SimpleNamespace:
    return SimpleNamespace(domain=0, bus=gpu + 1, device=0)


def nvmlDeviceGetMemoryInfo(gpu: int) -> SimpleNamespace:
    return SimpleNamespace(total=80 << 30, used=0, free=80 << 30)


def nvmlDeviceGetComputeRunningProcesses(gpu: int) -> list[object]:
    return []


nvmlDeviceGetGraphicsRunningProcesses = nvmlDeviceGetComputeRunningProcesses


def nvmlDeviceGetTotalEccErrors(gpu: int, kind: int, counter: int) -> int:
    return int(TOLD.get("ecc", {}).get(str(gpu), 0)) if kind == 1 else 0


def nvmlDeviceGetRemappedRows(gpu: int) -> tuple[int, int, bool, bool]:
    return 0, 0, False, False


def nvmlDeviceGetFieldValues(gpu: int, fields: list[int]) -> list[SimpleNamespace]:
    return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=0))]


def nvmlDeviceGetCurrPcieLinkWidth(gpu: int) -> int:
    return int(TOLD.get("width", [16] * 64)[gpu])


def nvmlDeviceGetMaxPcieLinkWidth(gpu: int) -> int:
    return 16


def nvmlDeviceGetMigMode(gpu: int) -> tuple[int, int]:
    raise NVMLError_NotSupported


def nvmlDeviceGetCurrentClocksEventReasons(gpu: int) -> int:
    return 1


def __getattr__(name: str) -> Any:
    if name.startswith("nvml"):

        def unsupported(*given: object) -> None:
            raise NVMLError_NotSupported(name)

        return unsupported
    raise AttributeError(name)
