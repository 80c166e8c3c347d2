"""Process-wide settings that a Python program can change, and how each is read.

Runs in the examined interpreter: standard library only, syntax of Python 3.6, and torch only as the program
itself has imported it. Reading changes nothing: no getter here initialises CUDA, fixes a start method or
draws a random number.

Three tiers, by the price of a look: ``hot`` (2 µs, after each line of traced code), ``warm`` (10 µs, after each
line at module level and in functions that name what it holds) and ``seeds`` (50 µs, in functions that name a
seeding call). What replaces parts of torch is in ``patches``.
"""

import os
import sys

MYPY = False
if MYPY:
    from collections.abc import Callable
    from typing import Any

    Getter = Callable[[], Any]

# Variables that torch, CUDA, NCCL, the launchers or the numeric libraries read.
PREFIXES = (
    "CUDA", "NCCL", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "TORCH", "PYTORCH", "TRITON_",
    "CUBLAS", "CUDNN", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "MIOPEN_", "GLOO_", "UCX_", "FI_", "ACCELERATE_",
    "XLA_", "DS_",
)  # fmt: skip
VARIABLES = frozenset((
    "LD_LIBRARY_PATH", "LD_PRELOAD", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE",
    "LOCAL_WORLD_SIZE", "PYTHONHASHSEED", "TOKENIZERS_PARALLELISM", "MALLOC_ARENA_MAX",
))  # fmt: skip

SIGNALS = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGALRM", "SIGABRT",
    "SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL",
)  # fmt: skip

# setting -> path of the getter below torch; the first that exists is used
_TORCH = (
    ("grad-mode", ("is_grad_enabled",)),
    ("inference-mode", ("is_inference_mode_enabled",)),
    ("anomaly-mode", ("is_anomaly_enabled", "_C.is_anomaly_enabled")),
    ("default-dtype", ("get_default_dtype",)),
    ("default-tensor-device", ("_C._get_default_device",)),
    ("deterministic", ("_C._get_deterministic_algorithms", "are_deterministic_algorithms_enabled")),
    ("deterministic-warn-only", ("_C._get_deterministic_algorithms_warn_only",)),
    ("cudnn-enabled", ("_C._get_cudnn_enabled",)),
    ("cudnn-benchmark", ("_C._get_cudnn_benchmark",)),
    ("cudnn-deterministic", ("_C._get_cudnn_deterministic",)),
    ("cudnn-tf32", ("_C._get_cudnn_allow_tf32",)),
    ("matmul-tf32", ("_C._get_cublas_allow_tf32",)),
    ("matmul-precision", ("_C._get_float32_matmul_precision", "get_float32_matmul_precision")),
    ("fp16-reduction", ("_C._get_cublas_allow_fp16_reduced_precision_reduction",)),
    ("bf16-reduction", ("_C._get_cublas_allow_bf16_reduced_precision_reduction",)),
    ("mkldnn-enabled", ("_C._get_mkldnn_enabled",)),
    ("sdp-flash", ("_C._get_flash_sdp_enabled",)),
    ("sdp-mem-efficient", ("_C._get_mem_efficient_sdp_enabled",)),
    ("sdp-math", ("_C._get_math_sdp_enabled",)),
    ("sdp-cudnn", ("_C._get_cudnn_sdp_enabled",)),
    ("autocast-cache", ("is_autocast_cache_enabled",)),
    ("threads", ("get_num_threads",)),
    ("interop-threads", ("get_num_interop_threads",)),
    ("seed-torch", ("initial_seed",)),
    ("dispatch-modes", ("_C._len_torch_dispatch_stack",)),
)  # fmt: skip

_HOOKS = (
    "_global_forward_pre_hooks", "_global_forward_hooks", "_global_backward_pre_hooks",
    "_global_backward_hooks", "_global_module_registration_hooks", "_global_parameter_registration_hooks",
    "_global_buffer_registration_hooks",
)  # fmt: skip


def lookup(root: object, path: str) -> "Any":
    found = root
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def plain_getters() -> "list[tuple[str, Getter]]":
    """Settings of Python itself that are cheap to read."""
    return [("recursion-limit", sys.getrecursionlimit)]


