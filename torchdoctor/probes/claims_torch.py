"""Claims about torch and the packages that must fit it."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.probes import compatibility
from torchdoctor.probes.compatibility import covered_by, parse
from torchdoctor.probes.derived import CannotTell, Claim, Derived, Facts, NotApplicable


def _installed(facts: Facts) -> Claim:
    copies = facts.texts("torch.copies")
    if copies:
        return Claim(True, copies[0])
    path, version = facts.text("torch.path"), facts.text("torch.metadata_version")
    metadata = f"metadata of torch {version}" if version else "no metadata"
    if path:  # sources that were not built, a copy or a removal that was cut short: broken is not missing
        return Claim(True, f"{path}, without torch/version.py, and {metadata}")
    return Claim(False, f"{metadata}, and no torch on sys.path" if version else "no torch on sys.path")


def _version(facts: Facts) -> str:
    version = facts.text("torch.version")
    if not version:
        raise NotApplicable("torch is not installed")
    return version


def _release(facts: Facts) -> str:
    """The version of an official release; other builds follow no table."""
    version = _version(facts)
    if not compatibility.is_release(version):
        raise CannotTell(f"torch {version} is no official release")
    return version


def _cpu_only(facts: Facts) -> Claim:
    version = _version(facts)
    if facts.maybe("os.name") == "macos":
        return Claim(False, "builds for macOS use MPS")
    backends = [name for name in ("cuda", "hip", "xpu") if facts.text(f"torch.{name}")]
    return Claim(not backends, f"torch {version}" + (f" has {', '.join(backends)}" if backends else ""))


def _shadowed(facts: Facts) -> Claim:
    path = facts.text("torch.path")
    if not path:
        raise NotApplicable("nothing on sys.path is called torch")
    copies = facts.texts("torch.copies")
    if not copies:
        return Claim(False, f"{path}, and there is no other that it could hide")
    if path not in copies:
        return Claim(True, f"import torch takes {path}, and not {copies[0]}")
    hidden_by = facts.maybe("torch.hidden_by")  # not in recordings whose path has the working folder in it
    files = map(str, hidden_by) if isinstance(hidden_by, tuple) else ()
    own = [file for file in files if not _belongs(file, copies)]
    if not own:
        return Claim(False, path)
    name = own[0].rpartition("/")[2].removesuffix(".py")
    what = "torch" if name == "torch" else f"the {name} that torch imports"
    return Claim(True, f"a script in the working folder takes {own[0]} for {what}")


def _belongs(file: str, copies: Sequence[str]) -> bool:
    """Is it a torch that is installed, or beside one: is the working folder where packages lie?"""
    folder = file.rpartition("/")[0]
    return any(copy.rpartition("/")[0] == folder for copy in copies)


def capabilities(facts: Facts) -> tuple[str, ...]:
    """Compute capability of the GPUs that torch may use: as torch tells it, else of all GPUs."""
    seen = facts.maybe("torch.device_capability")
    if isinstance(seen, tuple) and seen:
        return tuple(str(item) for item in seen)
    found = facts.texts("gpu.compute_capability")
    if not found:
        raise NotApplicable("no NVIDIA GPU")
    return found


def _coverage(facts: Facts) -> dict[str, str]:
    """Compute capability -> binary, ptx or nothing."""
    _version(facts)
    if not facts.text("torch.cuda"):
        raise NotApplicable("torch is not built for CUDA")
    devices = capabilities(facts)
    architectures = facts.texts("torch.arch_list")
    if not architectures:
        raise CannotTell("the build does not say what it has code for")
    return {device: covered_by(device, architectures) for device in devices}


def _covers_gpu(facts: Facts) -> Claim:
    found = _coverage(facts)
    lacking = [device for device, how in found.items() if not how]
    if lacking:
        return Claim(False, f"no code for compute capability {', '.join(lacking)}")
    return Claim(True, ", ".join(f"{device}: {how}" for device, how in found.items()))


def _needs_ptx_jit(facts: Facts) -> Claim:
    only = [device for device, how in _coverage(facts).items() if how == "ptx"]
    return Claim(bool(only), ", ".join(only))


def _metadata_matches(facts: Facts) -> Claim:
    version, metadata = _version(facts), facts.text("torch.metadata_version")
    if not metadata:
        raise NotApplicable("torch has no metadata")
    same = version.partition("+")[0] == metadata.partition("+")[0]
    return Claim(same, f"files {version}, metadata {metadata}")


def _requirements_ok(facts: Facts) -> Claim:
    missing = facts.texts("torch.requirements_missing")
    # A newer sympy or filelock does no harm; GPU libraries and Triton are built for this torch.
    other = [
        one
        for one in facts.texts("torch.requirements_other")
        if one.startswith(("nvidia-", "triton", "cuda-"))
    ]
    if facts.get("torch.metadata_version") is None:
        raise NotApplicable("torch has no metadata")
    return Claim(not missing and not other, "; ".join([*(f"{one} is missing" for one in missing), *other]))


def _fits_vendor(facts: Facts) -> Claim:
    _version(facts)
    vendors = facts.texts("gpu.vendors")
    if facts.text("torch.hip"):
        if "amd" in vendors:
            return Claim(True, "a ROCm build and an AMD GPU")
        if "nvidia" in vendors:
            return Claim(False, "a ROCm build and only an NVIDIA GPU")
    elif facts.text("torch.cuda") and "nvidia" in vendors:
        return Claim(True, "a CUDA build and an NVIDIA GPU")
    # A CUDA build beside an AMD or Intel processor's own graphics is what the package index gives everybody.
    raise NotApplicable("no GPU that torch is built for, or of the other maker")


def _companion(facts: Facts, name: str) -> str:
    version = facts.text(f"{name}.version")
    if not version:
        raise NotApplicable(f"{name} is not installed")
    return version


def _fits_torch(facts: Facts, name: str) -> Claim | None:
    """By what the package's own metadata asks for; None when it asks for nothing that decides."""
    version = _companion(facts, name)
    if not compatibility.is_release(version):
        raise CannotTell(f"{name} {version} is no official release")
    torch = _release(facts)
    wish = facts.text(f"{name}.wants_torch")
    says = f"torch {torch}, {name} {version}"
    since, oldest = compatibility.STABLE_ABI[name]
    if parse(version) >= since and parse(torch) >= oldest:
        return Claim(True, f"{says}: built for the stable ABI")
    fit = compatibility.fits(wish, torch) if wish else None
    return None if fit is None else Claim(fit, f"{says}, which asks for torch{wish}")


