"""The CUDA toolkit, C++ compiler and ninja that builds of extensions and torch.compile use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.machine import Command, Missing, Unreadable
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, told


def _which(context: Context, name: str) -> str | None:
    try:
        return str(context.machine.answer("which", name))
    except Missing:
        return None


def toolkit(context: Context) -> str | None:
    """The toolkit's folder as torch finds it: see _find_cuda_home in torch/utils/cpp_extension.py."""
    chosen = context.variable("CUDA_HOME") or context.variable("CUDA_PATH")
    if chosen:
        return chosen.rstrip("/")
    nvcc = _which(context, "nvcc")
    if nvcc:
        return context.machine.real_path(nvcc).rpartition("/bin/")[0] or "/usr"
    return "/usr/local/cuda" if context.machine.exists("/usr/local/cuda") else None


def _nvcc(context: Context) -> str | None:
    folder = toolkit(context)
    if folder is None:
        return None
    path = f"{folder}/bin/nvcc"
    return path if context.machine.exists(path) else None


def nvcc_command(context: Context) -> Command | None:
    """Ask nvcc for its version, where no file tells it."""
    path = _nvcc(context)
    if path is None or _version_in_files(context):
        return None
    return Command("nvcc --version", (path, "--version"), context.limits.tool_s)


def _version_in_files(context: Context) -> str | None:
    folder = toolkit(context)
    text = context.machine.read_or(f"{folder}/version.json") + context.machine.read_or(
        f"{folder}/version.txt"
    )
    match = re.search(r'"cuda_nvcc"\s*:\s*\{[^{}]*"version"\s*:\s*"([\d.]+)"', text)
    match = match or re.search(r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"([\d.]+)"', text)
    match = match or re.search(r"CUDA Version ([\d.]+)", text)
    return match[1] if match else None


def _toolkit_version(context: Context) -> FactValue:
    if _nvcc(context) is None:
        return None
    ask = nvcc_command(context)
    if ask is None:
        return _version_in_files(context)
    outcome = context.machine.finish(ask)
    match = re.search(r"release (\d+\.\d+)(?:, V([\d.]+))?", outcome.stdout)
    if match is None:
        raise Unreadable("nvcc --version", *failure(outcome))
    return match[2] or match[1]


def _compiler(context: Context) -> str | None:
    """The first of CXX, c++ and g++ that is there."""
    names = (context.variable("CXX").split(" ")[0], "c++", "g++", "clang++")
    return next((path for name in names if name and (path := _which(context, name))), None)


def compiler_command(context: Context) -> Command | None:
    path = _compiler(context)
    return Command("c++ --version", (path, "--version"), context.limits.tool_s) if path else None


def _compiler_version(context: Context) -> FactValue:
    """12.2.0 of "g++ (Debian 12.2.0-14+deb12u1) 12.2.0", 14.0.0 of "Ubuntu clang version 14.0.0-1ubuntu1"."""
    ask = compiler_command(context)
    if ask is None:
        return None
    outcome = context.machine.finish(ask)
    line = outcome.stdout.splitlines()[0] if outcome.stdout else ""
    match = re.search(r"version (\d+\.\d+(?:\.\d+)?)", line) or re.search(
        r"(\d+\.\d+(?:\.\d+)?)(?:\s+\d{8}.*)?$", line
    )
    if match is None:
        raise Unreadable("c++ --version", Reason.UNPARSABLE, line[:80] or failure(outcome)[1])
    return match[1]


def _look_toolkit(context: Context) -> Iterator[Fact]:
    yield told("toolkit.path", partial(toolkit, context), "CUDA_HOME, PATH, /usr/local/cuda")
    yield told("toolkit.nvcc", partial(_nvcc, context))
    yield told("toolkit.version", partial(_toolkit_version, context), "version.json, nvcc --version")


def _look_compiler(context: Context) -> Iterator[Fact]:
    yield told("compiler.cxx", partial(_compiler, context), "CXX, PATH")
    yield told("compiler.cxx_version", partial(_compiler_version, context), "c++ --version")


def _look_ninja(context: Context) -> Iterator[Fact]:
    yield told("compiler.ninja", partial(_which, context, "ninja"), "PATH")


_NAMES = tuple(CATALOGUE["toolchain"])
PROBES = (
    Probe(
        tuple(name for name in _NAMES if name.startswith("toolkit.")), Cost.SLOW, _look_toolkit, nvcc_command
    ),
    Probe(("compiler.cxx", "compiler.cxx_version"), Cost.SLOW, _look_compiler, compiler_command),
    Probe(("compiler.ninja",), Cost.CHEAP, _look_ninja),
)