def torch_getters(torch: "Any") -> "list[tuple[str, Getter]]":
    """The hot settings that this torch has; a getter that does not work on it is left out."""
    found = []
    for name, paths in _TORCH:
        for path in paths:
            getter = lookup(torch, path)
            if callable(getter) and _works(getter):
                found.append((name, getter))
                break
    for name, getter in _more_getters(torch):
        if _works(getter):
            found.append((name, getter))
    return found


def _works(getter: "Getter") -> bool:
    try:
        getter()
    except Exception:  # another signature in another torch
        return False
    return True


def _more_getters(torch: "Any") -> "list[tuple[str, Getter]]":
    found = []
    device = sys.modules.get("torch.utils._device")
    if hasattr(device, "CURRENT_DEVICE"):
        found.append(("default-device", lambda: device.CURRENT_DEVICE))  # type: ignore[union-attr]
    try:
        torch.is_autocast_enabled("cpu")
    except Exception:  # before torch 2.4 it takes no device
        found.append(("autocast-cuda", torch.is_autocast_enabled))
        if hasattr(torch, "is_autocast_cpu_enabled"):
            found.append(("autocast-cpu", torch.is_autocast_cpu_enabled))
    else:
        for kind in ("cuda", "cpu"):
            found.append(("autocast-" + kind, _with(torch.is_autocast_enabled, kind)))
            found.append(("autocast-dtype-" + kind, _with(torch.get_autocast_dtype, kind)))
    cuda = sys.modules.get("torch.cuda")
    if hasattr(cuda, "_initialized"):
        found.append(("cuda-initialized", lambda: bool(cuda._initialized)))  # type: ignore[union-attr]
    shared = sys.modules.get("torch.multiprocessing")
    if hasattr(shared, "_sharing_strategy"):
        found.append(("sharing-strategy", lambda: shared._sharing_strategy))  # type: ignore[union-attr]
    return found


def _with(getter: "Callable[[str], Any]", kind: str) -> "Getter":
    return lambda: getter(kind)


def warm() -> "dict[str, object]":
    """Environment, signal handlers, start method, global module hooks: name -> value."""
    found = {}
    for name, value in os.environ.items():
        if name.startswith(PREFIXES) or name in VARIABLES:
            found["env." + name] = value
    signal = sys.modules.get("signal")
    if signal is not None:
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                found["signal." + name] = signal.getsignal(number)  # type: ignore[attr-defined]
    context = getattr(sys.modules.get("multiprocessing.context"), "_default_context", None)
    if context is not None:
        actual = getattr(context, "_actual_context", None)
        found["start-method"] = actual.get_start_method() if actual is not None else None
    module = sys.modules.get("torch.nn.modules.module")
    for name in _HOOKS:
        hooks = getattr(module, name, None)
        if hooks is not None:
            found["module-hooks." + name[len("_global_") :]] = tuple(hooks.values())
    return found


def seeds() -> "dict[str, object]":
    """Fingerprints of the generators of random and numpy.random, with whether they look newly seeded.

    A Mersenne Twister stands at position 624 after seeding, and below it after the first draw.
    """
    found = {}
    random = sys.modules.get("random")
    if hasattr(random, "getstate"):
        state = random.getstate()[1]  # type: ignore[union-attr]
        found["seed-python"] = (hash(state), state[-1] == 624)
    numpy = sys.modules.get("numpy.random")
    if hasattr(numpy, "get_state"):
        state = numpy.get_state()  # type: ignore[union-attr]
        if state[0] == "MT19937":
            found["seed-numpy"] = (hash(state[1].tobytes()), state[2] == 624)
    return found


def words(value: object) -> str:
    """A value as a person would write it."""
    try:
        if callable(value) and not isinstance(value, type) and hasattr(value, "__qualname__"):
            code = getattr(value, "__code__", None)
            where = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else ""
            return f"{getattr(value, '__module__', '')}.{value.__qualname__}{where}"
        if isinstance(value, tuple) and value and all(callable(item) for item in value):
            return ", ".join(words(item) for item in value)
        text = str(getattr(value, "name", value)) if type(value).__module__ == "signal" else str(value)
    except Exception:  # a foreign __str__ or __qualname__
        return "?"
    return text[:300]
