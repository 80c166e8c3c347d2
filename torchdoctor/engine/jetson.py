"""NVIDIA's own wheels of torch for a Jetson: which belong to its JetPack, and what shows the JetPack."""

from __future__ import annotations

from collections.abc import Callable

from torchdoctor.engine.conditions import as_text
from torchdoctor.model import Fact
from torchdoctor.patterns import pattern

# JetPack -> (packages, index); for 4 and older there is no wheel of a torch that programs of today take
WHEELS = {
    5: (
        "https://developer.download.nvidia.com/compute/redist/jp/v512/pytorch/"
        "torch-2.1.0a0+41361538.nv23.06-cp38-cp38-linux_aarch64.whl",
        "",
    ),
    6: ("torch torchvision torchaudio", "https://pypi.jetson-ai-lab.io/jp6/cu126"),
    7: ("torch torchvision torchaudio", "https://pypi.jetson-ai-lab.io/sbsa/cu130"),
}
# the Python of each, for which alone its wheels are
PYTHON = {5: "3.8", 6: "3.10", 7: "3.12"}
# the CUDA of its driver, which is part of it
_OF_CUDA = {"10.2": 4, "11.4": 5, "12.2": 6, "12.6": 6, "13.0": 7}
# what tells the JetPack: L4T's release, the kernel, the address of a wheel. Python's version does not: boards
# run images of others and environments of their own
_JETPACK = (
    (
        r"R(\d\d) ?\(release\)|L4T ?R?(\d\d)\.|l4t-[a-z]+:r(\d\d)\.",
        {"32": 4, "34": 5, "35": 5, "36": 6, "38": 7, "39": 7},
    ),
    (r"[Jj]et[Pp]ack[ :]*(\d)|/jp/v(\d)\d", {"4": 4, "5": 5, "6": 6, "7": 7}),
    (r"\b(\d\.\d+)\.\d+-tegra", {"4.9": 4, "5.10": 5, "5.15": 6, "6.8": 7}),
)


def jetpack(ask: Callable[[str], Fact]) -> int:
    """The JetPack of a Jetson, by the surest sign of it; 0 where nothing shows it."""
    text = "\n".join(
        as_text(ask(name)) for name in ("log.text", "os.kernel", "context.interpreter", "event.frames")
    )
    for form, known in _JETPACK:
        for found in pattern(form).finditer(text):
            release = known.get(found[found.lastindex or 0], 0)
            if release:
                return release
    return _OF_CUDA.get(as_text(ask("driver.cuda")), 0)
