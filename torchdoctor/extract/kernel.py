"""Whose compiled kernel a message is about: the package that has to be built again, when it is not torch.

torch's old checks name the source file; native frames and the line that raised name the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "kernel.package": "str: package, not torch, whose compiled code the message or its frames lead into",
    "kernel.extension": "str: the same, unless torch's own release decides its: torchvision, torchaudio",
    "kernel.release": "str: version of that package, where the path of its library tells it",
}
# "(nms_cuda at /vision/torchvision/csrc/cuda/nms_cuda.cu:127)", "file ./engine/src/utils/memory.cu line 32"
_SOURCE = (
    r"(?<![\w.@-])((?:\.{0,2}/)?(?:[\w.+-]{1,80}/){1,20})[\w.+-]{1,80}\.(?:cuh?|hip|cpp|cc|hp?p?)"
    r"(?:[: ,]{1,2}(?:line )?\d|$)"
)
# a folder of an unpacked release: flashinfer-0.1.4+cu121torch2.4
_RELEASE = r"-(\d+\.\d+(?:\.\d+)?)[\w.+]*$"
# what torch itself says, or thrust for it
_WORDS_OF_TORCH = r"(?:CUDA|HIP|CUDA driver) error: |cuda runtime error \(|THCudaCheck |cudaError[A-Z]"
# "frame #1: nms_cuda(…) + 0x710 (0x7f in /…/torchvision/_C.so)"
_LIBRARY = r"\bin (/[^\s()]{1,300}\.(?:so|pyd)[\w.]*)\)"
_OPERATOR = r"\btorch\.ops\.(\w{1,60})\."
_MODULE = r"(?<![\w.])(?:_[A-Za-z]\w{0,60}|ext_module|\w{1,60}_(?:cuda|gpu|ext))\.\w{1,80}\("
_EGG = r"(\w[\w.]{0,60})-(\d+\.\d+(?:\.\d+)?)[\w.+]*-py\d\.\d+"
# folders that a project keeps its sources in, and those of torch itself
_SOURCES = frozenset(
    {"csrc", "src", "ops", "cuda", "kernels", "cpp", "lib", "include", "layers", "hip", "third_party"}
)
_OF_TORCH = (
    "aten/",
    "ATen/",
    "c10/",
    "torch/csrc",
    "caffe2/",
    "THC/",
    "pytorch/",
    "libtorch",
    "libc10",
    "/torch/",
)
_TORCH_OPERATORS = frozenset(
    {"aten", "prims", "prim", "profiler", "c10d", "c10d_functional", "quantized", "inductor"}
)
_COMPANIONS = frozenset({"torchvision", "torchaudio"})
# packages of kernels alone: what fails inside a call of theirs failed in one, though torch reports it later
_ALL_KERNELS = frozenset({"flashinfer"})
_NOBODY_S = ("", "torch", "triton", "python")
_PACKAGES = ("site-packages", "dist-packages")
_EVERYBODY_S = frozenset(
    {"home", "root", "tmp", "work", "workspace", "opt", "build", "usr", "app", "mnt", "data"}
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The package that the sources, the native frames or the line that raised name; not torch."""
    libraries = [found[1] for found in pattern(_LIBRARY).finditer(event.text)]
    of_egg = next(filter(None, (pattern(_EGG).search(path) for path in libraries)), None)
    name, release = _of_sources(event.text)
    if of_egg is not None and of_egg[1] == (name or of_egg[1]):
        name, release = of_egg[1], of_egg[2]
    name = name or next(filter(None, map(_of_library, libraries)), "") or _of_frames(event)
    if name:
        yield "package", name
        if name not in _COMPANIONS:
            yield "extension", name
        if release:
            yield "release", release


def _of_sources(text: str) -> tuple[str, str]:
    """The project in whose tree the source file lies that the message names, and its release."""
    for found in pattern(_SOURCE).finditer(text.replace("\\", "/")):
        if any(mark in found[1] for mark in _OF_TORCH):
            return "", ""
        folders = [part for part in found[1].split("/") if part not in ("", ".", "..")]
        installed = next((at for at, part in enumerate(folders) if part in _PACKAGES), None)
        if installed is not None:
            return next(iter(folders[installed + 1 :]), ""), ""
        at = next((at for at, part in enumerate(folders) if part in _SOURCES), 0)
        name = folders[at - 1] if at else ""
        if name and name not in _EVERYBODY_S and not name.startswith("pip-") and not name.endswith("-src"):
            release = pattern(_RELEASE).search(name)
            return (name, "") if release is None else (name[: release.start()], release[1])
    return "", ""


def _of_library(path: str) -> str:
    """The package that a native library belongs to; "" for torch's and the system's."""
    if any(mark in path for mark in _OF_TORCH):
        return ""
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts) if part in _PACKAGES or ".egg" in part), None)
    if at is None:
        return ""
    rest = [part for part in parts[at + 1 :] if ".egg" not in part]
    return re.split(r"[.-]", rest[0])[0] if rest else ""


def _of_frames(event: Event) -> str:
    """The package whose line raised it: by what the line calls, else by the message, which is not torch's."""
    frames = list(event.frames)
    if len(frames) > 1 and frames[-1].file.replace("\\", "/").endswith("torch/_ops.py"):
        frames.pop()  # an operator that the line before calls
        called = frames[-1]
        if called.package not in _NOBODY_S and "torch.ops" not in called.code and "aten" not in called.code:
            return called.package
    if not frames:
        return ""
    name = _of_line(frames[-1])
    if not name and "no kernel image" in event.text[:400] and frames[-1].package in _ALL_KERNELS:
        return frames[-1].package
    if (
        not name
        and event.kind is EventKind.EXCEPTION
        and not pattern(_WORDS_OF_TORCH).search(event.text[:400])
    ):
        name = frames[-1].package if frames[-1].package not in _NOBODY_S else ""
    return name


def _of_line(frame: Frame) -> str:
    """The package whose operator or compiled module the line calls."""
    operator = pattern(_OPERATOR).search(frame.code)
    if operator is not None and operator[1] not in _TORCH_OPERATORS:
        return operator[1] if not operator[1].startswith("_") else frame.package
    if frame.package not in _NOBODY_S and pattern(_MODULE).search(frame.code):
        return frame.package
    return ""
