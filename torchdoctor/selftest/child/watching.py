"""What an NVIDIA GPU says of itself while it works, read through NVML with ctypes alone.

Clocks, power, temperature, and the reasons why it does not run faster, from a thread of its own.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench

# nvml.h: nvmlClocksEventReason*
REASONS = {
    0x2: "clocks set by an application",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
FAULTY = 0x8 | 0x40 | 0x80  # the hardware defends itself: heat, or the supply
SM_CLOCK = 1
EVERY_S = 0.05


class Watch:
    """``with Watch(bench) as watch: ...`` and then ``watch.tell(case)``; silent where NVML is not there."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.clocks: list[int] = []
        self.watts: list[float] = []
        self.degrees: list[int] = []
        self.reasons = 0
        self.lack = ""
        self.handle: Any = ctypes.c_void_p()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self) -> Watch:
        try:
            self.open()
        except (OSError, AttributeError, RuntimeError) as error:
            self.lack = f"{type(error).__name__}: {error}"
            return self
        self.thread.start()
        return self

    def open(self) -> None:
        if self.bench.device.type != "cuda":
            raise RuntimeError("no NVIDIA GPU")
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        identity = getattr(torch.cuda.get_device_properties(self.bench.device), "uuid", None)
        if identity is None:
            raise RuntimeError("this torch does not tell the GPU's UUID")
        self.call("nvmlInit_v2")
        name = f"GPU-{identity}".encode("ascii")
        self.call("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(name), ctypes.byref(self.handle))

    def call(self, name: str, *given: Any) -> None:
        code = getattr(self.library, name)(*given)
        if code != 0:
            raise RuntimeError(f"{name} gave {code}")

    def asked(self, name: str, *given: int, kind: Any = ctypes.c_uint) -> int:
        """One number; -1 where this GPU does not report it."""
        value = kind()
        if getattr(self.library, name)(self.handle, *given, ctypes.byref(value)) != 0:
            return -1
        return int(value.value)

    def look(self) -> None:
        while not self.over.is_set():
            self.clocks.append(self.asked("nvmlDeviceGetClockInfo", SM_CLOCK))
            self.watts.append(self.asked("nvmlDeviceGetPowerUsage") / 1000)
            self.degrees.append(self.asked("nvmlDeviceGetTemperature", 0))
            bits = self.asked("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
            self.reasons |= max(bits, 0)
            self.over.wait(EVERY_S)

    def __exit__(self, *error: object) -> None:
        self.over.set()
        if self.thread.ident is not None:
            self.thread.join(5)

    def tell(self, case: str) -> None:
        """The range of each during the work; a warning when the hardware slowed itself down."""
        if self.lack or not self.clocks:
            self.bench.told(f"state during {case}", "measured", f"not read: {self.lack or 'too short'}")
            return
        because = [words for bit, words in REASONS.items() if self.reasons & bit]
        told = (
            f"SM clock {min(self.clocks)} to {max(self.clocks)} MHz, up to {max(self.watts):.0f} W, "
            f"{self.degrees[0]} to {max(self.degrees)} °C, "
            f"slowed by: {', '.join(because) or 'nothing'} ({self.reasons:#x})"
        )
        bad = self.reasons & FAULTY
        self.bench.told(
            f"state during {case}",
            "warn" if bad else "measured",
            told,
            "no slowdown by the hardware" if bad else "",
            "NVML's reasons for lower clocks" if bad else "",
        )
