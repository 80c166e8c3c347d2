"""The one place that says how torch is installed: which build, from where, into which interpreter.

Rules name a variant as ``{install.torch}`` in a command. Sources: pytorch.org/get-started/locally, the
release notes on CUDA versions and architectures, NVIDIA's wheels and package index for Jetson, AMD's package
index for Windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from torchdoctor.engine import jetson, moved, wheels
from torchdoctor.engine.commands import plain
from torchdoctor.engine.conditions import as_text, order_key
from torchdoctor.model import Fact, FactValue, State
from torchdoctor.probes.compatibility import STABLE_ABI, audio_of, parse, table, vision_of

FACTS = {
    "install.torch": "text: command that installs the build of torch for this reader's machine",
    "install.first": "text: as install.torch, where no torch is there that it would have to replace",
    "install.build": "text: as install.torch, in the release that is there, where that has such a build",
    "install.own": "text: command that installs the CUDA build of the release there is, of no known version",
    "install.own118": "text: command that installs the release there is, of no known version, for CUDA 11.8",
    "install.same": "text: command that installs the version there is once more",
    "install.index": "text: option of pip that names the index of the build of torch that is there",
    "install.amd": "text: command that installs AMD's own build of torch, with code for more cards",
    "install.rocm": "text: command that installs the build for AMD cards, unless another maker's is seen",
    "install.vega": "text: command that installs the last build with code for Vega, that for ROCm 6.3",
    "install.torchvision": "text: command that installs the torchvision of the torch that is there, alone",
    "install.torchaudio": "text: command that installs the torchaudio of the torch that is there, alone",
    "install.triton": "text: command that installs Triton for Windows in the release for this torch",
    "install.cudnn": "text: command that brings back the cuDNN that this torch was compiled with, alone",
    "install.graph": "text: command that installs the wheel of PyG or DGL for this torch",
    "install.loader": "text: command that updates the package in event.loader with those that it loads with",
    "install.found": "text: command that installs a build for the CUDA of the toolkit that the text names",
    "install.cpu": "text: command that installs the CPU build",
    "install.cu118": "text: command that installs the last build for CUDA 11.8, for drivers before 525",
    "install.cu126": "text: command that installs a build for CUDA 12.6, which has Maxwell to Hopper",
    "install.cu128": "text: command that installs a build for CUDA 12.8, which has Turing to Blackwell",
    "install.cu130": "text: command that installs a build for CUDA 13, which has the newest boards",
    "install.pythons": "text: Pythons with wheels of the torch in match.want or match.release: 3.9 to 3.13",
    "install.python": "text: the second newest of these",
    "install.fits": "text: yes or no: has that torch wheels for the reader's Python, on some platform",
    "install.driver": "text: least version of NVIDIA's driver for the CUDA that the message asks for",
}
_INDEX = "https://download.pytorch.org/whl/"
_STACK = "torch torchvision torchaudio"
_OF_AMD = (
    '"torch[device-all]" "torchvision[device-all]" torchaudio',
    "https://stable.repo.amd.com/rocm/whl-next/",
)
_LAST_CU118 = "torch==2.7.1 torchvision==0.22.1 torchaudio==2.7.1"
_LAST_CU118_PYTHON = (3, 9)
# the last release for drivers before CUDA 11, of which no later build runs
_OLD = {
    "cu102": "torch==1.12.1+cu102 torchvision==0.13.1+cu102 torchaudio==0.12.1+cu102",
    "cu101": "torch==1.8.1+cu101 torchvision==0.9.1+cu101 torchaudio==0.8.1",
}
# the first torch that was built for NumPy 2, and the first Python with a wheel of that
_FIRST_OF_NUMPY_2, _FIRST_NUMPY_2_PYTHON = (2, 3), (3, 9)
# the first Python with a wheel of CUDA's builds, by their index
_FIRST_PYTHON: dict[str, tuple[int, ...]] = {
    "cu118": (3, 8),
    "cu126": (3, 9),
    "cu128": (3, 9),
    "cu130": (3, 10),
}
# pytorch.org/get-started/previous-versions: the last release for an older one
_OF_OLD_PYTHON: dict[tuple[int, ...], str] = {
    (3, 8): f"torch==2.4.1 torchvision==0.19.1 torchaudio==2.4.1 --index-url {_INDEX}cu121",
    (3, 7): "torch==1.13.1+cu117 torchvision==0.14.1+cu117 torchaudio==0.13.1 "
    f"--extra-index-url {_INDEX}cu117",
    (3, 6): "torch==1.10.1+cu113 torchvision==0.11.2+cu113 torchaudio==0.10.1 "
    f"-f {_INDEX}cu113/torch_stable.html",
}
# torch 1.13 and later; an older one would be another torch, and not only another build
_INDEXES = frozenset({"cu117", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130"})
_OF_MAJOR = {"11": "cu118", "12": "cu126", "13": "cu130"}
_ROCM = "rocm7.2"
# pytorch.org/get-started/previous-versions: the ROCm of a release, the newest where there are two
_ROCM_OF: dict[tuple[int, ...], str] = {
    (2, 0): "rocm5.4.2", (2, 1): "rocm5.6", (2, 2): "rocm5.7", (2, 3): "rocm6.0", (2, 4): "rocm6.1",
    (2, 5): "rocm6.2", (2, 6): "rocm6.2.4", (2, 7): "rocm6.3", (2, 8): "rocm6.4", (2, 9): "rocm6.4",
}  # fmt: skip
_SAME_PATCH = (2, 1)  # since which its companions have a release for each of torch's, with its last number
_VEGA = "rocm6.3"  # rocBLAS of ROCm 6.4 has no kernels for gfx900 and gfx906 any more


def command(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The words of an ``install.`` fact; absent where no wheel or driver is for this machine."""
    if name == "install.driver":
        return _driver(name, seen, ask)
    if name in ("install.pythons", "install.python", "install.fits"):
        return wheels.fact(name, ask)
    if name == "install.triton":
        return _triton(name, seen, ask)
    if name == "install.cudnn":
        return _cudnn(name, seen, ask)
    if name == "install.loader":
        return moved.update(name, _pip(seen, ask), as_text(ask("event.loader")))
    if name == "install.graph":
        from torchdoctor.engine import graph_wheels

        told = graph_wheels.arguments(seen, ask)
        return Fact.known(name, f"{_pip(seen, ask)} {told}", "table") if told else Fact.absent(name, "table")
    variant = name.partition(".")[2]
    if variant == "index":
        source = _index_of(as_text(ask("torch.version")))
        return Fact.known(name, f"--index-url {source}", "table") if source else Fact.absent(name, "table")
    found = _build("torch" if variant == "first" else variant, seen, ask)
    if found is None:
        return Fact.absent(name, "install")
    packages, source = found
    pip = _pip(seen, ask)
    if "jetson" in seen.get("board", ()):
        own, used = jetson.PYTHON[jetson.jetpack(ask)], as_text(ask("python.version"))
        if used and not f"{used}.".startswith(f"{own}."):
            pip = f"python{own} -m pip install"
    if _for_numpy_1(packages) and _is_python_of(_FIRST_NUMPY_2_PYTHON, ask):
        packages += ' "numpy<2"'  # which torchvision requires, and pip would take the newest
    again = "-U" if packages == _STACK and not source else "--force-reinstall"  # PyPI's may be another build
    line = f"{pip} {packages}" if variant == "first" else f"{pip} {again} {packages}"
    return Fact.known(name, f"{line} --index-url {source}" if source else line, "install")


