"""Claims about libraries, builds, memory, processors and settings."""

from __future__ import annotations

from torchdoctor.model import Reason
from torchdoctor.probes.compatibility import SAFE_LOCKS, compiler_below, gcc_for_headers, parse
from torchdoctor.probes.derived import CannotTell, Claim, Derived, Facts, NotApplicable

_LEAST_DISK = 1 << 30
_SMALL_SHM = 64 << 20  # what docker gives a container that asks for nothing

# Variables meant for debugging, the values that switch them on, and what they cost.
_DEBUG: dict[str, tuple[tuple[str, ...], str]] = {
    "CUDA_LAUNCH_BLOCKING": (("1",), "every kernel launch waits"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (("*",), "every allocation goes to the driver"),
    "CUDA_CACHE_DISABLE": (("1",), "PTX is recompiled in every process"),
    "NCCL_P2P_DISABLE": (("1",), "GPUs copy through host memory"),
    "NCCL_IB_DISABLE": (("1",), "no InfiniBand"),
    "NCCL_SHM_DISABLE": (("1",), "no shared memory between ranks"),
    "NCCL_DEBUG": (("INFO", "TRACE"), "long logs"),
    "TORCH_DISTRIBUTED_DEBUG": (("DETAIL",), "every collective is checked"),
    "TORCH_CPP_LOG_LEVEL": (("INFO",), "long logs"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": (("0",), "a failed collective hangs"),
    "TORCH_NCCL_BLOCKING_WAIT": (("1",), "collectives wait on the host"),
    "NCCL_BLOCKING_WAIT": (("1",), "collectives wait on the host"),
    "TORCH_COMPILE_DEBUG": (("1",), "every compilation is dumped"),
    "TORCHDYNAMO_DISABLE": (("1",), "torch.compile does nothing"),
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": (("1",), "everything is recompiled"),
    "TRITON_INTERPRET": (("1",), "Triton kernels run in Python"),
    "NVIDIA_TF32_OVERRIDE": (("0",), "no TF32 in any library"),
    "KMP_DUPLICATE_LIB_OK": (("TRUE", "1"), "two OpenMP runtimes may give wrong results"),
    "MALLOC_CHECK_": (("1", "2", "3"), "slow host memory"),
    "PYTHONMALLOC": (("debug", "malloc_debug", "pymalloc_debug"), "slow host memory"),
}


def _library_shadowed(facts: Facts) -> Claim:
    """By what the import loaded; else by what the loader would find first."""
    loaded = facts.maybe("library.loaded_elsewhere")
    if loaded:
        return Claim(True, f"loaded: {', '.join(facts.texts('library.loaded_elsewhere'))}")
    shadows = facts.texts("library.shadows")
    if not shadows:
        return Claim(False)
    if facts.maybe("torch.import_ok") is not True or loaded is None:
        return Claim(True, shadows[0])
    # A working import loaded the wheel's own; libraries that torch loads later may still be others.
    here = {path.rpartition("/")[2] for path in facts.texts("torch.libraries")}
    later = [shadow for shadow in shadows if shadow.partition(":")[0] not in here]
    if later:
        raise CannotTell(f"the import loads the wheel's own; loaded later may be {later[0]}")
    return Claim(False, f"the import loads the wheel's own, not {shadows[0].partition(' before')[0]}")


def _openmp_duplicate(facts: Facts) -> Claim:
    """Intel's and LLVM's runtimes check for each other and abort; GNU's takes no notice of others."""
    names = facts.texts("openmp.runtimes")
    checking = [path for path in names if path.rpartition("/")[2].startswith(("libiomp5", "libomp"))]
    return Claim(len(checking) > 1, " and ".join(checking) if len(checking) > 1 else ", ".join(names))


def _lock_stale(facts: Facts) -> Claim:
    locks = facts.texts("extension.locks")
    if not locks:
        return Claim(False, "no lock")
    version = facts.text("torch.version")
    if not version:
        raise NotApplicable("torch is not installed")
    if parse(version)[:2] >= SAFE_LOCKS:
        return Claim(False, f"a leftover file does no harm to torch {version}")
    owner = facts.text("extension.lock_owner")
    if owner == "unknown":
        raise CannotTell(f"{locks[0]}: its builder cannot be looked for", Reason.NOT_PERMITTED)
    return Claim(owner == "none", locks[0])


def _toolkit_matches(facts: Facts) -> Claim:
    toolkit, torch = facts.text("toolkit.version"), facts.text("torch.cuda")
    if not toolkit or not torch:
        raise NotApplicable("no toolkit, or torch is not built for CUDA")
    return Claim(parse(toolkit)[0] == parse(torch)[0], f"toolkit {toolkit}, torch for CUDA {torch}")


def _takes_compiler(facts: Facts) -> Claim:
    toolkit, path = facts.text("toolkit.version"), facts.text("compiler.cxx")
    version = facts.text("compiler.cxx_version")
    if not toolkit or not version:
        raise NotApplicable("no toolkit, or no compiler")
    kind = "clang" if "clang" in path.rpartition("/")[2] else "gcc"
    below = compiler_below(parse(toolkit), kind)
    if below is None:
        raise CannotTell(f"which {kind} CUDA {toolkit} takes is not known yet")
    words = f"{kind} {version}, CUDA {toolkit} takes those before {'.'.join(map(str, below))}"
    return Claim(parse(version) < below, words)


def _takes_headers(facts: Facts) -> Claim:
    torch, version = facts.text("torch.version"), facts.text("compiler.cxx_version")
    least = gcc_for_headers(parse(torch)) if torch else None
    if not version or least is None or "clang" in facts.text("compiler.cxx").rpartition("/")[2]:
        raise NotApplicable("no torch of the table, or no gcc")
    return Claim(parse(version) >= least, f"gcc {version}, torch {torch} needs {least[0]} or later")


def _older_libstdcxx(facts: Facts) -> Claim:
    own, system = facts.text("libstdcxx.glibcxx"), facts.text("libstdcxx.system_glibcxx")
    if not own or not system:
        raise NotApplicable("no GNU C++ runtime")
    return Claim(
        parse(own) < parse(system), f"GLIBCXX_{own} in {facts.text('libstdcxx.path')}, system {system}"
    )


def _usable_cpus(facts: Facts) -> Claim:
    processors = facts.number("cpu.affinity") or facts.number("cpu.count")
    quota = facts.number("cgroup.cpu_quota", processors)
    return Claim(min(processors, quota), "cgroup quota" if quota < processors else "affinity")


def _memory_limit(facts: Facts) -> Claim:
    total = facts.get("memory.total_bytes")
    limit = facts.get("cgroup.memory_limit_bytes")
    if not isinstance(total, int):
        raise NotApplicable("the machine does not report its memory")
    if isinstance(limit, int) and limit < total:
        return Claim(limit, "cgroup")
    return Claim(total, "machine")


def _headroom(facts: Facts) -> Claim:
    free, limit = facts.get("memory.available_bytes"), facts.get("cgroup.memory_limit_bytes")
    if not isinstance(free, int):
        raise NotApplicable("the machine does not report its memory")
    # what is charged to a cgroup holds caches that the kernel gives up: only its limit counts
    return Claim(limit, "cgroup") if isinstance(limit, int) and limit < free else Claim(free, "machine")


def _overcounted(facts: Facts) -> Claim:
    seen, usable = facts.number("cpu.count"), facts.number("cpu.usable")
    return Claim(seen >= 8 and usable * 4 <= seen, f"{usable:g} of {seen:g}")


def _disk_low(facts: Facts) -> Claim:
    places = {
        "temporary files": "tmp",
        "the home folder": "home",
        "the working folder": "work",
        "a cache": "cache",
    }
    found = []
    for words, name in places.items():
        free = facts.maybe(f"disk.{name}_free_bytes")
        if isinstance(free, int) and free < _LEAST_DISK:
            found.append(f"{words}: {free >> 20} MiB free")
    if not found:
        facts.get("disk.work_free_bytes")
    return Claim(tuple(found) or None)


def _https_unproxied(facts: Facts) -> Claim:
    names = {name.lower() for name in facts.texts("net.proxies")}
    return Claim("http_proxy" in names and not names & {"https_proxy", "all_proxy"}, ", ".join(sorted(names)))


def _small_shm(facts: Facts) -> Claim:
    size = facts.get("shm.size_bytes")
    if not isinstance(size, int):
        raise NotApplicable("no /dev/shm")
    return Claim(size <= _SMALL_SHM, f"{size >> 20} MiB")


def _leaked_debug(facts: Facts) -> Claim:
    found = []
    for name, (values, cost) in _DEBUG.items():
        value = facts.text(f"env.{name}")
        if value and ("*" in values or value.upper() in {one.upper() for one in values}):
            found.append(f"{name}={value}: {cost}")
    return Claim(tuple(found) or None)


CLAIMS = (
    Derived(
        "library.shadowed",
        ("library.loaded_elsewhere", "library.shadows", "torch.import_ok", "torch.libraries"),
        _library_shadowed,
    ),
    Derived("openmp.duplicate", ("openmp.runtimes",), _openmp_duplicate),
    Derived(
        "extension.lock_stale", ("extension.locks", "torch.version", "extension.lock_owner"), _lock_stale
    ),
    Derived(
        "toolkit.takes_compiler", ("toolkit.version", "compiler.cxx", "compiler.cxx_version"), _takes_compiler
    ),
    Derived(
        "compiler.takes_headers", ("torch.version", "compiler.cxx_version", "compiler.cxx"), _takes_headers
    ),
    Derived("toolkit.matches_torch", ("toolkit.version", "torch.cuda"), _toolkit_matches),
    Derived(
        "libstdcxx.older_than_system",
        ("libstdcxx.glibcxx", "libstdcxx.system_glibcxx", "libstdcxx.path"),
        _older_libstdcxx,
    ),
    Derived("cpu.usable", ("cpu.affinity", "cpu.count", "cgroup.cpu_quota"), _usable_cpus),
    Derived("memory.limit_bytes", ("memory.total_bytes", "cgroup.memory_limit_bytes"), _memory_limit),
    Derived("memory.headroom_bytes", ("memory.available_bytes", "cgroup.memory_limit_bytes"), _headroom),
    Derived("cpu.overcounted", ("cpu.count", "cpu.usable"), _overcounted),
    Derived(
        "disk.low", tuple(f"disk.{one}_free_bytes" for one in ("tmp", "home", "work", "cache")), _disk_low
    ),
    Derived("net.https_unproxied", ("net.proxies",), _https_unproxied),
    Derived("shm.small", ("shm.size_bytes",), _small_shm),
    Derived("env.leaked_debug", tuple(f"env.{name}" for name in _DEBUG), _leaked_debug),
)
