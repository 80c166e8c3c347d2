"""Facts out of the dynamic loader's messages: a library that is not there, a symbol or version it lacks.

The loader says which file it was loading, what it looked for and where. These three decide between a
missing package, a library of another CUDA that was found first, an old driver, an old C++ runtime and an
extension built for another torch; the sentence around them is the same for all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.model import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Event, FactValue, Transcript

NAMESPACE = "dlopen"

FACTS: dict[str, str] = {
    "dlopen.kind": "str: missing-library, undefined-symbol, missing-version, bad-file, wrong-architecture, "
    "static-tls or dll-load-failed",
    "dlopen.library": "str: the library that is missing, or that lacks the version; no directory",
    "dlopen.library_path": "str: the same with its directory, when the message gives one",
    "dlopen.library_family": "str: cuda-driver, nvml, cuda-toolkit, cudnn, nccl, torch, torch-rocm, "
    "torchvision, torchaudio, mkl, openmp, python, cxx-runtime, libc or other",
    "dlopen.library_major": "int: first number after .so or in the DLL's name (libcudart.so.12 gives 12)",
    "dlopen.symbol": "str: the symbol that is not defined, as linked (mangled)",
    "dlopen.symbol_family": "str: torch-abi, nvjitlink, cublas, cuda-toolkit, cudnn, nccl, cuda-driver, "
    "nvml, rocm, mkl, openmp, python, cxx-runtime or other",
    "dlopen.version": "str: the symbol version that is wanted (GLIBCXX_3.4.29, libcublasLt.so.11)",
    "dlopen.version_family": "str: glibcxx, glibc, cxxabi or other",
    "dlopen.loader_file": "str: the file that was being loaded, as printed",
    "dlopen.win_error": "int: Windows error: 126 not found, 127 no such procedure, 1114 start routine "
    "failed, as printed or told by the words in the system's language",
    "dlopen.loader_package": "str: the Python package that file belongs to (torch, mmcv, flash_attn_2_cuda)",
}

# One of these stands in every message of the kind; all else is skipped without a regular expression.
_TRIGGERS = (
    ".so", ".dll", ".dylib", ".pyd", "undefined symbol", "ymbol not found", "DLL load failed",
    "load symbol", "GLIBC", "CXXABI",
)  # fmt: skip

_FILE = r"(?P<file>[^\s'\"`(){},;]+?\.(?:so|pyd|dll|dylib)[^\s:'\"`,;]*)"

_PATTERNS: dict[str, str] = {
    # glibc: dl-lookup.c, also printed by "symbol lookup error: FILE:" before main
    "undefined": _FILE.replace("<file>", "<loader>")
    + r": undefined symbol: (?P<symbol>[^\s,'\")]+)(?:, version (?P<version>[^\s,'\")]+))?",
    "undefined-bare": r"undefined symbol:? (?P<symbol>[^\s,'\")]+)(?:, version (?P<version>[^\s,'\")]+))?",
    "relocation": r"relocation error: (?P<loader>[^\s:]+): symbol (?P<symbol>[^\s,]+),? version "
    r"(?P<version>\S+) not defined in file (?P<file>\S+) with link time reference",
    # dyld; newer macOS puts the symbol in parentheses and a sentence after it
    "mac-symbol": r"(?:dlopen\((?P<loader>[^,]+),[^)]*\): )?[Ss]ymbol not found(?: in flat namespace)?:? "
    r"[('‘]*(?P<symbol>[^\s)'’]+)",
    "mac-expected": r"Expected in:\s+(?:<[^>]*> )?(?P<file>\S+)",
    "mac-missing": r"(?:dlopen\((?P<loader>[^,]+),[^)]*\): )?Library not loaded: (?P<file>\S+)",
    # glibc: dl-version.c; the quotes and the words around are translated in some locales
    "version": r"(?:(?P<file>[^\s'\"`(]+): )?[^\s:]{0,20} ?[`'‘»„\"]?"
    r"(?P<version>(?:GLIBCXX|GLIBC|CXXABI|GOMP|OMP|NVJITLINK)_[\d.]+)"
    r"['’«”\"]? [^(]{2,40}\((?:[^()]{2,30} )?(?P<loader>[^\s()]+)\)?",
    "missing": _FILE + r": (?:[^\s:]+: )?cannot open shared object file",
    # the same in a locale of its own: the library, a colon and text that is none of the known sentences
    "missing-local": r"(?:^|ImportError\(['\"]|OSError\(['\"])(?P<file>(?:/\S*/)?lib[^\s:/'\"]+?\.so[\d.]*): "
    r"(?P<rest>[^\n]{4,})",
    "not-in-path": r"(?P<file>lib\w+\.so)\S* not found in the system path",
    "cudnn-load": r"Could not load library (?P<file>\S+?)\.? Error",
    "cudnn-any": r"Unable to load any of \{(?P<file>[^,}\s]+)",
    "cudnn-locate": r"Could not locate (?P<file>[\w.-]+?\.(?:dll|so[\w.]*))",
    "cudnn-symbol": r"(?:Cannot load symbol|Could not load symbol) (?P<symbol>\w+)",
    "bad-file": _FILE + r": (?P<rest>file too short|invalid ELF header|wrong ELF class[^\n]{0,20}|"
    r"cannot enable executable stack[^\n]{0,60})",
    "static-tls": _FILE + r": cannot allocate memory in static TLS block",
    "mac-arch": r"dlopen\((?P<loader>[^,]+),[^\n]*?incompatible architecture",
    "win-torch": r"Error loading [\"'](?P<file>[^\"']+)[\"'] or one of its dependencies",
    "win-import": r"DLL load failed(?: while importing (?P<loader>\w+))?:",
    "win-module": r"Could not find module ['\"](?P<file>[^'\"]+)['\"] \(or one of its dependencies\)",
}

# Tried in this order: the first that fits says what kind of message it is.
_ORDER: tuple[tuple[str, str], ...] = (
    ("relocation", "undefined-symbol"),
    ("undefined", "undefined-symbol"),
    ("undefined-bare", "undefined-symbol"),
    ("mac-symbol", "undefined-symbol"),
    ("cudnn-symbol", "undefined-symbol"),
    ("static-tls", "static-tls"),
    ("mac-arch", "wrong-architecture"),
    ("bad-file", "bad-file"),
    ("version", "missing-version"),
    ("cudnn-load", "missing-library"),
    ("cudnn-any", "missing-library"),
    ("cudnn-locate", "missing-library"),
    ("missing", "missing-library"),
    ("not-in-path", "missing-library"),
    ("mac-missing", "missing-library"),
    ("win-torch", "dll-load-failed"),
    ("win-import", "dll-load-failed"),
    ("win-module", "dll-load-failed"),
    ("missing-local", "missing-library"),
)

# A literal that each pattern cannot do without, so that most are never compiled.
_NEEDS: dict[str, str] = {
    "relocation": "relocation error", "undefined": "undefined symbol", "undefined-bare": "undefined symbol",
    "mac-symbol": "ymbol not found", "cudnn-symbol": "load symbol", "static-tls": "static TLS",
    "mac-arch": "incompatible architecture", "cudnn-load": "Could not load library",
    "cudnn-any": "Unable to load any of", "cudnn-locate": "Could not locate",
    "missing": "cannot open shared object", "not-in-path": "not found in the system path",
    "mac-missing": "Library not loaded", "win-torch": "Error loading", "win-import": "DLL load failed",
    "win-module": "Could not find module", "missing-local": ".so", "version": "_",
}  # fmt: skip

# Beginnings of file names, without "lib". The longer of two that fit must stand first.
_LIBRARY_FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("torch-rocm", ("torch_hip", "c10_hip", "amdhip64", "MIOpen", "rocblas", "hipblas", "hsa-runtime", "rccl",
                    "rocsolver", "hipsparse", "rocm_smi", "hiprtc", "rocrand", "hipfft", "roctx")),
    ("torchaudio", ("torchaudio", "_torchaudio")),
    ("torchvision", ("torchvision",)),
    ("torch", ("torch", "c10", "shm.", "shm_windows", "caffe2", "asmjit", "fbgemm", "uv.dll")),
    ("cudnn", ("cudnn",)),
    ("nccl", ("nccl",)),
    ("nvml", ("nvidia-ml", "nvml")),
    ("cuda-driver", ("cuda.so", "cuda.dylib", "nvcuda", "nvidia-ptxjitcompiler", "nvidia-nvvm")),
    ("cuda-toolkit", ("cudart", "cublas", "cufft", "curand", "cusolver", "cusparse", "nvrtc", "nvJitLink",
                      "nvjitlink", "cupti", "nvToolsExt", "nvtoolsext", "cufile", "nvshmem", "caffe2_nvrtc",
                      "nvblas", "npp", "nvperf", "cudss")),
    ("mkl", ("mkl", "svml", "imf.", "intlc")),
    ("openmp", ("iomp5", "omp.", "gomp", "omp140", "libomp")),
    ("python", ("python",)),
    ("cxx-runtime", ("stdc++", "gcc_s", "msvcp", "vcruntime", "c++.")),
    ("libc", ("c.so.", "m.so.", "pthread.so", "dl.so", "rt.so")),
)  # fmt: skip

_SYMBOL_FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("nvjitlink", ("__nvJitLink", "nvJitLink")),
    ("cublas", ("cublas",)),
    ("cudnn", ("cudnn",)),
    ("nccl", ("nccl", "pnccl")),
    ("cuda-toolkit", ("cuda", "__cuda", "cusparse", "cusolver", "cufft", "curand", "cupti", "nvrtc", "nvtx",
                      "nvshmem", "cuFile")),
    ("nvml", ("nvml",)),
    ("rocm", ("hip", "hsa_", "roc", "miopen", "rccl")),
    ("mkl", ("iJIT_", "mkl_", "MKL_", "LAPACKE_", "vml", "vsl", "__svml")),
    ("openmp", ("GOMP_", "omp_", "__kmpc", "kmp_")),
    ("python", ("Py", "_Py")),
)  # fmt: skip

# Namespaces at, c10, torch and caffe2 in a mangled name, as owner or as an argument's type; torch's C names.
_TORCH_MARKS = ("N2at", "N3c10", "N5torch", "N6caffe2", "K2at", "K3c10", "K5torch", "THPVariable",
                "THPDevice", "aoti_torch", "torch_library", "torch_call_dispatcher", "c10_cuda",
                "2at6Tensor")  # fmt: skip

# What Windows' own sentences hold, by language, for texts without the number.
_WINDOWS_WORDS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (127, ("specified procedure", "指定的程序", "procédure spécifiée", "angegebene Prozedur",
           "proceso especificado", "procedimiento especificado", "指定されたプロシージャ",
           "указанная процедура", "지정된 프로시저", "procedimento especificado", "procedura specificata",
           "określonej procedury")),
    (1114, ("initialization routine failed", "初始化例程", "routine d’initialisation", "初始化常式",
            "routine d'initialisation", "Initialisierungsroutine", "rutina de inicialización",
            "初期化ルーチン", "программе инициализации", "초기화 루틴", "rotina de inicialização",
            "routine di inizializzazione")),
    (126, ("specified module", "指定的模块", "指定的模組", "module spécifié", "angegebene Modul",
           "módulo especificado", "指定されたモジュール", "указанный модуль", "지정된 모듈",
           "modulo specificato", "określonego modułu", "one of its dependencies")),
)  # fmt: skip


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name])


def library_family(name: str) -> str:
    """Which software a library file belongs to, by its name; "other" when it is none that torch loads."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    bare = base[3:] if base.startswith("lib") else base
    for family, starts in _LIBRARY_FAMILIES:
        if bare.startswith(starts):
            return family
    if base.startswith("_torchaudio"):
        return "torchaudio"
    return "other"


