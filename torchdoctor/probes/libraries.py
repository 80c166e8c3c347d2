"""Which copy of a CUDA library a process gets: the wheel's own, or another that comes before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason, State
from torchdoctor.probes.driver import library_path
from torchdoctor.probes.machine import Missing, Unreadable
from torchdoctor.probes.probe import Context, Cost, Probe, told

# soname without "lib" and version -> the part of the wheel's name between nvidia- and -cu12
_WHEELS = {
    "cublas": "cublas", "cublasLt": "cublas", "cudart": "cuda-runtime", "cudnn": "cudnn", "cufft": "cufft",
    "curand": "curand", "cusolver": "cusolver", "cusparse": "cusparse", "cusparseLt": "cusparselt",
    "nccl": "nccl", "nvJitLink": "nvjitlink", "nvrtc": "cuda-nvrtc", "cupti": "cuda-cupti",
    "nvToolsExt": "nvtx", "cufile": "cufile", "nvshmem_host": "nvshmem",
}  # fmt: skip
_LIKE = tuple(f"lib{name}*.so*" for name in _WHEELS)
_TORCH_FILES = (
    "libtorch_cuda.so",
    "libtorch_hip.so",
    "libtorch_cpu.so",
    "libtorch_global_deps.so",
    "libc10_cuda.so",
)


def stem(path: str) -> str:
    """cudnn for libcudnn_ops_infer.so.8 as well as for libcudnn.so.9: what comes from one package."""
    name = path.rpartition("/")[2].partition(".so")[0]
    name = name[3:] if name.startswith("lib") else name
    return "cudnn" if name.startswith("cudnn") else name


def _names(context: Context, folder: str, like: tuple[str, ...] = ("*",)) -> tuple[str, ...]:
    try:
        return context.machine.names(folder, like)
    except Missing:
        return ()


def wheel_folders(context: Context) -> tuple[str, ...]:
    """Folders in which torch and NVIDIA's wheels keep their libraries."""
    found = []
    for site in context.texts("python.path"):
        found += [f"{site}/nvidia/{part}/lib" for part in _names(context, f"{site}/nvidia")]
        found += [f"{site}/{name}" for name in _names(context, site, ("torch.libs", "cusparselt"))]
    found += [f"{torch}/lib" for torch in context.texts("torch.copies")]
    return tuple(dict.fromkeys(found))


def _wheel_files(context: Context) -> dict[str, str]:
    """soname -> path of the wheel's copy."""
    found: dict[str, str] = {}
    for folder in wheel_folders(context):
        for name in _names(context, folder, _LIKE):
            if ".so." in name:
                found.setdefault(name, f"{folder}/{name}")
    return found


def search_folders(context: Context) -> tuple[str, ...]:
    folders = re.split("[:;]", context.variable("LD_LIBRARY_PATH"))
    return tuple(dict.fromkeys(folder.rstrip("/") or "/" for folder in folders if folder))


def _with_cuda(context: Context) -> FactValue:
    return tuple(folder for folder in search_folders(context) if _names(context, folder, _LIKE))


def _preloaded(context: Context) -> FactValue:
    words = re.split(r"[:\s]+", context.variable("LD_PRELOAD"))
    words += context.machine.read_or("/etc/ld.so.preload").split()
    return tuple(word for word in words if word) or None


def _file_version(context: Context, path: str) -> str:
    match = re.search(r"\.so\.(\d+\.\d+[\d.]*)$", context.machine.real_path(path))
    return match[1] if match else ""


def _wheel_versions(context: Context) -> Mapping[str, str]:
    """stem -> version of the wheel that brings it."""
    from torchdoctor.probes.distributions import installed

    by_name = {
        f"nvidia-{part}{suffix}": part
        for part in set(_WHEELS.values())
        for suffix in ("", "-cu11", "-cu12", "-cu13")
    }
    found = {
        by_name[name]: items[0].version for name, items in installed(context, tuple(sorted(by_name))).items()
    }
    return {library: found[part] for library, part in _WHEELS.items() if part in found}


def _shadows(context: Context) -> FactValue:
    """Copies of another version, or of none that can be told, in a folder that is searched first."""
    own = _wheel_files(context)
    versions = _wheel_versions(context)
    ours = {_real(context, path.rpartition("/")[0]) for path in own.values()}
    found = []
    for folder in search_folders(context):
        if _real(context, folder) in ours:
            continue
        for name in _names(context, folder, _LIKE):
            if name not in own or stem(name) not in _WHEELS:
                continue
            theirs, wheel = _file_version(context, f"{folder}/{name}"), versions.get(stem(name), "")
            if theirs and wheel and (wheel.startswith(theirs) or theirs.startswith(wheel)):
                continue
            first, then = (version or "version unknown" for version in (theirs, wheel))
            found.append(f"{name}: {folder} ({first}) before {own[name]} ({then})")
    return tuple(found)


