"""The machine in the lines and the order of ``python -m torch.utils.collect_env``, for bug trackers.

torch's report fails where torch does not import; this one says what files and programs tell. Behind torch's
lines stand those that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import State
from torchdoctor.probes.fact_table import show
from torchdoctor.probes.machine import Command, NotRecorded, Unreadable
from torchdoctor.probes.probe import Context

_NONE = "Could not collect"
# programs that torch's report asks, with the label of a recording
_TOOLS = {"gcc": "GCC version", "clang": "Clang version", "cmake": "CMake version"}
# parts of names of packages that torch's report lists, and those that follow torch's releases
_PACKAGES = (
    "torch", "numpy", "mypy", "flake8", "optree", "onnx", "triton", "cuda-", "cublas", "cudnn", "cufft",
    "curand", "cusolver", "cusparse", "nccl", "nvjitlink", "nvtx", "nvshmem", "xformers", "flash", "mkl",
    "bitsandbytes", "vllm", "transformers", "accelerate", "deepspeed", "lightning", "apex", "tensorrt",
    "cupy", "intel-",
)  # fmt: skip
_MORE = (
    "python.executable", "python.environment", "torch.path", "torch.import_outcome", "torch.import_error",
    "torch.arch_list", "torch.nccl", "torch.cxx11_abi", "torch.installer", "torch.copies", "torch.hidden_by",
    "driver.cuda", "driver.kernel_version", "driver.kernel_kind", "driver.libcuda", "driver.libcuda_kind",
    "driver.nvml_error", "torch.cuda_error", "gpu.compute_capability", "gpu.memory_total_bytes",
    "gpu.mig_modes", "gpu.persistence", "gpu.ecc_uncorrected", "gpu.throttle_reasons", "os.container",
    "os.wsl", "cgroup.memory_limit_bytes", "cgroup.cpu_quota", "memory.total_bytes", "memory.available_bytes",
    "shm.size_bytes", "limits.nofile", "limits.memlock_bytes", "toolkit.path", "toolkit.version",
    "compiler.cxx", "compiler.cxx_version", "library.shadows", "openmp.runtimes",
    "env.CUDA_VISIBLE_DEVICES", "env.LD_LIBRARY_PATH", "env.LD_PRELOAD", "env.PYTHONPATH",
    "env.CUDA_LAUNCH_BLOCKING", "env.OMP_NUM_THREADS", "env.NCCL_DEBUG",
)  # fmt: skip


def lines(context: Context) -> Iterator[str]:
    """The report, line by line. Starts gcc, clang, cmake and lscpu where they are there."""
    tools = [Command(f"{name} --version", (name, "--version"), context.limits.tool_s) for name in _TOOLS]
    tools.append(Command("lscpu", ("lscpu",), context.limits.tool_s))
    for one in tools:
        _start(context, one)
    yield from _torch(context)
    yield ""
    yield f"OS: {_value(context, 'os.distribution')} ({_value(context, 'os.machine')})"
    for title, one in zip(_TOOLS.values(), tools, strict=False):
        yield f"{title}: {(_printed(context, one).splitlines() or [_NONE])[0]}"
    glibc = _value(context, "os.glibc")
    yield f"Libc version: {glibc if glibc == _NONE else f'glibc-{glibc}'}"
    yield ""
    yield from _runtime(context)
    yield ""
    yield "CPU:"
    yield _printed(context, tools[-1]).rstrip() or f"Model name: {_value(context, 'cpu.model')}"
    yield ""
    yield "Versions of relevant libraries:"
    yield from [f"[pip3] {one}" for one in _packages(context)] or [f"[pip3] {_NONE}"]
    conda = _value(context, "python.environment") == "conda"
    yield f"[conda] {'an environment of conda' if conda else _NONE}"
    yield ""
    yield "Further:"
    yield from (f"{name}: {_value(context, name)}" for name in _MORE if _told(context, name))


def _torch(context: Context) -> Iterator[str]:
    yield f"PyTorch version: {_value(context, 'torch.version')}"
    yield f"Is debug build: {_value(context, 'torch.debug')}"
    yield f"CUDA used to build PyTorch: {_value(context, 'torch.cuda', 'None')}"
    yield f"ROCM used to build PyTorch: {_value(context, 'torch.hip', 'N/A')}"


def _runtime(context: Context) -> Iterator[str]:
    def value(name: str, absent: str = _NONE) -> str:
        return _value(context, name, absent)

    none = "No CUDA" if not _told(context, "torch.cuda") else _NONE
    yield f"Python version: {value('python.version')} ({value('python.bits')}-bit runtime)"
    yield f"Python platform: {value('os.name').capitalize()}-{value('os.kernel')}-{value('os.machine')}"
    yield f"Is CUDA available: {value('torch.cuda_available')}"
    yield f"CUDA runtime version: {value('toolkit.version', none)}"
    yield f"CUDA_MODULE_LOADING set to: {value('env.CUDA_MODULE_LOADING', 'N/A')}"
    names = context.texts("gpu.names")
    yield "GPU models and configuration: " + (
        "\n".join(f"GPU {at}: {one}" for at, one in enumerate(names)) or none
    )
    yield f"Nvidia driver version: {value('driver.version', none)}"
    yield f"cuDNN version: {value('torch.cudnn', none)}"
    yield f"Is XPU available: {value('torch.xpu', 'False')}"
    yield f"HIP runtime version: {value('torch.hip', 'N/A')}"
    yield "MIOpen runtime version: N/A"
    yield f"Is XNNPACK available: {_NONE}"
    yield f"Caching allocator config: {value('env.PYTORCH_CUDA_ALLOC_CONF', 'N/A')}"


def _value(context: Context, name: str, absent: str = _NONE) -> str:
    fact = context.ask(name)
    if fact.state is not State.KNOWN:
        return absent if fact.state is State.ABSENT else _NONE
    return str(fact.value) if isinstance(fact.value, bool) else show(name, fact.value)


def _told(context: Context, name: str) -> bool:
    return context.ask(name).state is State.KNOWN


def _start(context: Context, command: Command) -> None:
    try:
        context.machine.start(command)
    except Unreadable:
        return


def _printed(context: Context, command: Command) -> str:
    try:
        outcome = context.machine.finish(command)
    except (Unreadable, NotRecorded):
        return ""
    return outcome.stdout if outcome.ok else ""


def _packages(context: Context) -> Iterator[str]:
    """name==version of what lies on the interpreter's path, by the names of the metadata folders."""
    found: dict[str, str] = {}
    for folder in context.texts("python.path"):
        try:
            entries = context.machine.names(folder, ("*.dist-info",))
        except (Unreadable, NotRecorded):
            continue
        for entry in entries:
            name, _, version = entry.removesuffix(".dist-info").rpartition("-")
            found.setdefault(name.replace("_", "-").lower(), version)
    yield from (f"{name}=={found[name]}" for name in sorted(found) if any(one in name for one in _PACKAGES))
