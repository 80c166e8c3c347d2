"""What /proc and /sys say of this machine: PCI devices, modules, networks of the cluster, limits, clocks.

Called as ``python node.py FILE`` with any Python 3 and nothing but its standard library; needs no right. Each
fact is told by a function of its own: one that fails says so and the others still speak.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable

DISPLAY = ("0x0300", "0x0302", "0x0380", "0x1200")  # VGA, 3D, other display (MI200), processing accelerator
MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "gdrdrv",
    "nouveau",
    "mlx5_core",
    "mlx5_ib",
    "ib_core",
    "ib_uverbs",
    "amdgpu",
)
UNLIMITED = 2**63 - 1
VARIABLES = re.compile(
    r"^(SLURM_(JOB_ID|JOB_GPUS|STEP_GPUS|GPUS_ON_NODE|GPUS_PER_NODE|JOB_PARTITION|JOB_USER|NODEID|PROCID"
    r"|NTASKS_PER_NODE|CPUS_ON_NODE|NNODES|LOCALID|SCRIPT_CONTEXT)|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES"
    r"|ROCR_VISIBLE_DEVICES|KUBERNETES_SERVICE_HOST|LOCAL_WORLD_SIZE|WORLD_SIZE|RANK|LOCAL_RANK|GROUP_RANK)$"
)


def text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read(65536).strip()


def text_or(path: str, default: str = "") -> str:
    try:
        return text(path)
    except (OSError, ValueError):
        return default


def number_or(path: str, default: int = -1) -> int:
    found = text_or(path)
    try:
        return int(found, 0)
    except ValueError:
        return default


def identity() -> dict[str, object]:
    status = text("/proc/self/status")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return {
        "node.uid": os.geteuid(),
        "node.capabilities": int(capabilities[1], 16) if capabilities else 0,
        "node.hostname": os.uname().nodename,
        "node.kernel": os.uname().release,
        "node.boot_id": text_or("/proc/sys/kernel/random/boot_id"),
        "node.uptime_s": float(text("/proc/uptime").split()[0]),
        "node.time_s": time.time(),
        "node.container": container(),
        "node.variables": {name: value for name, value in os.environ.items() if VARIABLES.match(name)},
    }


def container() -> str:
    for path, name in (
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/.singularity.d", "apptainer"),
    ):
        if os.path.exists(path):
            return name
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if os.geteuid() != 0:
        return ""
    with open("/proc/1/environ", "rb") as stream:
        found = re.search(rb"container=([^\0]*)", stream.read(65536))
    return found[1].decode() if found else ""


def pci() -> dict[str, object]:
    """Address, driver, link width now and at most, of every NVIDIA or AMD accelerator on the bus."""
    found = []
    for folder in sorted(glob.glob("/sys/bus/pci/devices/*")):
        if text_or(f"{folder}/vendor") not in ("0x10de", "0x1002"):
            continue
        if text_or(f"{folder}/class")[:6] not in DISPLAY:
            continue
        driver = (
            os.path.basename(os.path.realpath(f"{folder}/driver"))
            if os.path.exists(f"{folder}/driver")
            else ""
        )
        found.append(
            [
                os.path.basename(folder),
                text_or(f"{folder}/vendor"),
                driver,
                number_or(f"{folder}/current_link_width"),
                number_or(f"{folder}/max_link_width"),
                number_or(f"{folder}/numa_node"),
            ]
        )
    return {"node.pci_gpus": found, "node.driver_gpus": len(glob.glob("/proc/driver/nvidia/gpus/*"))}


def pcie_errors() -> dict[str, object]:
    """What the kernel counted on the link of each GPU since boot: repaired, not fatal, fatal.

    [GPU, device, ...]: the device is the GPU itself or the port above it, whichever end saw the error.
    Requests that a device does not know are left out: every boot makes some while it looks for devices.
    """
    found = []
    for folder in sorted(glob.glob("/sys/bus/pci/devices/*")):
        vendor, kind = text_or(f"{folder}/vendor"), text_or(f"{folder}/class")[:6]
        if vendor not in ("0x10de", "0x1002") or kind not in DISPLAY:
            continue
        for device in (os.path.realpath(folder), os.path.dirname(os.path.realpath(folder))):
            counts = [counted(f"{device}/aer_dev_{one}") for one in ("correctable", "nonfatal", "fatal")]
            if any(counts):
                found.append([os.path.basename(folder), os.path.basename(device), *counts])
    return {"node.pcie_errors": found}


def amd_errors() -> dict[str, object]:
    """[GPU, uncorrectable, corrected] of every AMD GPU, over all its blocks since the driver was loaded.

    Only of those whose driver counts them; a file of it reads "ue: 0", "ce: 0" and newer ones "de: 0".
    """
    found = []
    for folder in sorted(glob.glob("/sys/bus/pci/drivers/amdgpu/*:*")):
        told = [text_or(path) for path in glob.glob(f"{folder}/ras/*_err_count")]
        counts = [re.findall(r"^(ue|ce): *(\d+)", one, re.MULTILINE) for one in told]
        if any(counts):
            sums = [
                sum(int(number) for one in counts for key, number in one if key == name)
                for name in ("ue", "ce")
            ]
            found.append([os.path.basename(folder), *sums])
    return {"node.amd_errors": found}


def counted(path: str) -> int:
    total = 0
    for line in text_or(path).splitlines():
        name, _, number = line.partition(" ")
        if number.strip().isdigit() and not name.startswith("TOTAL") and name != "UnsupReq":
            total += int(number)
    return total


def modules() -> dict[str, object]:
    version = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text_or("/proc/driver/nvidia/version"))
    return {
        "node.modules": [name for name in MODULES if os.path.isdir(f"/sys/module/{name}")],
        "node.taint": number_or("/proc/sys/kernel/tainted", 0),
        "node.driver_version": version[1] if version else "",
    }


def fabric_manager() -> dict[str, object]:
    switches = len(glob.glob("/dev/nvidia-nvswitch[0-9]*"))
    running, version = False, ""
    for path in glob.glob("/proc/[0-9]*/comm"):
        if text_or(path).startswith("nv-fabricmanage"):
            running = True
            version = fabric_version(os.path.dirname(path))
            break
    return {"node.nvswitches": switches, "node.fabric_manager": running, "node.fabric_version": version}


def fabric_version(folder: str) -> str:
    try:
        program = os.path.realpath(f"{folder}/exe")
        done = subprocess.run([program, "--version"], capture_output=True, timeout=1, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(rb"(\d{3}\.\d+(?:\.\d+)?)", done.stdout)
    return found[1].decode() if found else ""


def networks() -> dict[str, object]:
    """One list a port: device, port, state, physical state, Gb/s, kind, times the link went down."""
    found = []
    for folder in sorted(glob.glob("/sys/class/infiniband/*/ports/*")):
        rate = re.match(r"([\d.]+)", text_or(f"{folder}/rate"))
        downs = number_or(f"{folder}/counters/link_downed", 0)
        for net in glob.glob(f"{folder}/../../device/net/*"):
            downs = max(downs, number_or(f"{net}/carrier_down_count", 0))
        found.append(
            [
                folder.split("/")[4],
                int(os.path.basename(folder)),
                text_or(f"{folder}/state").partition(": ")[2] or text_or(f"{folder}/state"),
                text_or(f"{folder}/phys_state").partition(": ")[2],
                float(rate[1]) if rate else 0.0,
                text_or(f"{folder}/link_layer"),
                downs,
            ]
        )
    firmware = [
        [path.split("/")[4], text_or(path)] for path in sorted(glob.glob("/sys/class/infiniband/*/fw_ver"))
    ]
    return {"node.ib_ports": found, "node.ib_firmware": firmware}


def shared_memory() -> dict[str, object]:
    space = os.statvfs("/dev/shm")
    old = sum(name.startswith(("torch_", "nccl-", "cuda.shm.")) for name in os.listdir("/dev/shm"))
    return {
        "node.shm_bytes": space.f_blocks * space.f_frsize,
        "node.shm_free_bytes": space.f_bavail * space.f_frsize,
        "node.shm_leftovers": old,
    }


def limits() -> dict[str, object]:
    def bounds(which: int) -> list[int]:
        return [
            UNLIMITED if one in (resource.RLIM_INFINITY, -1) else one for one in resource.getrlimit(which)
        ]

    return {
        "node.nofile": bounds(resource.RLIMIT_NOFILE),
        "node.memlock": bounds(resource.RLIMIT_MEMLOCK),
        "node.nproc": bounds(resource.RLIMIT_NPROC),
    }


def control_groups() -> dict[str, object]:
    own = text("/proc/self/cgroup").splitlines()[-1].split(":", 2)[2]
    folder = f"/sys/fs/cgroup{own}".rstrip("/")
    memory = -1
    while folder.startswith("/sys/fs/cgroup"):
        bound = number_or(f"{folder}/memory.max")
        memory = bound if memory < 0 else min(memory, bound) if bound >= 0 else memory
        folder = os.path.dirname(folder)
    return {
        "node.cgroup": own,
        "node.cgroup_memory_bytes": memory,
        "node.cpus": len(os.sched_getaffinity(0)),
        "node.cpus_online": text_or("/sys/devices/system/cpu/online"),
        "node.cpus_present": text_or("/sys/devices/system/cpu/present"),
        "node.governor": text_or("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }


def processes() -> dict[str, object]:
    """Dead and stuck processes; a stuck one is [number, name, seconds since its start]."""
    uptime, tick = float(text("/proc/uptime").split()[0]), os.sysconf("SC_CLK_TCK")
    zombies, stuck = 0, []
    for path in glob.glob("/proc/[0-9]*/stat"):
        found = text_or(path)
        name, _, rest = found.partition("(")[2].rpartition(")")
        parts = rest.split()
        if not parts:
            continue
        zombies += parts[0] == "Z"
        if parts[0] == "D" and int(parts[6]) & 0x00200000 == 0:  # PF_KTHREAD: the kernel's own may wait
            stuck.append([int(path.split("/")[2]), name, uptime - int(parts[19]) / tick])
    return {"node.zombies": zombies, "node.stuck": stuck}


class Timex(ctypes.Structure):
    """struct timex of adjtimex(2), as far as it is read here."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    ]


