"""What `nvidia-smi -q` prints, for want of NVML's Python package, and for recordings made without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes.machine import Command, NotRecorded
from torchdoctor.probes.probe import Context, failure, told

LABEL = "nvidia-smi -q"
_CAPABILITY = "nvidia-smi --query-gpu=compute_cap"
# Architectures all of whose data-centre and desktop GPUs have one compute capability.
# Source: the CUDA programming guide's table of compute capabilities.
_BY_ARCHITECTURE = {"Volta": "7.0", "Turing": "7.5", "Ada Lovelace": "8.9", "Hopper": "9.0"}


@dataclass(frozen=True, slots=True)
class Listing:
    """The output as paths: "PCI/GPU Link Info/Link Width/Current" -> "16x", once for each GPU."""

    head: Mapping[str, str]
    gpus: tuple[Mapping[str, str], ...]
    processes: tuple[tuple[FactValue, ...], ...]


def parse(text: str) -> Listing:
    """Read the indented listing. Lines that are no "key : value" and head no block are passed over."""
    head: dict[str, str] = {}
    gpus: list[dict[str, str]] = []
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith("="):
            continue
        indent = len(line) - len(line.lstrip())
        start = re.match(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)$", line.rstrip())
        if start:
            gpus.append({"address": start[1].lower()})
            stack = []
            continue
        while stack and stack[-1][0] >= indent:
            stack.pop()
        key, colon, value = line.partition(" : ")
        if colon:
            path = "/".join([*(name for _, name in stack), key.strip()])
            (gpus[-1] if gpus else head)[path] = value.strip()
        else:
            stack.append((indent, words.rstrip(" :")))
    return Listing(head, tuple(gpus), tuple(_processes(text)))


def _processes(text: str) -> Iterator[tuple[FactValue, ...]]:
    """GPU index, process number, bytes and kind; their blocks repeat the same keys."""
    index = -1
    block = r"^ +Process ID +: (\d+)\n +Type +: (\S+)\n +Name +: .*\n +Used GPU Memory +: (.+)$"
    for line in re.finditer(rf"^GPU [0-9A-Fa-f:.]+$|{block}", text, re.MULTILINE):
        if line[1] is None:
            index += 1
            continue
        used = re.fullmatch(r"(\d+) MiB", line[3].strip())
        kind = "graphics" if line[2] == "G" else "compute"
        yield (index, int(line[1]), int(used[1]) << 20 if used else None, kind)


def facts(context: Context) -> dict[str, Fact]:
    """The facts of NVML as far as the listing holds them."""
    outcome = context.machine.finish(Command(LABEL, ("nvidia-smi", "-q"), context.limits.nvml_s))
    if not outcome.ok:
        _, detail = failure(outcome)
        if (
            "NVML" in outcome.stdout + outcome.stderr
        ):  # "Failed to initialize NVML: Driver/library version mismatch"
            detail = (outcome.stdout + outcome.stderr).strip().splitlines()[0]
        return {"driver.nvml_error": Fact.known("driver.nvml_error", detail, LABEL)}
    listing = parse(outcome.stdout)
    found = {fact.name: fact for fact in _read(listing)}
    found["gpu.compute_capability"] = told(
        "gpu.compute_capability", partial(_capability, context, listing), _CAPABILITY
    )
    return found


def _read(listing: Listing) -> Iterator[Fact]:
    if "Driver Version" not in listing.head:
        yield Fact.known("driver.nvml_error", "nvidia-smi printed no driver version", LABEL)
        return
    yield Fact.absent("driver.nvml_error", LABEL)
    yield Fact.known("driver.nvml_version", listing.head["Driver Version"], LABEL)
    yield told("driver.nvml_cuda", lambda: _or_none(listing.head.get("CUDA Version")), LABEL)
    yield Fact.known("gpu.nvml_count", len(listing.gpus), LABEL)
    for name, (path, convert) in _PATHS.items():
        values = tuple(_each(gpu, path, convert) for gpu in listing.gpus)
        if any(value is not None for value in values) or not values:
            yield Fact.known(name, values, LABEL)
        else:
            yield Fact.absent(name, LABEL, "no GPU answers this")
    yield Fact.known("gpu.processes", listing.processes, LABEL)
    if not any(_each(gpu, "MIG Mode/Current", _yes) for gpu in listing.gpus):
        yield Fact.known("gpu.mig_instances", 0, LABEL)
    yield Fact.known("gpu.throttle_reasons", tuple(_throttle(gpu) for gpu in listing.gpus), LABEL)
    lost = tuple(
        f"GPU {at}: {value}"
        for at, gpu in enumerate(listing.gpus)
        for value in gpu.values()
        if "GPU is lost" in value
    )
    yield Fact.known("gpu.errors", tuple(dict.fromkeys(lost)), LABEL)


def _or_none(value: str | None) -> str | None:
    """The value; None for what a GPU does not have or does not tell."""
    if value is None or value in ("N/A", "[N/A]", "Not Supported", "[Not Supported]", ""):
        return None
    return None if value.startswith(("Requested functionality", "Unknown", "ERR!", "[Unknown")) else value


def _each(gpu: Mapping[str, str], path: str, convert: Callable[[str], FactValue]) -> FactValue:
    value = next(
        (_or_none(gpu.get(one)) for one in path.split("|") if _or_none(gpu.get(one)) is not None), None
    )
    if value is None:
        return None
    try:
        return convert(value)
    except ValueError:
        return None


def _bytes(text: str) -> int:
    number, _, unit = text.partition(" ")
    return int(number) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def _number(text: str) -> float:
    return float(text.split()[0].rstrip("x"))


def _int(text: str) -> int:
    return int(_number(text))


def _yes(text: str) -> bool:
    return text.lower() in ("yes", "enabled", "active")


def _lower(text: str) -> str:
    return re.sub(r"[\s_&-]+", "-", text.lower()).replace("pass-through", "passthrough")


def _throttle(gpu: Mapping[str, str]) -> FactValue:
    reasons = {
        "SW Power Cap": "sw-power-cap",
        "HW Slowdown": "hw-slowdown",
        "SW Thermal Slowdown": "sw-thermal-slowdown",
        "HW Thermal Slowdown": "hw-thermal-slowdown",
        "HW Power Brake Slowdown": "hw-power-brake",
    }
    found = []
    for path, name in reasons.items():
        for block in ("Clocks Event Reasons", "Clocks Throttle Reasons"):
            if gpu.get(f"{block}/{path}") == "Active":
                found.append(name)
    return tuple(found)


_PATHS: dict[str, tuple[str, Callable[[str], FactValue]]] = {
    "gpu.names": ("Product Name", str),
    "gpu.uuids": ("GPU UUID", str),
    "gpu.pci": ("address", str),
    "gpu.brand": ("Product Brand", _lower),
    "gpu.memory_total_bytes": ("FB Memory Usage/Total", _bytes),
    "gpu.memory_used_bytes": ("FB Memory Usage/Used", _bytes),
    "gpu.memory_free_bytes": ("FB Memory Usage/Free", _bytes),
    "gpu.utilization": ("Utilization/Gpu|Utilization/GPU", _int),
    "gpu.mig_modes": ("MIG Mode/Current", _yes),
    "gpu.compute_modes": ("Compute Mode", _lower),
    "gpu.persistence": ("Persistence Mode", _yes),
    "gpu.display_active": ("Display Active", _yes),
    "gpu.virtualization": ("GPU Virtualization Mode/Virtualization Mode", _lower),
    "gpu.recovery_actions": ("GPU Recovery Action", _lower),
    "gpu.pcie_width": ("PCI/GPU Link Info/Link Width/Current", _int),
    "gpu.pcie_width_max": ("PCI/GPU Link Info/Link Width/Max", _int),
    "gpu.pcie_generation": ("PCI/GPU Link Info/PCIe Generation/Current", _int),
    "gpu.pcie_generation_max": ("PCI/GPU Link Info/PCIe Generation/Max", _int),
    "gpu.ecc_enabled": ("ECC Mode/Current|Ecc Mode/Current", _yes),
    "gpu.ecc_uncorrected": ("ECC Errors/Volatile/DRAM Uncorrectable", _int),
    "gpu.ecc_uncorrected_total": ("ECC Errors/Aggregate/DRAM Uncorrectable", _int),
    "gpu.remap_pending": ("Remapped Rows/Pending", _yes),
    "gpu.remap_failed": ("Remapped Rows/Remapping Failure Occurred", _yes),
    "gpu.fabric_states": ("Fabric/State", _lower),
    "gpu.temperature_c": ("Temperature/GPU Current Temp", _int),
    "gpu.power_w": ("GPU Power Readings/Instantaneous Power Draw|Power Readings/Power Draw", _number),
    "gpu.power_limit_w": ("GPU Power Readings/Current Power Limit|Power Readings/Power Limit", _number),
    "gpu.sm_clock_mhz": ("Clocks/SM", _int),
}


def _capability(context: Context, listing: Listing) -> FactValue:
    if not listing.gpus:
        return ()
    argv = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    try:
        outcome = context.machine.finish(Command(_CAPABILITY, argv, context.limits.tool_s))
        lines = outcome.stdout.split() if outcome.ok else []
    except NotRecorded:
        lines = []
    if len(lines) == len(listing.gpus):
        return tuple(lines)
    # nvidia-smi before driver 510 does not know that question
    found = tuple(_BY_ARCHITECTURE.get(gpu.get("Product Architecture", "")) for gpu in listing.gpus)
    if None in found:
        raise ValueError("neither nvidia-smi nor the architecture tells the compute capability")
    return found
