"""The one place that says how torch is installed: which build, from where, into which interpreter.

Rules name a variant as ``{install.torch}`` in a command. Sources: pytorch.org/get-started/locally, the
release notes on CUDA versions and architectures, NVIDIA's package index for Jetson.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from torchdoctor.engine.conditions import order_key
from torchdoctor.model import Fact, State
from torchdoctor.patterns import pattern

FACTS = {
    "install.torch": "text: command that installs the build of torch for this reader's machine",
    "install.same": "text: command that installs the version there is once more",
    "install.cpu": "text: command that installs the CPU build",
    "install.cu118": "text: command that installs the last build for CUDA 11.8, for drivers before 525",
    "install.cu126": "text: command that installs a build for CUDA 12.6, which has Maxwell to Hopper",
    "install.cu128": "text: command that installs a build for CUDA 12.8, which has Turing to Blackwell",
}
_INDEX = "https://download.pytorch.org/whl/"
_JETPACK_6 = "https://pypi.jetson-ai-lab.io/jp6/cu126"
_STACK = "torch torchvision torchaudio"
_LAST_CU118 = "torch==2.7.1 torchvision==0.22.1 torchaudio==2.7.1"
_ROCM = "rocm6.4"
_PATH = r"[\w.:\\/~-]+"


def command(name: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> Fact:
    """The command of an ``install.`` fact; absent where no wheel is for this machine."""
    found = _build(name.partition(".")[2], seen, ask)
    if found is None:
        return Fact.absent(name, "install")
    packages, source = found
    line = f"{_pip(seen, ask)} --force-reinstall {packages}"
    return Fact.known(name, f"{line} --index-url {source}" if source else line, "install")


def _build(
    variant: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]
) -> tuple[str, str] | None:
    """(packages, index) of a variant for these surroundings; an empty index is that of PyPI."""
    device, system = seen.get("device", frozenset()), seen.get("system", frozenset())
    version = _text(ask("torch.version"))
    if "jetson" in seen.get("board", ()):
        return (_STACK, _JETPACK_6) if _jetpack(ask) != 5 else None
    if "macos" in system:
        return None if variant.startswith("cu") else (_STACK, "")
    if variant == "same" and version:
        release, _, tag = version.partition("+")
        return f"torch=={release}", _INDEX + tag if re.fullmatch(r"cu\d+|cpu|xpu|rocm[\d.]+", tag) else ""
    if variant == "cpu":
        return _STACK, f"{_INDEX}cpu"
    if "nvidia" not in device and {"amd", "intel"} & device:
        if variant.startswith("cu") or ("amd" in device and "windows" in system):
            return None
        return _STACK, _INDEX + (_ROCM if "amd" in device else "xpu")
    tag = variant if variant.startswith("cu") else _cuda(ask, seen)
    if tag == "cu118" and "aarch64" in seen.get("board", ()):
        return None  # the first CUDA wheels for ARM are of 12.6
    return (_LAST_CU118 if tag == "cu118" else _STACK), _INDEX + tag


def _cuda(ask: Callable[[str], Fact], seen: Mapping[str, frozenset[str]]) -> str:
    """The CUDA of a build that has code for the GPU and that the driver can run."""
    lowest, driver = ask("gpu.lowest_capability"), ask("driver.cuda")
    highest = order_key(driver.value) if driver.state is State.KNOWN and driver.value else None
    if lowest.state is State.KNOWN and isinstance(lowest.value, (int, float)):
        if lowest.value < 7.5:
            return "cu118" if highest and highest < (12,) else "cu126"
        if lowest.value >= 10:
            return "cu130" if highest and highest >= (13,) else "cu128"
    if highest and highest < (12,):
        return "cu118"
    if highest and highest >= (13,):
        return "cu130"
    return "cu128" if "aarch64" in seen.get("board", ()) or (highest and highest >= (12, 8)) else "cu126"


def _jetpack(ask: Callable[[str], Fact]) -> int | None:
    """JetPack 5 has kernel 5.10 and L4T R35, JetPack 6 kernel 5.15 and R36."""
    text = _text(ask("log.text")) + _text(ask("os.kernel"))
    if re.search(r"R35 \(release\)|R35\.\d|5\.10\.\d+-tegra|[Jj]et[Pp]ack ?5|v512", text):
        return 5
    return 6 if re.search(r"R36|5\.15\.\d+-tegra|[Jj]et[Pp]ack ?6", text) else None


def _pip(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """pip of the interpreter that ran, so that no other one gets the package."""
    interpreter = _text(ask("context.interpreter")) or _text(ask("python.executable"))
    if not pattern(_PATH).fullmatch(interpreter):
        interpreter = ""
    if "uv" in seen.get("python", ()):
        return "uv pip install" + (f" --python {interpreter}" if interpreter else "")
    return f"{interpreter or 'python'} -m pip install"


def _text(fact: Fact) -> str:
    return str(fact.value) if fact.state is State.KNOWN else ""
