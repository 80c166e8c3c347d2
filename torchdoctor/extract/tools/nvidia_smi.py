"""Facts out of nvidia-smi, lspci and the driver's own messages, wherever they stand in a text.

nvidia-smi prints tables over many lines, so that one line alone says little: `Table` is fed line by line
and keeps the section it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.model import Event, Fact, FactValue
from torchdoctor.number import count
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "driver.version": "str: version of the NVIDIA driver",
    "driver.cuda": "str: highest CUDA version the driver offers",
    "driver.kernel_version": "str: version of the loaded kernel module",
    "driver.library_version": "str: version of the driver's user-space libraries",
    "gpu.count": "int: GPUs that nvidia-smi or a report lists",
    "gpu.names": "list: names of the GPUs, by index",
    "gpu.compute_capability": "list: compute capability of each GPU that is named with one, as 9.0",
    "gpu.lowest_capability": "float: smallest of them",
    "gpu.held_by_dead": "bool: nvidia-smi shows memory in use that its process list does not explain",
    "gpu.exclusive": "bool: nvidia-smi shows a GPU in exclusive-process or prohibited mode",
    "gpu.one_is_free": "bool: of GPUs that admit one process, one has memory in use and another none",
    "gpu.ecc_failed": "bool: uncorrected errors since the last reset (volatile), or a row remap that failed",
    "gpu.virtual": "bool: nvidia-smi -q says that a GPU is a vGPU",
    "gpu.throttled": "bool: heat or power holds clocks down by hardware",
    "gpu.pcie_degraded": "bool: a GPU's PCIe link is narrower than it could be",
    "gpu.pcie_narrow": "text: one or two such GPUs of a table by their index, with their lanes",
}

_SOURCES = {
    "driver": r"(?:Driver Version|driver version)\s*:\s*(?P<version>\d{3}\.\d+(?:\.\d+)?)",
    "detected": r"^\s{0,12}version (?P<version>\d{3}\.\d+(?:\.\d+)?) was detected",  # NVIDIA's containers
    "cuda": r"CUDA (?:UMD )?Version\s*:\s*(?P<version>\d+\.\d+)",
    "found": r"found version (?P<version>\d{4,5})\b",
    "nccl": r"cudaDriverVersion (?P<version>\d{4,5})\b",
    "module": r"NVRM(?: version)?: [^\n]{0,80}?(?:Kernel Module|for \S+)\s+(?P<version>\d{3}\.\d+(?:\.\d+)?)",
    "nvml": r"NVML library version: (?P<version>\d{3}\.\d+(?:\.\d+)?)",
    "client": r"client has the version (?P<version>\d{3}\.\d+(?:\.\d+)?)",
    "kernel": r"kernel module has the version (?P<version>\d{3}\.\d+(?:\.\d+)?)",
    # "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:06.0 Off |"
    "row": r"^\|?\s{0,8}(?P<index>\d{1,3})\s{1,4}(?P<name>\S[^|]{0,60}?)\s{1,40}"
    r"(?:On|Off|N/A|WDDM|TCC|ERR!)\s*\|\s*[0-9A-F]{4,8}:",
    "listed": r"\bGPU (?P<index>\d+): (?P<name>[^(\n\[]{1,80}?)\s?(?:\(|$|\n)",
    "named": r"(?P<name>[^\n|]{3,60}?) with CUDA capability sm_(?P<cc>\d+) is not compatible",
    "found-gpu": r"Found GPU\s?(?P<index>\d+) (?P<name>[^\n]{1,80}?) which "
    r"(?:is of (?:cuda capability|compute capability \(CC\)) (?P<cc>\d+\.\d+)|requires)",
    "memory": r"(?<!\d)(?P<used>\d{1,8})\s?MiB\s{0,3}/\s{0,8}(?P<total>\d{1,8})\s?MiB",
    "mode": r"\d%\s{1,12}(?P<mode>Default|E\. (?:Process|Thread)|Prohibited)\s{0,6}\|",
    "process": r"(?<!\d)(?P<mib>\d{1,8})MiB$",
    "value": r"^\s{0,40}(?P<key>[A-Z][\w ()-]{1,60}?)\s{0,60}:\s{0,8}(?P<value>\S[^\n]{0,120})$",
    "lspci": r"LnkSta:\s*Speed \S+(?: \(\w+\))?, Width x\d+ \(downgraded\)",
    "index": r"(?<!\S)\d{1,3}$",  # perhaps behind a chat's name
    "query": r"--query-gpu[= ](?P<columns>[a-z_.]{4,60}(?:,[a-z_.]{3,60}){1,40})",
}
_PATTERNS = Patterns(_SOURCES, re.MULTILINE)


# what nvidia-smi shows of a GPU without a process, and of one with a context, which takes a few hundred MiB
_IDLE_MIB, _HELD_MIB = 50, 200
# Words of nvidia-smi -q that are read, section names first.
_SECTIONS = ("Link Width", "Volatile")
_QUERY_WORDS = (*_SECTIONS, "Product Name", "Attached GPUs", "Virtualization Mode")


# Columns that tell why clocks are low; older drivers say throttle, newer ones event.
_REASONS = ("clocks_throttle_reasons.", "clocks_event_reasons.")
_HELD_COLUMNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
# NVML's bits for hardware slowdown, software and hardware thermal slowdown, and power brake
_HELD_BITS = 0x08 | 0x20 | 0x40 | 0x80


def is_mask(text: str) -> bool:
    """Is it a mask of bits as nvidia-smi prints it, 0x0000000000000008? A broken log may hold anything."""
    return re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text) is not None


def cuda_version(number: str) -> str:
    """CUDA's packed version (12040) with a dot (12.4)."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