def _for_numpy_1(packages: str) -> bool:
    """Is it a torch that was built for NumPy 1, with a companion that requires NumPy?"""
    pinned = re.search(r"\btorch==(\d+\.\d+)", packages)
    return pinned is not None and parse(pinned[1]) < _FIRST_OF_NUMPY_2 and "torchvision" in packages


def _same(version: str, system: frozenset[str], ask: Callable[[str], Fact]) -> tuple[str, str] | None:
    """The release of torch that is there; None where it is not known, or its build is not."""
    source = (_index_of(version) or _index_of_cuda(ask)) if version else ""
    if not version or (not source and "windows" in system and "+" not in version):
        return None  # PyPI's wheel for Windows is the CPU build
    return f"torch=={version.partition('+')[0]}", source


def _build(
    variant: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]
) -> tuple[str, str] | None:
    """(packages, index) of a variant for these surroundings; an empty index is that of PyPI."""
    device, system = seen.get("device", frozenset()), seen.get("system", frozenset())
    if "zluda" in seen.get("program", ()) and variant not in ("same", "cpu"):
        return None  # it runs torch's CUDA build on an AMD card
    if "invokeai" in seen.get("program", ()) and variant == "torch":
        return None  # it pins one release, which its own launcher installs
    version = as_text(ask("torch.version"))
    on_jetson = "jetson" in seen.get("board", ())
    if variant in STABLE_ABI:
        return None if on_jetson else _companion(variant, version)
    if on_jetson:
        return jetson.WHEELS.get(jetson.jetpack(ask))
    if "macos" in system:
        return None if variant.startswith("cu") else (_STACK, "")
    if variant == "same":
        return _same(version, system, ask)
    if variant == "cpu":
        return _STACK, f"{_INDEX}cpu"
    if variant == "build":
        nvidia = "nvidia" in device or not {"amd", "intel"} & device
        return (_kept(version, seen, ask) if nvidia else None) or _build("torch", seen, ask)
    if variant in ("amd", "rocm", "vega"):
        if device and "amd" not in device:
            return None
        if variant == "amd" or (variant == "rocm" and "windows" in system):
            return _OF_AMD
        if "windows" in system:
            return None
        return _for_rocm(version, ask) if variant == "rocm" else (_STACK, _INDEX + _VEGA)
    if "nvidia" not in device and {"amd", "intel"} & device:
        if variant.startswith("cu"):
            return None
        if "amd" in device and "windows" in system:
            return _OF_AMD
        return _for_rocm(version, ask) if "amd" in device else (_STACK, f"{_INDEX}xpu")
    if variant in ("own", "own118"):
        return _own(variant, seen, ask)
    tag = variant if variant.startswith("cu") else _cuda(ask, seen)
    if variant == "found":
        tag = _of_toolkit(as_text(ask("match.found")) or as_text(ask("build.toolkit")))
    if variant != "torch" and not (tag and _runs(tag, ask)):
        return None
    if variant == "torch" and tag in _OLD:
        return _OLD[tag], f"{_INDEX}{tag}"
    if not _is_python_of(_FIRST_PYTHON.get(tag, (0,)), ask):
        return _for_python(variant, tag, ask)
    if tag == "cu118" and "aarch64" in seen.get("board", ()):
        return None  # the first CUDA wheels for ARM are of 12.6
    if tag == "cu118" and not _is_python_of(_LAST_CU118_PYTHON, ask):
        return _STACK, _INDEX + tag  # pip finds the newest there for that Python
    return (_LAST_CU118 if tag == "cu118" else _STACK), _INDEX + tag


