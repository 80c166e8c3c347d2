"""What the examined interpreter says about itself and about torch. Runs there, as a program of its own.

Called as ``python target.py STAGES@LIMITS FILE``: STAGES are joined by "+" out of ``interpreter``, ``import``
and ``cuda``, LIMITS are the seconds that the last two may take, joined by ","; facts go to FILE, one JSON
object a line, written the moment they are known, so that those before a crash survive it. Standard library
only, syntax of Python 3.6, no annotation that 3.6 would evaluate.

It imports next to nothing before torch: a file of the environment that hides a standard module must break the
import here as it breaks it there.
"""

import gc
import os
import sys
import time

MYPY = False  # true for mypy alone: typing would be one more module that torch finds already imported
if MYPY:
    from typing import Any

REPORT = sys.argv[2] if len(sys.argv) > 2 else ""


def encode(value: object) -> str:
    """JSON, in ASCII; the json module would load twenty others."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if value - value == 0 else "null"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(encode(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(encode(str(key)) + ": " + encode(item) for key, item in value.items()) + "}"
    units = str(value).encode("utf-16-be", "surrogatepass")
    codes = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    return '"' + "".join(encode_unit(code) for code in codes) + '"'


def encode_unit(code: int) -> str:
    return chr(code) if 32 <= code < 127 and code not in (34, 92) else f"\\u{code:04x}"


def write(record: "dict[str, object]") -> None:
    # Opened anew for each line: the library under test may close descriptors that it did not open.
    stream = os.open(REPORT, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(stream, (encode(record) + "\n").encode("ascii"))
    finally:
        os.close(stream)


def fact(name: str, value: object) -> None:
    write({"name": name, "value": value})


def absent(name: str, detail: str = "") -> None:
    write({"name": name, "state": "absent", "detail": detail})


def unknown(name: str, reason: str, detail: str = "") -> None:
    write({"name": name, "state": "unknown", "reason": reason, "detail": detail})


def stage(name: str, state: str) -> None:
    write({"stage": name, "state": state})


def describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a broken __str__ of a foreign exception class
        text = "?"
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def search_what_is_installed() -> None:
    """Leave out of sys.path what depends on where we are, and this file's own folder.

    The current folder may hold a stranger's torch.py or random.py: what hides there is found by looking.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and os.path.normpath(entry) != here]


