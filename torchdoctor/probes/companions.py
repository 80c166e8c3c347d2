"""Packages that must fit torch: which version of each is installed, and which torch it was built for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from torchdoctor.model import Fact, FactValue, State
from torchdoctor.probes import distributions
from torchdoctor.probes.distributions import Distribution
from torchdoctor.probes.interpreter import missing
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

_NAMES = tuple(CATALOGUE["companions"])
_TRITON = (
    "triton",
    "pytorch-triton",
    "pytorch-triton-rocm",
    "pytorch-triton-xpu",
    "triton-windows",
    "triton-rocm",
)

# compiled for one release of torch, or changed with it; torchvision and torchaudio have rules of their own
_PINNING = (
    "xformers", "flash-attn", "vllm", "sglang", "bitsandbytes", "torchtext", "torchdata", "torchcodec",
    "fastai", "pytorch3d", "torch-tensorrt", "intel-extension-for-pytorch",
)  # fmt: skip
# fact -> names under which the package is distributed
_PACKAGES: dict[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio",),
    "triton": _TRITON,
    "xformers": ("xformers",),
    "flash_attn": ("flash-attn",),
    "transformers": ("transformers",),
    "lightning": ("lightning", "pytorch-lightning"),
    "deepspeed": ("deepspeed",),
    "tensorrt": ("tensorrt", "tensorrt-cu12", "tensorrt-cu13"),
    "cupy": ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
    "cudnn": ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "nccl": ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "apex": ("apex",),
    "setuptools": ("setuptools",),
    "mkl": ("mkl",),
}


def _look(context: Context) -> Iterator[Fact]:
    if context.ask("python.path").state is not State.KNOWN:
        yield from missing(context, _NAMES)
        return
    every = tuple(name for names in _PACKAGES.values() for name in names)
    present = distributions.installed(context, (*every, *_PINNING, "torch"))
    for fact, names in _PACKAGES.items():
        own = _first(present, names)
        if own is None:
            yield Fact.absent(f"{fact}.version", "sys.path", "not installed")
        else:
            yield Fact.known(f"{fact}.version", own.version, own.metadata)
    for name in ("torchvision", "torchaudio"):
        yield _wish(context, f"{name}.wants_torch", _first(present, (name,)), "torch")
    yield told("torchvision.build", lambda: _build(context, _first(present, ("torchvision",))))
    triton = _first(present, _TRITON)
    yield told("triton.distribution", lambda: triton.name if triton else None)
    yield _wish(
        context, "torch.wants_triton", _first(present, ("torch",)), triton.name if triton else "triton"
    )
    yield told("torch.pinned_otherwise", partial(_pinned_otherwise, context, present))
    apex = _first(present, ("apex",))
    yield told("apex.is_nvidia", lambda: _is_nvidia_apex(context, apex))


def _first(present: Mapping[str, tuple[Distribution, ...]], names: tuple[str, ...]) -> Distribution | None:
    return next((present[name][0] for name in names if name in present), None)


def _wish(context: Context, fact: str, own: Distribution | None, name: str) -> Fact:
    if own is None:
        return Fact.absent(fact, "sys.path", "not installed")
    return told(fact, partial(distributions.wanted, context, own, name), own.metadata)


def _pinned_otherwise(
    context: Context, present: Mapping[str, tuple[Distribution, ...]]
) -> tuple[str, ...] | None:
    """What asks for another torch; patch releases count as pip counts them."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    torch = _first(present, ("torch",))
    if torch is None:
        return None
    found = []
    for own in filter(None, (_first(present, (name,)) for name in _PINNING)):
        wish = distributions.wanted(context, own, "torch") or ""
        try:
            if not SpecifierSet(wish).contains(torch.version, prereleases=True):
                found.append(f"{own.name} {own.version} wants torch{wish}")
        except InvalidSpecifier:
            continue
    return tuple(found) or None


def _build(context: Context, own: Distribution | None) -> FactValue:
    """The local part of the version in its own file: metadata of the package index has none."""
    if own is None:
        return None
    text = context.machine.read(f"{own.folder}/{own.name}/version.py")
    match = re.search(r"^__version__\s*=\s*['\"][^'\"+]*\+([^'\"]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None


def _is_nvidia_apex(context: Context, own: Distribution | None) -> FactValue:
    """NVIDIA's apex has mixed precision and fused layers; the one on the package index is a web framework."""
    if own is None:
        return None
    return any(
        context.machine.exists(f"{own.folder}/apex/{part}") for part in ("normalization", "optimizers", "amp")
    )


PROBES = (Probe(_NAMES, Cost.CHEAP, _look, needs=("python.path", "os.name")),)
