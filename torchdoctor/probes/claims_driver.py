"""Claims about the NVIDIA driver: is it there, of one piece, and new enough."""

from __future__ import annotations

from torchdoctor.probes.compatibility import (
    cuda_of_driver,
    parse,
    runs_minor,
    supports_forward_compatibility,
)
from torchdoctor.probes.derived import CannotTell, Claim, Derived, Facts, NotApplicable

_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")


def _version(facts: Facts) -> Claim:
    told = facts.maybe("driver.nvml_version")
    if told:
        return Claim(told, "NVML")
    kernel = facts.text("driver.kernel_version")
    if kernel:
        return Claim(kernel, "the kernel module")
    if facts.maybe("driver.libcuda_kind") in ("driver", "wsl"):
        return Claim(facts.maybe("driver.library_version"), "the name of libcuda")
    return Claim(None, "no NVIDIA driver")


def _cuda(facts: Facts) -> Claim:
    told = facts.maybe("driver.nvml_cuda")
    if told:
        return Claim(told, "NVML")
    version = facts.text("driver.version")
    if not version:
        return Claim(None, "no NVIDIA driver")
    cuda = cuda_of_driver(parse(version), _system(facts))
    if cuda is None:
        raise CannotTell(f"driver {version} is older than the table")
    return Claim(f"{cuda[0]}.{cuda[1]}", f"by the table for driver {version}")


def _system(facts: Facts) -> str:
    """Whose numbers the driver has: in WSL it is that of Windows."""
    return "windows" if facts.get("os.wsl") or facts.get("os.name") == "windows" else "linux"


def _present(facts: Facts) -> Claim:
    nodes = [path for path in facts.texts("driver.device_nodes") if path in _NODES]
    library = facts.text("driver.libcuda")
    kernel = facts.text("driver.kernel_version")
    if nodes and library:
        return Claim(True, f"{nodes[0]}, {library}")
    if kernel and library and facts.get("driver.modprobe"):
        return Claim(True, f"kernel module {kernel}; nvidia-modprobe makes the device files")
    lacking = [
        text
        for text, there in (("kernel module", kernel), ("device files", nodes), ("libcuda.so.1", library))
        if not there
    ]
    why = "no " + ", no ".join(lacking)
    if kernel and not nodes:
        why += ": the machine has a driver, this container or job was not given it"
    return Claim(False, why)


def _need_driver(facts: Facts) -> None:
    if not facts.get("driver.present"):
        raise NotApplicable("no NVIDIA driver")


def _library_matches(facts: Facts) -> Claim:
    _need_driver(facts)
    error = str(facts.maybe("driver.nvml_error") or "")
    if "mismatch" in error:
        return Claim(False, f"NVML: {error}")
    kernel = facts.text("driver.kernel_version")
    if not kernel:
        raise NotApplicable("no kernel module of its own, as in WSL")
    # A forward-compatibility libcuda is of another version on purpose; libnvidia-ml is not.
    library = facts.maybe("driver.nvml_library_version")
    if library is None and facts.get("driver.libcuda_kind") == "driver":
        library = facts.get("driver.library_version")
    if library is None:
        raise CannotTell("the libraries do not say their version")
    return Claim(kernel == library, f"kernel module {kernel}, libraries {library}")


def _torch_cuda(facts: Facts) -> str:
    cuda = facts.text("torch.cuda")
    if not cuda:
        raise NotApplicable("torch is not built for CUDA")
    _need_driver(facts)
    return cuda


def _available(facts: Facts) -> str:
    """The CUDA version of the libcuda that programs get."""
    if facts.maybe("driver.libcuda_kind") == "compat":
        version = facts.text("driver.library_version")
        cuda = cuda_of_driver(parse(version)) if version else None
        if cuda is None:
            raise CannotTell("the forward-compatibility libcuda does not say its version")
        return f"{cuda[0]}.{cuda[1]}"
    return facts.text("driver.cuda")


def _minor(facts: Facts, cuda: str, has: str) -> bool:
    """Is it the same major version, and the driver new enough for all of its minor versions?"""
    wanted, available = parse(cuda)[:2], parse(has)[:2]
    if wanted[0] != available[0] or wanted[0] < 11:
        return False
    version = facts.text("driver.version")
    # the table has no Windows driver for CUDA 13: one that has 11.1 or later is past the least one
    if not version or _system(facts) == "windows":
        return available >= (11, 1)
    return runs_minor(parse(version), wanted)