def _for_python(variant: str, tag: str, ask: Callable[[str], Fact]) -> tuple[str, str] | None:
    """The build for a Python that the newest one's index has no wheel for; None where that index is asked."""
    if variant not in ("torch", "same"):
        return None
    if tag == "cu130" and _is_python_of(_FIRST_PYTHON["cu128"], ask):
        return _STACK, f"{_INDEX}cu128"
    lowest = ask("gpu.lowest_capability")
    if lowest.state is State.KNOWN and isinstance(lowest.value, (int, float)) and lowest.value >= 10:
        return None  # no build for that Python has code for Blackwell
    packages = _OF_OLD_PYTHON.get(parse(as_text(ask("python.version")))[:2])
    return (packages, "") if packages else None


def index_for(release: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str | None:
    """The index with this reader's build of a release, "" for PyPI's; None where there is no such build."""
    device, system = seen.get("device", frozenset()), seen.get("system", frozenset())
    if "jetson" in seen.get("board", ()):
        return None
    if "nvidia" not in device and {"amd", "intel"} & device:
        tag = _ROCM_OF.get(parse(release)[:2], "") if "amd" in device and "windows" not in system else ""
        return _INDEX + tag if tag else None
    if "windows" not in system or as_text(ask("torch.version")).endswith("+cpu"):
        return ""
    found = _kept(release, seen, ask)  # PyPI's wheel for Windows is the CPU build
    return found[1] if found else ""


def _kept(
    version: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]
) -> tuple[str, str] | None:
    """The release that is there, in its newest CUDA build up to the one that would be installed anew."""
    release, wanted = version.partition("+")[0], _cuda(ask, seen)
    if (
        not re.fullmatch(r"\d+\.\d+(?:\.\d+)?", release)
        or wanted in _OLD
        or "aarch64" in seen.get("board", ())
    ):
        return None
    minor, lowest = ".".join(release.split(".")[:2]), ask("gpu.lowest_capability")
    fit = [
        row["build"]
        for row in table("builds")
        if row["torch"] == minor and row["build"] <= wanted and _has_code(row["architectures"], lowest.value)
    ]
    if not fit:
        return None
    return f"torch=={release} torchvision torchaudio", _INDEX + fit[-1]


