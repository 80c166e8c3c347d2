"""The NVIDIA driver as files show it: kernel module, user-space libraries, device files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.machine import Missing, Unreadable, as_list, as_mapping, as_text
from torchdoctor.probes.probe import Context, Cost, Probe, told

_KERNEL = "/proc/driver/nvidia/version"
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64")


def kernel_line(context: Context) -> str | None:
    """The line of /proc/driver/nvidia/version that names the module; None without the module.

    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)
    """
    for line in context.machine.read(_KERNEL).splitlines():
        if line.startswith("NVRM version:"):
            return line
    raise Unreadable(_KERNEL, Reason.UNPARSABLE, "no line 'NVRM version:'")


def _kernel_version(context: Context) -> FactValue:
    match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", f"{kernel_line(context)} ")
    if match is None:
        raise ValueError("no version in it")
    return match[1]


def _kernel_kind(context: Context) -> FactValue:
    return "open" if "Open Kernel Module" in (kernel_line(context) or "") else "proprietary"


def library_path(context: Context, soname: str) -> str | None:
    """The file a program gets that asks the loader for ``soname``; None when there is none.

    In the order of ld.so(8), without the RPATH of the program: LD_LIBRARY_PATH, the cache, the usual folders.
    """
    for folder in filter(None, re.split("[:;]", context.variable("LD_LIBRARY_PATH"))):
        if context.is_there(f"{folder}/{soname}"):
            return f"{folder}/{soname}"
    try:
        cached = cached_paths(context, soname)
    except Unreadable:
        cached = ()  # musl, or a loader without a cache: the usual folders are left
    for path in cached:
        if context.is_there(path):
            return path
    return next((f"{one}/{soname}" for one in _DEFAULT_FOLDERS if context.is_there(f"{one}/{soname}")), None)


def cached_paths(context: Context, soname: str) -> tuple[str, ...]:
    """Where the loader's cache finds a library, without those for 32 bits. Raises Unreadable."""
    found = as_mapping(context.machine.answer("cache", soname)).get(soname, [])
    paths = (as_text(path) for path in as_list(found))
    return tuple(path for path in paths if not re.search(r"/(?:i[3-6]86|lib32)", path))


def _version_in_name(context: Context, soname: str) -> FactValue:
    """580.159.04 when the library found is a link to libcuda.so.580.159.04."""
    path = library_path(context, soname)
    if path is None:
        return None
    match = re.search(r"\.so\.(\d{2,}\.\d+(?:\.\d+)?)$", context.machine.real_path(path))
    if match is None:
        raise ValueError(f"{path} has no version in its name")
    return match[1]


def _libcuda_kind(context: Context) -> FactValue:
    path = library_path(context, "libcuda.so.1")
    if path is None:
        return None
    for place in (path, context.machine.real_path(path)):
        parts = place.split("/")
        if "stubs" in parts:
            return "stub"
        if any(part.startswith(("compat", "cuda-compat")) for part in parts[:-1]):
            return "compat"
        if "wsl" in parts:
            return "wsl"
    return "driver"


def _compat_folder(context: Context) -> FactValue:
    """A libcuda of the package cuda-compat, which a container may bring without using it."""
    roots = [f"/usr/local/{name}" for name in _names(context, "/usr/local", ("cuda*",))]
    prefix = context.text("python.prefix")
    folders = [f"{root}/compat{part}" for root in roots for part in ("", "/lib", "/lib.real")]
    for folder in (*folders, *([f"{prefix}/cuda-compat"] if prefix else [])):
        if context.is_there(f"{folder}/libcuda.so.1"):
            return folder
    return None