def _covers(facts: Facts) -> Claim:
    cuda = _torch_cuda(facts)
    has = _available(facts)
    if parse(has)[:2] >= parse(cuda)[:2]:
        return Claim(True, f"torch for CUDA {cuda}, driver for {has}")
    if _minor(facts, cuda, has):
        return Claim(True, f"torch for CUDA {cuda}, driver for {has}: minor-version compatibility")
    version = facts.text("driver.version")
    return Claim(False, f"torch for CUDA {cuda}, driver {version} for {has}")


def _minor_compatible(facts: Facts) -> Claim:
    cuda, has = _torch_cuda(facts), _available(facts)
    only = parse(has)[:2] < parse(cuda)[:2] and _minor(facts, cuda, has)
    return Claim(only, "PTX cannot be compiled by this driver" if only else "")


def _forward_compat(facts: Facts) -> Claim:
    kind = facts.text("driver.libcuda_kind")
    if not kind:
        raise NotApplicable("no libcuda")
    return Claim(kind == "compat", facts.text("driver.libcuda"))


def _forward_supported(facts: Facts) -> Claim:
    names = facts.texts("gpu.names")
    if not names:
        raise NotApplicable("no GPU")
    answers = {name: supports_forward_compatibility(name) for name in names}
    not_for = [name for name, answer in answers.items() if answer is False]
    if not_for:
        return Claim(False, ", ".join(not_for))
    if None in answers.values():
        raise CannotTell("only select servers with these cards support it")
    return Claim(True, ", ".join(answers))


def _uvm_ready(facts: Facts) -> Claim:
    _need_driver(facts)
    if facts.text("driver.kernel_version") == "":
        raise NotApplicable("no kernel module of its own, as in WSL")
    if "/dev/nvidia-uvm" in facts.texts("driver.device_nodes"):
        return Claim(True, "/dev/nvidia-uvm")
    helper = facts.text("driver.modprobe")
    return Claim(
        bool(helper), f"{helper} makes it" if helper else "no /dev/nvidia-uvm and no nvidia-modprobe"
    )


def _stub(facts: Facts) -> Claim:
    kind = facts.text("driver.libcuda_kind")
    if not kind:
        raise NotApplicable("no libcuda")
    return Claim(kind == "stub", facts.text("driver.libcuda"))


def _fabric_ready(facts: Facts) -> Claim:
    states = [
        str(state) for state in facts.items("gpu.fabric_states") if state not in (None, "not-supported")
    ]
    if states:
        waiting = [state for state in states if state != "completed"]
        return Claim(not waiting, ", ".join(dict.fromkeys(states)))
    if not facts.number("driver.nvswitches"):
        raise NotApplicable("no NVSwitch")
    # A100 and older do not tell a state: there the service must run.
    return Claim(bool(facts.get("driver.fabric_manager")), "nv-fabricmanager")


CLAIMS = (
    Derived(
        "driver.version",
        ("driver.nvml_version", "driver.kernel_version", "driver.libcuda_kind", "driver.library_version"),
        _version,
    ),
    Derived("driver.cuda", ("driver.nvml_cuda", "driver.version", "os.wsl", "os.name"), _cuda),
    Derived(
        "driver.present",
        ("driver.device_nodes", "driver.libcuda", "driver.kernel_version", "driver.modprobe"),
        _present,
    ),
    Derived(
        "driver.library_matches",
        (
            "driver.present", "driver.nvml_error", "driver.kernel_version", "driver.nvml_library_version",
            "driver.library_version", "driver.libcuda_kind",
        ),
        _library_matches,
    ),
    Derived(
        "driver.covers_torch_cuda",
        (
            "torch.cuda", "driver.present", "driver.cuda", "driver.version", "driver.libcuda_kind",
            "driver.library_version", "os.name", "os.wsl",
        ),
        _covers,
    ),
    Derived(
        "driver.minor_compatible",
        (
            "torch.cuda", "driver.present", "driver.cuda", "driver.version", "driver.libcuda_kind",
            "driver.library_version", "os.name", "os.wsl",
        ),
        _minor_compatible,
    ),
    Derived("driver.forward_compat", ("driver.libcuda_kind", "driver.libcuda"), _forward_compat),
    Derived("driver.forward_compat_supported", ("gpu.names",), _forward_supported),
    Derived(
        "driver.uvm_ready",
        ("driver.present", "driver.kernel_version", "driver.device_nodes", "driver.modprobe"),
        _uvm_ready,
    ),
    Derived("driver.stub", ("driver.libcuda_kind", "driver.libcuda"), _stub),
    Derived(
        "fabric.ready", ("gpu.fabric_states", "driver.nvswitches", "driver.fabric_manager"), _fabric_ready
    ),
)  # fmt: skip