def clock() -> dict[str, object]:
    """Whether the kernel's clock is steered, and how far off whoever steers it says that it is."""
    told = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(told))
    unit = 1e-9 if told.status & 0x2000 else 1e-6  # STA_NANO
    offset: float | None = told.offset * unit if state in (0, 1, 2, 3, 4) else None
    source = "adjtimex"
    try:
        done = subprocess.run(["chronyc", "-n", "tracking"], capture_output=True, timeout=1, check=False)
        found = re.search(rb"System time\s*:\s*([\d.]+) seconds (slow|fast)", done.stdout)
        if found:
            offset, source = float(found[1]) * (-1 if found[2] == b"slow" else 1), "chronyc tracking"
    except (OSError, subprocess.TimeoutExpired):
        pass
    return {
        "node.clock_synchronised": state in (0, 1, 2, 3, 4) and not told.status & 0x40,
        "node.clock_offset_s": offset,
        "node.clock_source": source,
    }


PARTS: tuple[tuple[Callable[[], dict[str, object]], tuple[str, ...]], ...] = (
    (identity, ("node.uid", "node.container", "node.variables", "node.uptime_s")),
    (pci, ("node.pci_gpus",)),
    (pcie_errors, ("node.pcie_errors",)),
    (amd_errors, ("node.amd_errors",)),
    (modules, ("node.modules", "node.taint")),
    (fabric_manager, ("node.fabric_manager", "node.nvswitches")),
    (networks, ("node.ib_ports",)),
    (shared_memory, ("node.shm_bytes", "node.shm_leftovers")),
    (limits, ("node.nofile", "node.memlock")),
    (control_groups, ("node.cgroup_memory_bytes", "node.cpus")),
    (processes, ("node.zombies", "node.stuck")),
    (clock, ("node.clock_synchronised", "node.clock_offset_s")),
)


def main() -> None:
    with open(sys.argv[-1], "a", encoding="utf-8") as stream:
        for part, names in PARTS:
            try:
                records: list[dict[str, object]] = [
                    {"name": name, "value": value} if value is not None else {"name": name, "state": "absent"}
                    for name, value in part().items()
                ]
            except Exception as error:  # the other parts can still be told
                words = f"{type(error).__name__}: {error}"
                reason = "not-permitted" if isinstance(error, PermissionError) else "crashed"
                records = [
                    {"name": name, "state": "unknown", "reason": reason, "detail": words} for name in names
                ]
            stream.writelines(json.dumps(record) + "\n" for record in records)
            stream.flush()


if __name__ == "__main__":
    main()