def _torchvision_fits(facts: Facts) -> Claim:
    claim = _fits_torch(facts, "torchvision")
    if claim is not None:
        return claim
    torch, version = facts.text("torch.version"), facts.text("torchvision.version")
    wanted = compatibility.vision_of(parse(torch))
    if wanted is None:
        raise CannotTell(f"which torchvision belongs to torch {torch} is not known yet")
    number = ".".join(str(part) for part in wanted)
    return Claim(
        parse(version)[:2] == wanted, f"torch {torch} belongs to torchvision {number}, not {version}"
    )


def _torchaudio_fits(facts: Facts) -> Claim:
    claim = _fits_torch(facts, "torchaudio")
    if claim is not None:
        return claim
    torch, version = facts.text("torch.version"), facts.text("torchaudio.version")
    wanted = compatibility.audio_of(parse(torch))
    return Claim(parse(version)[: len(wanted)] == wanted, f"torch {torch}, torchaudio {version}")


def _same_build(facts: Facts) -> Claim:
    version = _companion(facts, "torchvision")
    torch = _version(facts)
    theirs = version.partition("+")[2] or facts.text("torchvision.build")
    ours = torch.partition("+")[2]
    if not theirs or not ours:
        raise CannotTell(f"torch {torch} and torchvision {version} do not say what they are built for")
    return Claim(theirs == ours, f"torch for {ours}, torchvision for {theirs}")


def _triton_fits(facts: Facts) -> Claim:
    version = _companion(facts, "triton")
    wish = facts.text("torch.wants_triton")
    if not wish:
        raise NotApplicable("torch asks for no version of triton")
    fit = compatibility.fits(wish, version)
    if fit is None:
        raise CannotTell(f"torch asks for triton{wish}")
    return Claim(fit, f"triton {version}, torch asks for triton{wish}")


def _numpy_fits(facts: Facts) -> Claim:
    numpy, torch = _companion(facts, "numpy"), _version(facts)
    says = f"NumPy {numpy}, torch {torch}"
    oldest = compatibility.torch_for_numpy(parse(numpy))
    if oldest is not None and parse(torch) < oldest and compatibility.is_release(torch):
        return Claim(False, f"{says}: torch before {oldest[0]}.{oldest[1]} is built for NumPy 1")
    if facts.maybe("torch.numpy_ok") is False:
        return Claim(False, f"{says}: {facts.maybe('torch.numpy_error')}")
    return Claim(True, says)


CLAIMS = (
    Derived("torch.installed", ("torch.copies", "torch.metadata_version", "torch.path"), _installed),
    Derived(
        "torch.cpu_only", ("torch.version", "torch.cuda", "torch.hip", "torch.xpu", "os.name"), _cpu_only
    ),
    Derived("torch.shadowed", ("torch.path", "torch.copies", "torch.hidden_by"), _shadowed),
    Derived(
        "torch.covers_gpu",
        (
            "torch.version",
            "torch.cuda",
            "torch.device_capability",
            "gpu.compute_capability",
            "torch.arch_list",
        ),
        _covers_gpu,
    ),
    Derived(
        "torch.needs_ptx_jit",
        (
            "torch.version",
            "torch.cuda",
            "torch.device_capability",
            "gpu.compute_capability",
            "torch.arch_list",
        ),
        _needs_ptx_jit,
    ),
    Derived("torch.metadata_matches", ("torch.version", "torch.metadata_version"), _metadata_matches),
    Derived(
        "torch.requirements_ok",
        ("torch.requirements_missing", "torch.requirements_other", "torch.metadata_version"),
        _requirements_ok,
    ),
    Derived("torch.fits_vendor", ("torch.version", "torch.hip", "torch.cuda", "gpu.vendors"), _fits_vendor),
    Derived(
        "torchvision.fits_torch",
        ("torch.version", "torchvision.version", "torchvision.wants_torch"),
        _torchvision_fits,
    ),
    Derived(
        "torchvision.same_build", ("torch.version", "torchvision.version", "torchvision.build"), _same_build
    ),
    Derived(
        "torchaudio.fits_torch",
        ("torch.version", "torchaudio.version", "torchaudio.wants_torch"),
        _torchaudio_fits,
    ),
    Derived("triton.fits_torch", ("triton.version", "torch.wants_triton"), _triton_fits),
    Derived(
        "numpy.fits_torch",
        ("numpy.version", "torch.version", "torch.numpy_ok", "torch.numpy_error"),
        _numpy_fits,
    ),
)