def _names(context: Context, folder: str, like: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return context.machine.names(folder, like)
    except Missing:
        return ()


_NODES = (
    "nvidia[0-9]*",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-modeset",
    "nvidia-nvswitch*",
    "dxg",
    "kfd",
    "nvhost-ctrl-gpu",
)


def _device_nodes(context: Context) -> FactValue:
    found = [f"/dev/{name}" for name in _names(context, "/dev", _NODES)]
    found += [f"/dev/dri/{name}" for name in _names(context, "/dev/dri", ("renderD*",))]
    return tuple(found) or None


def _missing_nodes(context: Context) -> FactValue:
    """What a loaded driver needs in /dev; nvidia-uvm may be made on demand, see driver.modprobe."""
    if not context.is_there(_KERNEL):
        return None
    wanted = ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    for address in _names(context, "/proc/driver/nvidia/gpus", ("*",)):
        text = context.machine.read_or(f"/proc/driver/nvidia/gpus/{address}/information")
        minor = re.search(r"^Device Minor:\s*(\d+)", text, re.MULTILINE)
        if minor:
            wanted.append(f"/dev/nvidia{minor[1]}")
    return tuple(path for path in wanted if not context.machine.exists(path))


def _closed_nodes(context: Context) -> FactValue:
    names = _names(context, "/dev", _NODES)
    used = [f"/dev/{name}" for name in names if re.fullmatch(r"nvidia\d+|nvidiactl|nvidia-uvm|dxg|kfd", name)]
    return tuple(path for path in used if not context.machine.may(path, "rw")) if used else None


def _uvm_loaded(context: Context) -> FactValue:
    if not context.is_there(_KERNEL):
        return None
    if context.machine.exists("/sys/module/nvidia_uvm"):
        return True
    return "nvidia_uvm " in context.machine.read("/proc/modules")


def _fabric_manager(context: Context) -> FactValue:
    if context.text("os.container"):
        raise Unreadable("/proc", Reason.NOT_PERMITTED, "a container does not see the host's services")
    return context.machine.answer("processes", "nv-fabricmanager") != []


def _nvswitches(context: Context) -> FactValue:
    return len(_names(context, "/dev", ("nvidia-nvswitch[0-9]*",)))


def _modprobe(context: Context) -> FactValue:
    places = ("/usr/bin/nvidia-modprobe", "/usr/sbin/nvidia-modprobe", "/bin/nvidia-modprobe")
    return next((path for path in places if context.is_there(path)), None)


def any_sign(context: Context) -> bool:
    """Is there anything of an NVIDIA driver: kernel module, device file, or a library of its?"""
    places = (_KERNEL, "/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")
    return any(context.is_there(path) for path in places) or any(
        library_path(context, soname) for soname in ("libnvidia-ml.so.1", "libcuda.so.1")
    )


def _look(context: Context) -> Iterator[Fact]:
    library = partial(_version_in_name, context)
    yield told("driver.kernel_version", partial(_kernel_version, context), _KERNEL)
    yield told("driver.kernel_kind", partial(_kernel_kind, context), _KERNEL)
    yield told("driver.libcuda", partial(library_path, context, "libcuda.so.1"), "ld.so")
    yield told("driver.libcuda_kind", partial(_libcuda_kind, context), "ld.so")
    yield told("driver.library_version", partial(library, "libcuda.so.1"), "libcuda.so.1")
    yield told("driver.nvml_library_version", partial(library, "libnvidia-ml.so.1"), "libnvidia-ml.so.1")
    yield told("driver.device_nodes", partial(_device_nodes, context), "/dev")
    yield told("driver.missing_nodes", partial(_missing_nodes, context), "/dev")
    yield told("driver.closed_nodes", partial(_closed_nodes, context), "/dev")
    yield told("driver.uvm_loaded", partial(_uvm_loaded, context), "/sys/module/nvidia_uvm")
    yield told("driver.modprobe", partial(_modprobe, context), "nvidia-modprobe")
    yield told("driver.nvswitches", partial(_nvswitches, context), "/dev")
    yield told("driver.fabric_manager", partial(_fabric_manager, context), "/proc")
    yield told(
        "driver.amd_version", lambda: context.machine.read("/sys/module/amdgpu/version").strip() or "in-tree"
    )


def _look_compat(context: Context) -> Iterator[Fact]:
    yield told("driver.compat_folder", partial(_compat_folder, context), "/usr/local/cuda*/compat")


_NAMES = (
    "driver.kernel_version", "driver.kernel_kind", "driver.libcuda", "driver.libcuda_kind",
    "driver.library_version", "driver.nvml_library_version", "driver.device_nodes", "driver.missing_nodes",
    "driver.closed_nodes", "driver.uvm_loaded", "driver.modprobe", "driver.nvswitches",
    "driver.fabric_manager",
    "driver.amd_version",
)  # fmt: skip

PROBES = (
    Probe(_NAMES, Cost.CHEAP, _look, needs=("os.container",)),
    Probe(("driver.compat_folder",), Cost.CHEAP, _look_compat, needs=("python.prefix",)),
)