def _own(
    variant: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]
) -> tuple[str, str] | None:
    """The release that is there, of no known version, for CUDA; PyPI's is that for Linux on x86-64."""
    arm = "aarch64" in seen.get("board", ())
    if "windows" in seen.get("system", ()) or (arm and variant == "own118"):
        return None
    source = f"{_INDEX}cu118" if variant == "own118" else f"{_INDEX}cu128" if arm else ""
    return f"{_own_release(ask)} torchvision torchaudio", source


def _own_release(ask: Callable[[str], Fact]) -> str:
    """A requirement that asks the interpreter for its release of torch, in a POSIX shell."""
    asked = "import torch; print(torch.__version__.split(chr(43))[0])"
    return f'torch==$({_interpreter(ask) or "python"} -c "{asked}")'


def _has_code(architectures: str, capability: FactValue) -> bool:
    """Has a build code for the card? Unknown counts as yes."""
    if not isinstance(capability, (int, float)):
        return True
    found = [float(one.removesuffix("+PTX")) for one in architectures.split()]
    return any(int(one) == int(capability) and one <= capability for one in found)


def _for_rocm(version: str, ask: Callable[[str], Fact]) -> tuple[str, str]:
    """The release that the text names, in its build for ROCm; the newest for a named card, or without one."""
    release = version.partition("+")[0]
    tag = _ROCM_OF.get(parse(release)[:2]) if re.fullmatch(r"\d+(?:\.\d+)+", release) else None
    if tag is None or ask("context.gfx").state is State.KNOWN:
        return _STACK, _INDEX + _ROCM
    source = _index_of(version) if "+rocm" in version else _INDEX + tag
    return f"torch=={release} torchvision torchaudio", source