def symbol_family(symbol: str) -> str:
    """Which software defines a symbol, by its (mangled) name; "other" when the name does not tell."""
    bare = symbol[1:] if symbol.startswith("__Z") else symbol
    if any(mark in bare for mark in _TORCH_MARKS):
        return "torch-abi"
    if "cudnn" in bare:
        return "cudnn"  # also mangled: _ZN5cudnn3ops…
    for family, starts in _SYMBOL_FAMILIES:
        if bare.startswith(starts):
            return family
    # The driver's API: cu and a capital (cuInit, cuTensorMapEncodeTiled).
    if len(bare) > 2 and bare.startswith("cu") and bare[2].isupper():
        return "cuda-driver"
    if bare.startswith(("_ZNSt", "_ZNKSt", "_ZSt", "__cxa", "_ZTINSt", "_ZTVNSt")):
        return "cxx-runtime"
    return "other"


def loader_package(path: str) -> str:
    """The Python package a file lies in; the file's own stem when it lies in none, "" for an empty path."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return ""
    inside = parts
    for index, part in enumerate(parts):
        if part in ("site-packages", "dist-packages"):
            inside = parts[index + 1 :]
            break
    else:
        # A checkout: the package is the folder that holds the library, as in vllm/vllm/_C.abi3.so.
        own = parts[-1].split(".", 1)[0]
        return parts[-2] if own.startswith("_") and len(parts) > 1 else own
    if not inside:
        return ""
    first = inside[0]
    if len(inside) == 1:
        return first.split(".", 1)[0]
    return first.removesuffix(".libs")


def _major(library: str) -> int | None:
    found = re.search(r"\.so\.(\d+)|64_(\d+)|_(\d+)\.dll", library)
    if found is None:
        return None
    digits = next(group for group in found.groups() if group)
    if found.group(1) is None and len(digits) > 2:
        return int(digits[:2])  # cudart64_110.dll is CUDA 11.0
    return int(digits)


def _version_family(version: str) -> str:
    for start, family in (("GLIBCXX_", "glibcxx"), ("GLIBC_", "glibc"), ("CXXABI_", "cxxabi")):
        if version.startswith(start):
            return family
    return "other"


def _windows_error(text: str) -> int | None:
    """Number of the Windows error: printed, or told by the sentence in the system's language."""
    printed = re.search(r"WinError (\d+)", text)
    if printed is not None:
        return int(printed.group(1))
    for number, words in _WINDOWS_WORDS:
        if any(word in text for word in words):
            return number
    return None


