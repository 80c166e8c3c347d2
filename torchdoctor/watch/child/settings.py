"""Process-wide settings that a Python program can change, and how each is read.

Runs in the examined interpreter: standard library only, syntax of Python 3.6, and torch only as the program
itself has imported it. Reading changes nothing: no getter here initialises CUDA, fixes a start method or
draws a random number. All of them together take 5 µs: they are read after each line of the program.
What replaces parts of torch is in ``patches``.
"""

import os
import signal
import sys
from functools import partial

MYPY = False
if MYPY:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    Getter = Callable[[], Any]

# Variables that torch, CUDA, NCCL, the launchers or the numeric libraries read.
PREFIXES = (
    "CUDA", "NCCL", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "VECLIB_", "TORCH", "PYTORCH",
    "TRITON_", "CUBLAS", "CUDNN", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "MIOPEN_", "GLOO_", "UCX_", "FI_",
    "ACCELERATE_", "XLA_", "DS_", "TP_",
)  # fmt: skip
VARIABLES = frozenset((
    "LD_LIBRARY_PATH", "LD_PRELOAD", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE",
    "LOCAL_WORLD_SIZE", "PYTHONHASHSEED", "TOKENIZERS_PARALLELISM", "MALLOC_ARENA_MAX",
))  # fmt: skip

_SIGNALS = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGALRM",
    "SIGABRT", "SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL", "SIGBREAK",
)  # fmt: skip

# Settings of one thread, in which another thread's differ without anybody having changed them. OpenMP keeps
# the number of its threads for each thread.
OF_A_THREAD = frozenset((
    "grad-mode", "inference-mode", "autocast-cache", "autocast-cuda", "autocast-cpu", "autocast-dtype-cuda",
    "autocast-dtype-cpu", "dispatch-modes", "threads", "default-device",
))  # fmt: skip

# What a fresh process has. A module that is imported and used in one line shows only the outcome, and a torch
# that was imported before us (a .pth file, sitecustomize) may have been changed by then.
DEFAULTS = {
    "grad-mode": True, "inference-mode": False, "anomaly-mode": False, "default-device": None,
    "deterministic": False, "cudnn-enabled": True, "cudnn-benchmark": False, "cudnn-deterministic": False,
    "autocast-cuda": False, "autocast-cpu": False, "cuda-initialized": False, "start-method": None,
}  # type: dict[str, object]  # fmt: skip

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
# Modules that hold a setting and may be imported later than torch.
LATE = (
    "multiprocessing.context", "numpy.random", "torch.cuda", "torch.multiprocessing", "torch.utils._device",
    "torch.nn.modules.module",
)  # fmt: skip


def first(name: str, value: object) -> object:
    """The former value of a setting without a default when its module is seen for the first time.

    numpy seeds its generator with entropy: one with a number was seeded in the line that imported it.
    """
    return None if name == "seed-numpy" and str(value).startswith("seed ") else value


def lookup(root: object, path: str) -> "Any":
    found = root
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def plain_getters() -> "list[tuple[str, Getter]]":
    """Settings of Python itself."""
    # signal.getsignal makes an enum of each answer, which takes twenty times as long
    getsignal = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)
    found = [("recursion-limit", sys.getrecursionlimit)]  # type: list[tuple[str, Getter]]
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None:
            found.append(("signal." + name, partial(getsignal, int(number))))
    return found


def torch_getters(torch: "Any") -> "list[tuple[str, Getter]]":
    """The settings that this torch has; a getter that does not work on it is left out."""
    found = []  # type: list[tuple[str, Getter]]
    for name, paths in _TORCH:
        for path in paths:
            getter = lookup(torch, path)
            if callable(getter) and _works(getter):
                found.append((name, getter))
                break
    return found + [(name, getter) for name, getter in _more_getters(torch) if _works(getter)]


def answer(read: "Getter") -> "Any":
    """What a getter says, or that it refuses to."""
    try:
        return read()
    except Exception as error:
        return f"refused: {type(error).__name__}"


def _works(getter: "Getter") -> bool:
    try:
        getter()
    except Exception:  # another signature in another torch
        return False
    return True