def examine_interpreter() -> None:
    import sysconfig

    fact("python.executable", sys.executable)
    fact("python.version", ".".join(str(part) for part in sys.version_info[:3]) + _release_level())
    fact("python.implementation", sys.implementation.name)
    fact("python.prefix", sys.prefix)
    fact("python.bits", 64 if sys.maxsize > 2**32 else 32)
    fact("python.path", [os.path.abspath(entry) for entry in sys.path])
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        fact("python.environment", "conda")
    else:
        fact("python.environment", "system" if sys.prefix == sys.base_prefix else "venv")
    fact("python.free_threaded", bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX") or "")
    fact("python.tag", suffix.strip(".").split(".")[0])
    fact("python.musl", "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""))
    include = sysconfig.get_paths().get("include") or ""
    fact("python.headers", os.path.isfile(os.path.join(include, "Python.h")))
    import site

    if site.ENABLE_USER_SITE:
        fact("python.user_site", site.getusersitepackages())
    else:
        absent("python.user_site", "not searched")
    find_torch()


def _release_level() -> str:
    level, serial = sys.version_info[3:5]
    return "" if level == "final" else {"alpha": "a", "beta": "b"}.get(level, "rc") + str(serial)


def find_torch() -> None:
    import importlib.util

    try:
        spec = importlib.util.find_spec("torch")
    except BaseException as error:  # the finder of an editable install may raise anything
        unknown("torch.path", "crashed", describe(error))
        return
    if spec is None:
        absent("torch.path", "no module named torch on sys.path")
        return
    places = list(spec.submodule_search_locations or ())
    fact("torch.path", spec.origin if spec.origin and not places else (places or [""])[0])


def import_torch() -> "Any":
    """The module, or None when the import failed; says how it went."""
    # The collector finds nothing in an import and takes a tenth of its time.
    gc.disable()
    begun = time.perf_counter()
    try:
        import torch
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: they are what the import did
        fact("torch.import_seconds", round(time.perf_counter() - begun, 3))
        fact("torch.import_outcome", "exit" if isinstance(error, SystemExit) else "error")
        fact("torch.import_ok", False)
        fact("torch.import_error", describe(error)[:4000])
        fact("torch.import_error_type", type(error).__name__)
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
            fact("torch.import_exit_code", code)
        fact("torch.import_where", last_frame(error))
        return None
    fact("torch.import_seconds", round(time.perf_counter() - begun, 3))
    fact("torch.import_outcome", "ok")
    fact("torch.import_ok", True)
    return torch


def last_frame(error: BaseException) -> str:
    trace = error.__traceback__
    where = ""
    while trace is not None:
        where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where


def examine_torch(torch: "Any") -> None:
    """Each question on its own: an old, patched or half-broken torch answers some of them."""
    for name, ask in QUESTIONS:
        try:
            value = ask(torch)
        except Exception as error:
            unknown(name, "crashed", describe(error)[:500])
            continue
        if value is None:
            absent(name)
        elif value == "" or value == []:
            unknown(name, "unparsable", "torch gave no answer")
        else:
            fact(name, value)
    examine_cudnn(torch)
    examine_numpy(torch)


def _arch_list(torch: "Any") -> "list[str] | None":
    if not torch.version.cuda and not torch.version.hip:
        return None
    # get_arch_list() may give nothing where there is no GPU; the flags of the build are there all the same.
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    return ((flags() if flags else "") or "").split() or list(torch.cuda.get_arch_list())


def _nccl(torch: "Any") -> "str | None":
    version = getattr(torch._C, "_nccl_version", None)
    if version is None:
        return None
    number = version()
    if isinstance(number, tuple):
        return ".".join(str(part) for part in number)
    if number >= 1 << 32:  # torch 1.10 and later: a field of 32 bits, two of 16
        return f"{number >> 32}.{number >> 16 & 0xFFFF}.{number & 0xFFFF}"
    base = 1000 if number < 10000 else 10000  # NCCL's own number: 2708 is 2.7.8, 21005 is 2.10.5
    return f"{number // base}.{number % base // 100}.{number % 100}"


QUESTIONS = (
    ("torch.file", lambda torch: torch.__file__),
    ("torch.imported_version", lambda torch: str(torch.__version__)),
    ("torch.arch_list", _arch_list),
    ("torch.nccl", _nccl),
    ("torch.cxx11_abi", lambda torch: bool(torch._C._GLIBCXX_USE_CXX11_ABI)),
    ("torch.debug", lambda torch: bool(torch.version.debug)),
    ("torch.grad_enabled", lambda torch: torch.is_grad_enabled()),
    ("torch.default_dtype", lambda torch: str(torch.get_default_dtype()).replace("torch.", "")),
    ("torch.deterministic", lambda torch: bool(torch.are_deterministic_algorithms_enabled())),
    ("torch.matmul_precision", lambda torch: torch.get_float32_matmul_precision()),
    ("torch.cudnn_tf32", lambda torch: bool(torch._C._get_cudnn_allow_tf32())),
    ("torch.threads", lambda torch: torch.get_num_threads()),
)


def examine_cudnn(torch: "Any") -> None:
    try:
        number = torch.backends.cudnn.version()
    except Exception as error:  # a cuDNN of another version than torch was compiled for
        fact("torch.cudnn_error", describe(error)[:1000])
        unknown("torch.cudnn", "crashed", describe(error)[:500])
        return
    absent("torch.cudnn_error")
    if number is None:
        absent("torch.cudnn")
        return
    # 8907 is 8.9.7; from cuDNN 9 on one digit more: 90100 is 9.1.0
    base = 10000 if number >= 90000 else 1000
    fact("torch.cudnn", f"{number // base}.{number % base // 100}.{number % 100}")


def examine_numpy(torch: "Any") -> None:
    import importlib.util

    if importlib.util.find_spec("numpy") is None:
        absent("torch.numpy_ok", "NumPy is not installed")
        absent("torch.numpy_error")
        return
    try:
        import numpy

        torch.zeros(1).numpy()
        torch.from_numpy(numpy.zeros(1))
    except Exception as error:
        fact("torch.numpy_ok", False)
        fact("torch.numpy_error", describe(error)[:500])
    else:
        fact("torch.numpy_ok", True)
        absent("torch.numpy_error")


FAMILIES = (
    "cuda", "cudnn", "cublas", "cudart", "cufft", "curand", "cusolver", "cusparse", "nccl", "rccl", "nvrtc",
    "nvJitLink", "nvjitlink", "cupti", "nvToolsExt", "nvtx", "cufile", "nvshmem", "nvinfer", "nvidia",
    "amdhip", "hip", "roc", "MIOpen", "hsa-runtime", "gomp", "iomp", "omp", "mkl", "openblas", "tbb",
    "stdc++", "gcc_s", "torch", "c10", "caffe2",
)  # fmt: skip


def list_libraries() -> None:
    """Files of the libraries that matter, out of the maps of this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError as error:
        reason = "not-permitted" if isinstance(error, PermissionError) else "not-installed"
        unknown("torch.libraries", reason, str(error))
        return
    found = set()
    for line in lines:
        path = line[line.find("/") :] if "/" in line else ""
        name = path.rpartition("/")[2]
        if name.startswith("lib") and ".so" in name and name[3:].startswith(FAMILIES):
            found.add(path.replace(" (deleted)", ""))
    fact("torch.libraries", sorted(found))


def examine_cuda(torch: "Any") -> None:
    """Start CUDA as torch does, and ask the driver: no context is made and no memory taken."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = bool(torch.cuda.is_available())
    said = [str(item.message) for item in caught]
    fact("torch.cuda_available", available)
    if not available and not said and (torch.version.cuda or torch.version.hip):
        # is_available swallows the reason; the call below it tells, and starts nothing when it fails.
        try:
            torch._C._cuda_init()
        except Exception as error:
            said.append(describe(error))
    if said and not available:
        fact("torch.cuda_error", "\n".join(said)[:2000])
    else:
        absent("torch.cuda_error")
    fact("torch.device_count", torch.cuda.device_count() if available else 0)
    if torch.version.cuda:
        ask_driver()


def ask_driver() -> None:
    """What the libcuda of this process says, through its own interface: cuInit makes no context."""
    import ctypes

    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError as error:
        absent("torch.driver_cuda", str(error))
        return
    number = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(number)) == 0:
        fact("torch.driver_cuda", f"{number.value // 1000}.{number.value % 1000 // 10}")
    code = driver.cuInit(0)
    fact("torch.cuda_init_code", code)
    if code != 0 or driver.cuDeviceGetCount(ctypes.byref(number)) != 0:
        return
    names, capabilities = [], []
    for at in range(number.value):
        device, part = ctypes.c_int(), ctypes.c_int()
        text = ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), at)
        driver.cuDeviceGetName(text, 256, device)
        names.append(text.value.decode("utf-8", "replace"))
        parts = []
        for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
            driver.cuDeviceGetAttribute(ctypes.byref(part), attribute, device)
            parts.append(str(part.value))
        capabilities.append(".".join(parts))
    fact("torch.device_names", names)
    fact("torch.device_capability", capabilities)


def watch(limit_s: float) -> None:
    """Have the Python stack written to stderr on a crash and at the limit, at which the process ends.

    The thread that does so needs no lock of Python's: it works while a library holds the interpreter.
    """
    import faulthandler

    faulthandler.enable()
    if hasattr(faulthandler, "dump_traceback_later"):
        faulthandler.dump_traceback_later(limit_s, exit=True)


def main() -> None:
    stages, _, given = sys.argv[1].partition("@")
    limits = [float(limit) for limit in given.split(",") if limit]
    search_what_is_installed()
    for name in stages.split("+"):
        stage(name, "begin")
        if name == "interpreter":
            examine_interpreter()
            stage(name, "end")
            continue
        if limits:
            watch(limits.pop(0))
        if name == "import":
            torch = import_torch()
            if torch is None:
                list_libraries()
                stage(name, "end")
                break
            examine_torch(torch)
            list_libraries()
        elif name == "cuda":
            examine_cuda(sys.modules["torch"])
        stage(name, "end")
    # Not through the interpreter's end: torch's takes a quarter of the import's time, and tells nothing.
    os._exit(0)


if __name__ == "__main__":
    main()
