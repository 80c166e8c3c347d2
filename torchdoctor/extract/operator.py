"""Whose operator it is that has no kernel: torch's, a package's, or one that the reader registered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found, torch_extensions
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "operator.library": "text: the namespace of the operator that the message names, before ::",
    "operator.owner": "text: whose operator it is: torch, package or user",
    "operator.missed_by": "text: the installed package whose code called an operator that is not there",
}

_NAMED = r"(?:[Oo]perator|Could not run) \\?'(?P<library>\w{1,80})::\w"
# the libraries that torch's own sources register (TORCH_LIBRARY, torch.library and JIT's registries)
_OF_TORCH = frozenset((
    "aten", "prim", "prims", "quantized", "quantized_decomposed", "sparse", "c10d", "c10d_functional",
    "_c10d_functional", "symm_mem", "fsdp", "inductor", "_inductor_test", "onnx", "mkl", "mkldnn", "onednn",
    "mkldnn_prepacked", "xnnpack", "prepacked", "metal", "vulkan", "profiler", "cuda", "rngprims",
    "debugprims", "higher_order", "dist_autograd", "_quantized", "static_runtime", "tensorexpr", "torch_attn",
))  # fmt: skip
_WITH_TORCH = frozenset(("torchvision", "torchaudio", "torchao", "torchtext"))


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one message on an operator without a kernel; nothing when it names none."""
    if event.text.startswith("'_OpNamespace' '"):
        callers = [frame.package for frame in event.frames if frame.package not in ("torch", "python")]
        if callers and callers[-1]:
            yield "missed_by", callers[-1]
        return
    found = pattern(_NAMED).search(event.text)
    if found is None:
        return
    library = found["library"]
    yield "library", library
    yield "owner", _owner(library, event)


def _owner(library: str, event: Event) -> str:
    """A package registers its operators under its own name, with or without a part behind it."""
    if library in _OF_TORCH:
        return "torch"
    packages = {re.sub(r"\W", "_", frame.package) for frame in event.frames} - {"", "torch", "python"}
    if library in _WITH_TORCH or torch_extensions.of_module(library) or torch_extensions.is_package(library):
        return "package"
    shown = any(library.strip("_").startswith(name) for name in packages)
    return "package" if shown else "user"