def _more_getters(torch: "Any") -> "Iterator[tuple[str, Getter]]":
    enabled = getattr(torch, "is_autocast_enabled", None)
    if not callable(enabled):
        pass
    elif not _works(partial(enabled, "cpu")):  # before torch 2.4 it takes no device
        yield "autocast-cuda", enabled
        if hasattr(torch, "is_autocast_cpu_enabled"):
            yield "autocast-cpu", torch.is_autocast_cpu_enabled
    else:
        for kind in ("cuda", "cpu"):
            yield "autocast-" + kind, partial(enabled, kind)
            yield "autocast-dtype-" + kind, partial(torch.get_autocast_dtype, kind)
    # torch 2.9 and later: one word for each backend and kind of operation
    precision = getattr(getattr(torch, "_C", None), "_get_fp32_precision_getter", None)
    for backend, operation in (("generic", "all"), ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn")):
        if precision is not None:
            yield "fp32-precision-" + backend + "-" + operation, partial(precision, backend, operation)


def late_getters(name: str, module: "Any") -> "list[tuple[str, Getter]] | None":
    """The settings in a module of ``LATE``; None while it is not ready."""
    if name == "multiprocessing.context":
        context = getattr(module, "_default_context", None)
        return None if context is None else [("start-method", partial(_start_method, context))]
    if name == "numpy.random":
        return _numpy_seed(module)
    if name == "torch.cuda":
        if hasattr(module, "_initialized"):
            return [("cuda-initialized", lambda: bool(module._initialized))]
    elif name == "torch.multiprocessing":
        if hasattr(module, "_sharing_strategy"):
            return [("sharing-strategy", lambda: module._sharing_strategy)]
    elif name == "torch.utils._device":
        if hasattr(module, "CURRENT_DEVICE"):
            return [("default-device", _default_device(module))]
    else:
        found = []  # type: list[tuple[str, Getter]]
        for hooks in _HOOKS:
            content = getattr(module, hooks, None)
            if content is not None:
                found.append(("module-hooks." + hooks[len("_global_") :], partial(tuple, content.values())))
        return found
    return []


def _default_device(module: "Any") -> "Getter":
    """A reader of the device of set_default_device() and `with torch.device()`: the innermost of their modes.

    CURRENT_DEVICE alone is not set by the latter.
    """
    core = getattr(sys.modules["torch"], "_C", None)
    depth = getattr(core, "_len_torch_function_stack", None)
    at = getattr(core, "_get_function_stack_at", None)
    context = getattr(module, "DeviceContext", None)
    if depth is None or at is None or context is None:
        return lambda: module.CURRENT_DEVICE

    def read() -> "Any":
        for level in range(depth() - 1, -1, -1):
            mode = at(level)
            if isinstance(mode, context):
                return mode.device
        return None

    return read


def _start_method(context: "Any") -> "str | None":
    actual = context._actual_context
    # the concrete contexts have their name as an attribute; get_start_method() would fix a default
    return None if actual is None else str(getattr(actual, "_name", "?"))


def _numpy_seed(module: "Any") -> "list[tuple[str, Getter]] | None":
    """A reader of the global generator of numpy.random: what it was seeded with, None once it was drawn from.

    numpy 1.17 and later give the address of the state for ctypes; its layout is struct mt19937_state of
    numpy/random/src/mt19937/mt19937.h: 624 words, then the position. get_state() would take 10 µs.
    """
    generator = getattr(getattr(getattr(module, "mtrand", None), "_rand", None), "_bit_generator", None)
    if generator is None or type(generator).__name__ != "MT19937" or not hasattr(generator, "ctypes"):
        return [] if hasattr(module, "mtrand") else None
    import ctypes

    address = int(generator.ctypes.state_address)
    first, second, third = (ctypes.c_uint32.from_address(address + 4 * at) for at in range(3))
    position = ctypes.c_int.from_address(address + 4 * 624)

    def read() -> "str | None":
        if position.value != 624:
            return None
        word = first.value
        if word == 0x80000000:  # an array of seeds, or entropy of the system
            return f"state {second.value:08x}{third.value:08x}"
        # init_genrand: the first word is the seed, and the second follows from it
        if second.value == (1812433253 * (word ^ (word >> 30)) + 1) & 0xFFFFFFFF:
            return f"seed {word}"
        return None

    # the generator is kept: the words lie in it
    return [("seed-numpy", partial(_second, generator, read))]


def _second(kept: object, read: "Getter") -> "Any":
    return read()


def caught_signals() -> int:
    """The signals that have a handler, of Python or native, as a mask; 0 where that cannot be told."""
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith("SigCgt:"):
                    return int(line.split()[1], 16)
    except (OSError, ValueError):
        pass
    return 0


def signal_names(mask: int) -> "list[str]":
    names = []
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and mask >> (int(number) - 1) & 1 and not callable(signal.getsignal(number)):
            names.append(name)
    return names


def environment() -> "dict[Any, Any]":
    """The live dictionary behind os.environ; a copy when it is none of the usual."""
    data = getattr(os.environ, "_data", None)
    return data if isinstance(data, dict) else dict(os.environ)


def native_variables() -> "dict[str, str]":
    """Variables that concern torch and that os.environ does not know so: native code or os.putenv set them.

    Looks only where ctypes is imported already, as torch and numpy do.
    """
    ctypes = sys.modules.get("ctypes")  # type: Any
    found = {}  # type: dict[str, str]
    if not sys.platform.startswith("linux") or not hasattr(ctypes, "CDLL"):
        return found
    try:
        entries = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    except (ValueError, OSError):  # a C library without that name
        return found
    at = 0
    while entries and entries[at]:
        key, _, value = bytes(entries[at]).partition(b"=")
        name = variable(key)
        if name is not None and os.environ.get(name) != os.fsdecode(value):
            found[name] = os.fsdecode(value)
        at += 1
    return found


def variable(key: object) -> "str | None":
    """The name of a variable that concerns torch, from a key of ``environment``."""
    name = os.fsdecode(key) if isinstance(key, (bytes, str)) else str(key)
    return name if name.startswith(PREFIXES) or name in VARIABLES else None


_torchs = []  # type: list[set[str]]


def torchs_variables() -> "set[str]":
    """The variables that torch itself sets from now on: what it keeps there is not the program's doing.

    A set that grows; Python 3.8 and later, else it stays empty. One hook a process: none can be taken away.
    """
    if _torchs:
        return _torchs[0]
    found = set()  # type: set[str]
    _torchs.append(found)

    def heard(event: str, args: "tuple[Any, ...]") -> None:
        if event != "os.putenv":
            return
        frame = sys._getframe(1)  # type: FrameType | None
        while frame is not None and frame.f_globals.get("__name__") == "os":
            frame = frame.f_back
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame is not None else ""
        of_torch = package in ("torch", "functorch", "torchgen", "triton")
        (found.add if of_torch else found.discard)(os.fsdecode(args[0]))

    getattr(sys, "addaudithook", lambda hook: None)(heard)
    return found


def of_dynamo(name: str, frame: "FrameType | None") -> bool:
    """Is it the recursion limit, which Dynamo raises while it compiles? The line does not speak of it."""
    return (
        name == "recursion-limit"
        and "torch._dynamo" in sys.modules
        and frame is not None
        and "setrecursionlimit" not in frame.f_code.co_names
    )


def words(value: object) -> str:
    """A value as a person would write it."""
    try:
        if isinstance(value, bytes):
            return os.fsdecode(value)[:300]
        if callable(value) and not isinstance(value, type) and hasattr(value, "__qualname__"):
            code = getattr(value, "__code__", None)
            where = f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else ""
            return f"{getattr(value, '__module__', '')}.{value.__qualname__}{where}"
        if isinstance(value, tuple):
            return ", ".join(words(item) for item in value) or "none"
        return str(value)[:300]
    except Exception:  # a foreign __str__ or __qualname__
        return "?"


def handler(value: object) -> str:
    """A signal handler in words: SIG_DFL and SIG_IGN come as numbers."""
    names = {int(signal.SIG_DFL): "default action", int(signal.SIG_IGN): "ignored"}
    if isinstance(value, int):
        return names.get(int(value), str(value))
    return "native code" if value is None else words(value)