def _triton(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """triton-windows before the minor version that belongs to the next torch: 3.2 goes with 2.6."""
    version = parse(as_text(ask("torch.version")) or "0")
    if version < (2, 6) or version >= (3,):
        return Fact.absent(name, "table")
    return Fact.known(name, f'{_pip(seen, ask)} "triton-windows<3.{version[1] - 3}"', "table")


def _cudnn(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The package of the release that ``match.compiled`` names, (8, 5, 0), where all builds of it pin one."""
    compiled = tuple(map(int, re.findall(r"\d+", as_text(ask("match.compiled")))))
    rows = [row for row in table("torch") if row["cudnn"] != "-" and parse(row["cudnn"])[:3] == compiled]
    found = {f"nvidia-cudnn-cu{row['cuda'].partition('.')[0]}=={row['cudnn']}" for row in rows}
    if len(found) != 1 or "jetson" in seen.get("board", ()) or "conda" in seen.get("python", ()):
        return Fact.absent(name, "table")
    return Fact.known(name, f"{_pip(seen, ask)} --no-deps {found.pop()}", "table")


def _index_of(version: str) -> str:
    """The index that a build of torch came from, by the tag of its version; "" for that of PyPI."""
    tag = version.partition("+")[2]
    nightly = "nightly/" if ".dev" in version else ""
    return f"{_INDEX}{nightly}{tag}" if re.fullmatch(r"cu\d+|cpu|xpu|rocm[\d.]+", tag) else ""


def _index_of_cuda(ask: Callable[[str], Fact]) -> str:
    """The index of the build for the CUDA that torch says it has; "" where that is not known."""
    tag = "cu" + as_text(ask("torch.cuda")).replace(".", "")
    return _INDEX + tag if tag in _INDEXES else ""


def _companion(package: str, version: str) -> tuple[str, str] | None:
    """The release of a package that was compiled against this torch; without what it pins, torch stays."""
    if not re.match(r"\d+\.\d+", version):
        return None
    if re.search(r"[+.](?:nv|git|dev)|a0\+", version):
        return None  # a vendor's own build, or that of a night, which no released wheel was compiled against
    torch, (first, from_torch) = parse(version), STABLE_ABI[package]
    if torch >= from_torch:
        wanted = f"{package}>={'.'.join(map(str, first))}"
    else:
        release = audio_of(torch)[:2] if package == "torchaudio" else vision_of(torch)
        if release is None:
            return None
        last = str(torch[2]) if torch >= _SAME_PATCH and len(torch) == 3 else "*"
        wanted = f"{package}=={'.'.join(map(str, release[:2]))}.{last}"
    return f'--no-deps "{wanted}"', _index_of(version)


def _of_toolkit(version: str) -> str:
    """The index whose builds fit extensions of this toolkit: of its minor version, else of its major."""
    tag = "cu" + "".join(version.split(".")[:2])
    return tag if tag in _INDEXES else _OF_MAJOR.get(version.partition(".")[0], "")


def _is_python_of(lowest: tuple[int, ...], ask: Callable[[str], Fact]) -> bool:
    """Is the interpreter at least that Python? Unknown counts as yes."""
    version = as_text(ask("python.version"))
    return not version or parse(version)[:2] >= lowest


def _runs(tag: str, ask: Callable[[str], Fact]) -> bool:
    """Does the driver run a build for this CUDA? Within a major version any does; unknown counts as yes."""
    driver = ask("driver.cuda")
    offers = order_key(driver.value) if driver.state is State.KNOWN and driver.value else None
    return not offers or offers >= (float(tag[2:4]),)


def _cuda(ask: Callable[[str], Fact], seen: Mapping[str, frozenset[str]]) -> str:
    """The CUDA of a build that has code for the GPU and that the driver can run."""
    lowest, driver = ask("gpu.lowest_capability"), ask("driver.cuda")
    highest = order_key(driver.value) if driver.state is State.KNOWN and driver.value else None
    if lowest.state is State.KNOWN and isinstance(lowest.value, (int, float)):
        if lowest.value < 7.5:
            return _old(highest) or ("cu118" if highest and highest < (12,) else "cu126")
        if lowest.value >= 10:
            newest = highest >= (13,) if highest else lowest.value > 12.0
            return "cu130" if newest else "cu128"
    if highest and highest < (12,):
        return _old(highest) or "cu118"
    if highest and highest >= (13,):
        return "cu130"
    return "cu128" if "aarch64" in seen.get("board", ()) or (highest and highest >= (12, 8)) else "cu126"


def _old(highest: tuple[float, ...] | None) -> str:
    if not highest or highest >= (11,):
        return ""
    return "cu102" if highest >= (10, 2) else "cu101"


def _driver(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The driver for ``match.need``, a version of CUDA; with both systems' numbers where none is seen."""
    need, systems = as_text(ask("match.need")), seen.get("system", frozenset())
    row = next((row for row in table("driver") if row["cuda"] == need), None)
    if row is None:
        return Fact.absent(name, "table")
    if {"windows", "wsl"} & systems:
        told = row["windows"]
    elif row["windows"] == "-" or "linux" in systems:
        told = row["linux"]
    else:
        told = f"{row['linux']} ({row['windows']} on Windows)"
    return Fact.absent(name, "table") if told == "-" else Fact.known(name, told, "table")


def _pip(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """pip of the interpreter that ran, so that no other one gets the package."""
    interpreter = _interpreter(ask)
    if "uv" in seen.get("python", ()):
        return "uv pip install" + (f" --python {interpreter}" if interpreter else "")
    return f"{interpreter or 'python'} -m pip install"


def _interpreter(ask: Callable[[str], Fact]) -> str:
    return plain(as_text(ask("context.interpreter")) or as_text(ask("python.executable")))