def _clean(path: str) -> str:
    return path.strip("'\"`‘’«»(){},;")


def _search(text: str) -> tuple[str, re.Match[str]] | None:
    for name, kind in _ORDER:
        need = _NEEDS.get(name)
        if need is not None and need not in text:
            continue
        found = _pattern(name).search(text)
        if found is None:
            continue
        if name == "missing-local" and not _is_local_missing(found.group("rest")):
            continue
        return kind, found
    return None


def _is_local_missing(rest: str) -> bool:
    """Whether the words after a library's name can be a translated "cannot open shared object file"."""
    # "cannot open …: No such file" has two clauses in every language of glibc.
    return ": " in rest and not rest.startswith(("undefined", "version", "symbol", "in function", "warning"))


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    """Facts of one message of the dynamic loader; nothing when the event is not one."""
    text = event.text
    if not any(trigger in text for trigger in _TRIGGERS):
        return
    hit = _search(text)
    if hit is None:
        return
    kind, found = hit
    source = f"text:{event.source}:{event.line}"
    groups = found.groupdict()

    def known(name: str, value: FactValue) -> Fact:
        return Fact.known(f"dlopen.{name}", value, source)

    yield known("kind", kind)
    library = _clean(groups.get("file") or "")
    if not library and kind == "undefined-symbol" and "Expected in" in text:
        expected = _pattern("mac-expected").search(text)
        library = expected.group("file") if expected else ""
    version = groups.get("version") or ""
    if not library and kind == "undefined-symbol" and ".so" in version:
        library = version  # "version libcublasLt.so.11": the symbol's version is named after its library
    loader = _clean(groups.get("loader") or "")
    if kind in ("bad-file", "static-tls", "dll-load-failed") and not loader:
        loader = library
    if not loader and kind == "missing-library":
        loader = _loaded_by(event)
    yield from _named("library", library, source)
    if library:
        base = library.replace("\\", "/").rsplit("/", 1)[-1]
        if base != library:
            yield known("library_path", library)
        yield known("library_family", library_family(base))
        major = _major(base)
        if major is not None:
            yield known("library_major", major)
    symbol = groups.get("symbol") or ""
    yield from _named("symbol", symbol, source)
    if symbol:
        yield known("symbol_family", symbol_family(symbol))
    yield from _named("version", version, source)
    if version:
        yield known("version_family", _version_family(version))
    if kind == "dll-load-failed":
        number = _windows_error(text)
        if number is not None:
            yield known("win_error", number)
    yield from _named("loader_file", loader, source)
    if loader:
        yield known("loader_package", loader_package(loader))


def _named(name: str, value: str, source: str) -> Iterator[Fact]:
    if not value:
        yield Fact.absent(f"dlopen.{name}", source)
    elif name == "library":
        yield Fact.known("dlopen.library", value.replace("\\", "/").rsplit("/", 1)[-1], source)
    else:
        yield Fact.known(f"dlopen.{name}", value, source)


def _loaded_by(event: Event) -> str:
    """The Python file whose import failed: the loader does not say which library wanted the missing one."""
    for frame in reversed(event.frames):
        if "importlib" not in frame.file and "ctypes" not in frame.file:
            return frame.file
    return ""
