"""A small extension is built with torch.utils.cpp_extension and computes right; its lock is honoured.

Two processes build the same extension at once: the compiler may run once, and both must compute right. Then
the lock is held by somebody else: whoever loads must wait, and go on when it is gone. At the deep level with
torch's own headers and, on a GPU with its compiler at hand, a kernel; below it in plain C++, which takes a
second. The files go into a folder of their own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, far, run

NAME = "torchdoctor_selftest"
BUILD_S = 400.0
HELD_S = 20.0  # who has not ended by then, without a word that it waits, is taken to wait
PLAIN = """
extern "C" void twice_plus(const float* in, float* out, long count) {
    for (long at = 0; at < count; ++at) out[at] = in[at] * 2.0f + WRONG;
}
"""
TORCH = """
#include <torch/extension.h>
torch::Tensor twice_plus(torch::Tensor in) { return in * 2.0 + WRONG; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice_plus", &twice_plus); }
"""
KERNEL = """
#include <cuda_runtime.h>
__global__ void work(const float* in, float* out, long count) {
    long at = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (at < count) out[at] = in[at] * 2.0f + WRONG;
}
extern "C" int twice_plus_there(const float* in, float* out, long count) {
    work<<<(count + 255) / 256, 256>>>(in, out, count);
    if (cudaError_t error = cudaGetLastError()) return (int)error;
    return (int)cudaDeviceSynchronize();
}
"""


def build(bench: Bench, kind: str, folder: str) -> Any:
    """Build or load it: the path of a library, or a module for the one with torch's headers."""
    from torch.utils import cpp_extension

    text = {"plain": PLAIN, "torch": TORCH, "kernel": KERNEL}[kind]
    text = text.replace("WRONG", "1.0f" if bench.fault == "one-element" else "0.0f")
    source = os.path.join(folder, f"{kind}.{'cu' if kind == 'kernel' else 'cpp'}")
    if not os.path.exists(source):
        # whole at once: two builders write it
        draft = f"{source}.{os.getpid()}"
        with open(draft, "w", encoding="ascii") as stream:
            stream.write(text)
        os.replace(draft, source)
    flags: dict[str, Any] = {"with_cuda": kind == "kernel", "verbose": False, "build_directory": folder}
    if kind == "torch":
        return cpp_extension.load(f"{NAME}_{kind}", [source], **flags)
    cpp_extension.load(f"{NAME}_{kind}", [source], is_python_module=False, **flags)
    return library(kind, folder)


def library(kind: str, folder: str) -> str:
    """Its file. A name for each kind: torch numbers the files of a name that it has built once already."""
    return os.path.join(folder, f"{NAME}_{kind}.so")


def far_off(bench: Bench, kind: str, made: Any) -> float:
    given = torch.randn(1000, generator=bench.numbers())
    if kind == "torch":
        return far(made.twice_plus(bench.put(given)), given.double() * 2)
    made = ctypes.CDLL(made)
    there = bench.put(given) if kind == "kernel" else given
    out = torch.empty_like(there)
    call = made.twice_plus_there if kind == "kernel" else made.twice_plus
    call(ctypes.c_void_p(there.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_long(1000))
    return far(out, given.double() * 2)


@contextlib.contextmanager
def builder(bench: Bench, kind: str, folder: str) -> Iterator[Any]:
    """Another process that builds the same, and prints how far off its result is."""
    argv = [sys.executable, os.path.abspath(__file__), "--device", str(bench.device), "--level", bench.level]
    argv += ["--seed", str(bench.seed), "--fault", "", f"part:{kind}:{folder}"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def answered(bench: Bench, case: str, process: Any) -> None:
    try:
        said = process.communicate(timeout=BUILD_S)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        bench.holds(case, False, f"did not end within {BUILD_S:.0f} s", "the other's result", "the lock")
        return
    words = [line[4:] for line in said.splitlines() if line.startswith("far ")]
    if process.returncode != 0 or not words:
        last = (said.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        bench.holds(case, False, last[:300], "the other's result", "the lock of torch.utils.cpp_extension")
        bench.text(case, said[-6000:], ())
        return
    bench.within(case, float(words[0]), 1e-6, "float64 on the CPU")


def stamp(kind: str, folder: str) -> int:
    return os.stat(library(kind, folder)).st_mtime_ns


def built(bench: Bench, kind: str, folder: str) -> None:
    """Here and in another process at once, then with the lock held."""
    case = {"plain": "C++", "torch": "C++ with torch's headers", "kernel": "CUDA"}[kind]
    begun = time.monotonic()
    with builder(bench, kind, folder) as process:
        made = build(bench, kind, folder)
        bench.within(f"{case}, built here", far_off(bench, kind, made), 1e-6, "float64 on the CPU")
        answered(bench, f"{case}, built at the same time", process)
    bench.note(f"{case}, seconds", f"{time.monotonic() - begun:.1f}", time.monotonic() - begun)
    held(bench, kind, case, folder)


def held(bench: Bench, kind: str, case: str, folder: str) -> None:
    """While the lock is there nothing may be loaded: its holder may be writing the library."""
    lock, before = os.path.join(folder, "lock"), stamp(kind, folder)
    if os.path.exists(lock):
        bench.holds(f"{case}, lock", False, "left behind", "removed after the build", "cpp_extension")
        os.unlink(lock)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(waits(folder))  # of the builders that came at the same time
    if bench.fault != "silent":  # nobody holds it then, and nobody waits
        with open(lock, "w", encoding="ascii"):
            pass
    with builder(bench, kind, folder) as process:
        first = process.stdout.readline()
        until = time.monotonic() + HELD_S
        while process.poll() is None and not os.path.exists(waits(folder)) and time.monotonic() < until:
            time.sleep(0.05)
        waited = first.startswith(b"begun") and process.poll() is None
        bench.holds(
            f"{case}, lock held", waited, "waits" if waited else "does not wait", "waits",
            "the lock of torch.utils.cpp_extension",
        )  # fmt: skip
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)
        answered(bench, f"{case}, lock gone", process)
    again = stamp(kind, folder) != before
    bench.holds(f"{case}, built once", not again, "built again" if again else "taken as it is", "not again",
                "nothing has changed")  # fmt: skip


def kinds(bench: Bench) -> list[str]:
    from torch.utils import cpp_extension

    if not cpp_extension.is_ninja_available():
        raise Lacking("there is no ninja, which torch.utils.cpp_extension builds with")
    if not shutil.which(os.environ.get("CXX", "g++")):
        raise Lacking("there is no C++ compiler")
    found = ["torch" if bench.level == "deep" else "plain"]
    if bench.device.type == "cuda" and bench.level == "deep":
        home = cpp_extension.CUDA_HOME
        if home and os.path.exists(os.path.join(home, "bin", "nvcc")) and not torch.version.hip:
            found.append("kernel")
        else:
            bench.told("CUDA", "skip", "there is no nvcc: CUDA_HOME is not set, or has none")
    return found


def check(bench: Bench) -> None:
    for kind in kinds(bench):
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
            bench.attempt(f"extension, {kind}", built, bench, kind, folder)


def waits(folder: str) -> str:
    """The file that says that a builder waits for the lock: how long loading takes tells nothing of that."""
    return os.path.join(folder, "waits")


def part(bench: Bench, name: str) -> None:
    import torch.utils.cpp_extension  # noqa: F401  (before it says that it has begun)
    from torch.utils.file_baton import FileBaton

    kind, _, folder = name.partition(":")
    lock: Any = FileBaton
    wait = lock.wait

    def told(baton: Any) -> None:
        with open(waits(folder), "w", encoding="ascii"):
            pass
        wait(baton)

    lock.wait = told
    print("begun", flush=True)
    print(f"far {far_off(bench, kind, build(bench, kind, folder))!r}", flush=True)


if __name__ == "__main__":
    run(check, part)