class Table:
    """Reads lines one after another and keeps what the tables among them say."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._names: dict[int, str] = {}
        self._memory: list[tuple[int, int]] = []
        self._listed_mib = 0
        self._processes: bool | None = None
        self._section = ""
        self._width: tuple[int | None, int | None] = (None, None)
        self._narrow: dict[str, str] = {}
        self._columns: list[str] = []
        self._capabilities: list[str] = []
        self._ecc: int | None = None
        self._exclusive = False
        self._place: Event | None = None

    def _put(self, name: str, value: FactValue, event: Event) -> None:
        self._facts[name] = Fact.known(name, value, event.place())

    def read(self, text: str, event: Event) -> None:
        """Take in one event's text; most are passed over after a few substring tests."""
        if "ersion" in text or "Kernel Module" in text:
            self._versions(text, event)
        if "GPU" in text or "MiB" in text or "sm_" in text or text[:1] == "|" or "No running" in text:
            self._gpus(text, event)
        if "LnkSta" in text and _PATTERNS["lspci"].search(text):
            self._put("gpu.pcie_degraded", True, event)
        if self._section or any(word in text for word in _QUERY_WORDS):
            for line in text.splitlines():
                self._query_line(line, event)
        if self._columns or "pcie.link.width" in text or "_reasons." in text:
            self._csv_line(text, event)

    def _versions(self, text: str, event: Event) -> None:
        for pattern, name in (
            ("driver", "driver.version"),
            ("detected", "driver.version"),
            ("cuda", "driver.cuda"),
            ("module", "driver.kernel_version"),
            ("nvml", "driver.library_version"),
            ("client", "driver.library_version"),
            ("kernel", "driver.kernel_version"),
        ):
            if version := _PATTERNS[pattern].search(text):
                self._put(name, version.group("version"), event)
        for pattern, need in (("found", "too old"), ("nccl", "cudaDriverVersion")):
            if need in text and (hit := _PATTERNS[pattern].search(text)):
                self._put("driver.cuda", cuda_version(hit.group("version")), event)

    def _gpus(self, text: str, event: Event) -> None:
        for pattern in ("row", "listed", "found-gpu"):
            for row in _PATTERNS[pattern].finditer(text):
                self._names[int(row.group("index"))] = row.group("name").strip()
                self._place = event
        for pattern in ("named", "found-gpu"):
            if (hit := _PATTERNS[pattern].search(text)) and hit.group("cc"):
                capability = hit.group("cc")
                if "." not in capability:
                    capability = f"{capability[:-1]}.{capability[-1]}"
                if capability not in self._capabilities:
                    self._capabilities.append(capability)
                self._put("gpu.compute_capability", tuple(self._capabilities), event)
                self._put("gpu.lowest_capability", min(float(item) for item in self._capabilities), event)
                if pattern == "named":
                    name = hit.group("name").strip()
                    if name not in self._names.values():
                        self._names[len(self._names)] = name
                    self._place = event
        if "%" in text and (hit := _PATTERNS["mode"].search(text)):
            self._exclusive = self._exclusive or hit["mode"] != "Default"
            self._put("gpu.exclusive", self._exclusive, event)
        if "MiB" in text and (hit := _PATTERNS["memory"].search(text)):
            if not self._memory or self._processes is not None:
                self._memory, self._processes, self._listed_mib = [], None, 0  # a new table
            self._memory.append((int(hit.group("used")), int(hit.group("total"))))
            self._place = event
        elif "No running processes found" in text:
            self._processes = False
        elif self._memory and "MiB" in text and (hit := _PATTERNS["process"].search(text.rstrip(" |"))):
            self._processes = True
            self._listed_mib += int(hit.group("mib"))
        elif "Processes:" in text and self._memory:
            self._processes = False

    def _query_line(self, line: str, event: Event) -> None:
        stripped = line.strip()
        if ":" not in stripped:
            # A section of nvidia-smi -q is a line without a colon, and lasts until the next one.
            if stripped:
                self._section = stripped if stripped in _SECTIONS else ""
                self._width = (None, None)
            return
        hit = _PATTERNS["value"].match(line)
        if hit is None:
            return
        key, value = hit.group("key").strip(), hit.group("value").strip()
        if key == "Product Name":
            self._names[len(self._names)] = value
            self._place = event
        elif key == "Attached GPUs" and (gpus := count(value)) is not None:
            self._put("gpu.count", gpus, event)
        elif key == "Virtualization Mode":
            self._put("gpu.virtual", value.upper() == "VGPU", event)
        elif (
            self._section == "Link Width"
            and key in ("Max", "Current")
            and (width := count(value.rstrip("x"))) is not None
        ):
            self._width = (width, self._width[1]) if key == "Max" else (self._width[0], width)
            self._judge_width(event)
        elif self._section == "Volatile" and "Uncorrectable" in key and (errors := count(value)) is not None:
            self._ecc = (self._ecc or 0) + errors
            self._put("gpu.ecc_failed", self._ecc > 0, event)

    def _judge_width(self, event: Event) -> None:
        most, now = self._width
        if most is None or now is None:
            return
        earlier = self._facts.get("gpu.pcie_degraded")
        if now < most or earlier is None or earlier.value is not True:
            self._put("gpu.pcie_degraded", now < most, event)

    def _csv_line(self, text: str, event: Event) -> None:
        """A line of --query-gpu=…: the command or the header names the columns, each line below is a GPU."""
        if (asked := _PATTERNS["query"].search(text)) is not None:
            self._columns = asked.group("columns").split(",")
            return
        cells = [cell.strip() for cell in text.strip().split(",")]
        if any(cell.startswith(("pcie.link.width", *_REASONS)) for cell in cells):
            self._columns = cells
            return
        if len(cells) != len(self._columns):
            self._columns = []
            return
        row = dict(zip(self._columns, cells, strict=True))
        now, most = count(row.get("pcie.link.width.current")), count(row.get("pcie.link.width.max"))
        if now is not None and most is not None:
            self._width = (most, now)
            self._judge_width(event)
            if now < most and (index := _PATTERNS["index"].search(row.get("index", ""))) is not None:
                self._narrow[index[0]] = f"GPU {index[0]} (x{now} of x{most})"
                self._place = event
        for name, value in row.items():
            if name.startswith(_REASONS):
                self._judge_clocks(name, value, event)

    def _judge_clocks(self, name: str, value: str, event: Event) -> None:
        if name.endswith(".active"):
            if not is_mask(value):
                return
            held = bool(int(value, 16) & _HELD_BITS)
        elif name.endswith(_HELD_COLUMNS):
            held = value == "Active"
        else:
            return
        earlier = self._facts.get("gpu.throttled")
        if held or earlier is None:
            self._put("gpu.throttled", held, event)

    def facts(self) -> Iterator[Fact]:
        """What all lines together said."""
        if self._names and self._place is not None:
            names = tuple(name for _, name in sorted(self._names.items()))
            self._put("gpu.names", names, self._place)
            if "gpu.count" not in self._facts:
                self._put("gpu.count", len(names), self._place)
        if 0 < len(self._narrow) <= 2 and self._place is not None:
            self._put("gpu.pcie_narrow", " and ".join(self._narrow.values()), self._place)
        if self._exclusive and len(self._memory) > 1 and self._place is not None:
            taken = sorted(item[0] for item in self._memory)
            self._put("gpu.one_is_free", taken[0] < _IDLE_MIB and taken[-1] > _HELD_MIB, self._place)
        if self._memory and self._place is not None and self._processes is not None:
            used = sum(item[0] for item in self._memory)
            total = sum(item[1] for item in self._memory)
            unexplained = used - self._listed_mib
            # the gate's thresholds: more than 500 MiB, and more than 5 % of one card
            held = unexplained > 500 and unexplained > 0.05 * total / len(self._memory)
            self._put("gpu.held_by_dead", held, self._place)
        yield from self._facts.values()