def _real(context: Context, path: str) -> str:
    try:
        return context.machine.real_path(path)
    except Unreadable:
        return path


def _missing(context: Context) -> FactValue:
    """What torch's files need that neither their RPATH, nor the wheels, nor the loader's ways hold."""
    torch = next(iter(context.texts("torch.copies")), "")
    if not torch:
        return None
    here = f"{torch}/lib"
    files = _names(context, here, ("libtorch*.so", "libc10*.so"))
    if not files:
        return None
    wheels = wheel_folders(context)
    lacking: dict[str, str] = {}
    for name in files:
        if name not in (*_TORCH_FILES, "libc10.so", "libtorch_python.so", "libtorch.so"):
            continue
        asks = context.machine.dynamic(f"{here}/{name}")
        ways = [way.replace("$ORIGIN", here) for way in (asks.rpath or asks.runpath).split(":") if way]
        for soname in asks.needed:
            if soname in lacking or soname.startswith(("ld-linux", "libpython")):
                continue
            if any(context.is_there(f"{way}/{soname}") for way in (*ways, *wheels)):
                continue
            if library_path(context, soname) is None and not _in_prefix(context, soname):
                lacking[soname] = name
    return tuple(f"{soname}, needed by {name}" for soname, name in lacking.items())


def _in_prefix(context: Context, soname: str) -> bool:
    return context.is_there(f"{context.text('python.prefix')}/lib/{soname}")


def _torch_search(context: Context) -> FactValue:
    for torch in context.texts("torch.copies")[:1]:
        for name in _TORCH_FILES:
            try:
                asks = context.machine.dynamic(f"{torch}/lib/{name}")
            except Missing:
                continue
            return "rpath" if asks.rpath else "runpath" if asks.runpath else "none"
    return None


def _look(context: Context) -> Iterator[Fact]:
    yield told("library.search_folders", partial(_with_cuda, context), "LD_LIBRARY_PATH")
    yield told("library.preloaded", partial(_preloaded, context), "LD_PRELOAD")
    known = context.ask("python.path")
    ways = {
        "library.shadows": (_shadows, "LD_LIBRARY_PATH"),
        "library.missing": (_missing, "ELF headers"),
        "library.torch_search": (_torch_search, "ELF headers"),
    }
    for name, (look, source) in ways.items():
        if known.state is State.KNOWN:
            yield told(name, partial(look, context), source)
        else:
            yield Fact.unknown(name, known.reason or Reason.NOT_ASKED, source, known.detail)


_STATIC = (
    "library.search_folders", "library.preloaded", "library.shadows", "library.missing",
    "library.torch_search",
)  # fmt: skip
_LOADED = ("library.loaded_elsewhere", "library.duplicates", "openmp.runtimes")


def _look_loaded(context: Context) -> Iterator[Fact]:
    """What the import really loaded; the surest of all."""
    maps = context.ask("torch.libraries")
    if maps.state is not State.KNOWN:
        for name in _LOADED:
            yield Fact(name, maps.state, None, maps.reason, maps.source, maps.detail)
        return
    loaded = context.texts("torch.libraries")
    own = _wheel_files(context)
    elsewhere = [
        path
        for path in loaded
        if stem(path) in _WHEELS
        and (mine := _of_wheel(own, path)) is not None
        and _real(context, mine) != _real(context, path)
    ]
    yield Fact.known("library.loaded_elsewhere", tuple(elsewhere), maps.source)
    by_stem: dict[str, list[str]] = {}
    for path in loaded:
        name = path.rpartition("/")[2].partition(".so")[0]
        if name[3:] in _WHEELS or name.startswith(("libtorch", "libc10")):
            by_stem.setdefault(name, []).append(path)
    twice = tuple(" and ".join(paths) for paths in by_stem.values() if len(paths) > 1)
    yield Fact.known("library.duplicates", twice, maps.source)
    runtimes = tuple(
        path for path in loaded if re.match(r"lib(?:gomp|iomp5|omp)(?:[-.]|$)", path.rpartition("/")[2])
    )
    yield Fact.known("openmp.runtimes", runtimes, maps.source)


def _of_wheel(own: Mapping[str, str], path: str) -> str | None:
    """The wheel's copy of a loaded library: of the same soname (libcudnn.so.9 for libcudnn.so.9.5.1)."""
    name = path.rpartition("/")[2]
    while ".so." in name:
        if name in own:
            return own[name]
        name = name.rpartition(".")[0]
    return None


PROBES = (
    Probe(_STATIC, Cost.CHEAP, _look, needs=("python.path", "torch.copies", "python.prefix")),
    Probe(_LOADED, Cost.CHEAP, _look_loaded, needs=("torch.libraries", "python.path", "torch.copies")),
)
