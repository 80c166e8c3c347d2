"""Which software a library, a symbol or a file on the disk belongs to, by its name alone."""

from __future__ import annotations

import re

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
                "2at6Tensor",
                # torch 0.1 to 1.10, in C
                "N4thpp", "THNN_", "THCState", "THRefcounted", "THTensor", "THStorage")  # fmt: skip

# what compilers of GPU code put beside each kernel, and between kernels that call each other
_DEVICE_CODE = ("__device_stub__", "__fatbinwrap_", "__cudaRegisterLinkedBinary")

# a std::string as an argument or in a container, by the Itanium ABI: the old one has the short name Ss
_OLD_STRING = r"(?:RK|P|R|I|O)Ss"
_NEW_STRING = r"St7__cxx11|B5cxx11"


def string_abi(symbol: str) -> str | None:
    """Of which C++ ABI of GNU the strings in a mangled name are, "old" or "new" (cxx11); None without one."""
    if re.search(_NEW_STRING, symbol):
        return "new"
    return "old" if symbol.startswith("_Z") and re.search(_OLD_STRING, symbol) else None


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
    if any(mark in bare for mark in _DEVICE_CODE):
        return "device-code"
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


def symbol_cuda(symbol: str) -> str | None:
    """The CUDA release that a symbol of nvJitLink names, ``__nvJitLinkComplete_12_4``; None for others."""
    found = re.fullmatch(r"__nvJitLink[A-Za-z]+_(\d{2})_(\d{1,2})", symbol)
    return f"{found[1]}.{found[2]}" if found is not None else None


def unlinked(symbol: str, loader: str) -> bool:
    """Was the extension ``loader`` built without the CUDA library that ``symbol`` is in?

    NVIDIA's libraries give their functions a version (libcurand.so.10), and whatever is linked with them asks
    for it. NCCL gives none, and __cuda… belongs to what nvcc itself adds.
    """
    path = loader.replace("\\", "/")
    own = path.rpartition("/")[2]
    extension = ".cpython-" in own or ".abi3." in own or "/torch_extensions/" in path or "/ops/" in path
    if not extension or loader_package(loader) in ("torch", "nvidia", "torchvision", "torchaudio"):
        return False
    return symbol_family(symbol) in ("cublas", "cuda-toolkit") and not symbol.startswith("__")


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


def is_of_python(path: str) -> bool:
    """Was a file built as, or for, a package of Python, as its folder or its name says?

    Other programs' libraries lie in folders of their own or the system's, and begin with ``lib``.
    """
    parts = path.replace("\\", "/").split("/")
    inside = bool({"site-packages", "dist-packages"} & set(parts))
    return inside or not path.startswith("/") or not parts[-1].startswith("lib")


def in_checkout(path: str) -> bool:
    """Does a file lie in a package of a folder of sources, as vllm/vllm/_C.abi3.so?"""
    parts = path.replace("\\", "/").split("/")
    installed = {"site-packages", "dist-packages", "torch_extensions"} & set(parts)
    return len(parts) > 2 and not installed and parts[-1].startswith("_")


def major_version(library: str) -> int | None:
    """The major version in a library's name: libcudart.so.12 gives 12, cudart64_110.dll 11; else None."""
    found = re.search(r"\.so\.(\d+)|64_(\d+)|_(\d+)\.dll", library)
    if found is None:
        return None
    digits = next(group for group in found.groups() if group)
    if found.group(1) is None and len(digits) > 2:
        return int(digits[:2])  # cudart64_110.dll is CUDA 11.0
    return int(digits)
