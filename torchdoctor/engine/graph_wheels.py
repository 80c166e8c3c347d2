"""Where the compiled packages of the graph libraries lie: pages of their own, one for each torch and CUDA.

PyPI has their sources alone, or one build for whichever torch was current. Sources: data.pyg.org,
and the installation page of DGL; what has no page there has no command here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchdoctor.engine import packages
from torchdoctor.engine.conditions import as_text
from torchdoctor.extract import torch_extensions
from torchdoctor.model import Fact, State
from torchdoctor.probes.compatibility import parse

_PYG = frozenset({"torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib"})
_NAMED_BY = ("dlopen.loader_package", "match.package", "python.extension_package", "event.raised_in")
# torch -> the CUDA of its pages on data.pyg.org, besides cpu
_PYG_PAGES: dict[tuple[int, ...], str] = {
    (1, 12): "cu102 cu113 cu116", (1, 13): "cu116 cu117", (2, 0): "cu117 cu118", (2, 1): "cu118 cu121",
    (2, 2): "cu118 cu121", (2, 3): "cu118 cu121", (2, 4): "cu118 cu121 cu124", (2, 5): "cu118 cu121 cu124",
    (2, 6): "cu118 cu124 cu126", (2, 7): "cu118 cu126 cu128", (2, 8): "cu126 cu128 cu129",
    (2, 9): "cu126 cu128 cu130", (2, 10): "cu126 cu128 cu130", (2, 11): "cu126 cu128 cu130",
    (2, 12): "cu126 cu128 cu130",
}  # fmt: skip
_PYG_LAST_WINDOWS = (2, 10)  # with CUDA
# the page of the torch that is there, where the text does not say which that is
_OF_THIS_TORCH = (
    "https://data.pyg.org/whl/torch-$(python -c 'import torch; v = torch.version; "
    'print(".".join(v.__version__.split(".")[:2]) + ".0+" + '
    '("cu" + v.cuda.replace(".", "") if v.cuda else "cpu"))'
    "').html"
)
_UNASKED = frozenset({"windows", "jupyter", "dockerfile"})  # whose commands hold no other's output
# the last torch that DGL was built for, and its CUDA; for other systems than Linux it ended with 2.2.1
_DGL_FIRST, _DGL_LAST = (2, 1), (2, 4)
_DGL_CUDA = frozenset({"cu118", "cu121"})
# the build for the CPU counts as installed, and PyPI has no other: of this page or none, with torch kept
_DGL_ALONE = "--force-reinstall --no-deps --no-index dgl -f"
_DGL_OF_THIS_TORCH = (
    "https://data.dgl.ai/wheels/torch-$(python -c 'import torch; v = torch.version; "
    'print(".".join(v.__version__.split(".")[:2]) + "/cu" + str(v.cuda).replace(".", ""))'
    "')/repo.html"
)
_DGL_INDEX = "https://download.pytorch.org/whl/cu121"  # has no DGL
_DGL_ELSEWHERE = '"torch==2.1.*" "torchdata<0.8" "numpy<2" dgl==2.2.1'


def arguments(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """What pip is to install for this torch and CUDA; "" where there is no such wheel."""
    if {"jetson", "aarch64"} & seen.get("board", frozenset()) or "amd" in seen.get("device", ()):
        return ""
    package = _package(ask)
    if package == "dgl":
        return _dgl(seen, ask)
    torch, cuda = _torch(ask), _cuda(seen, ask)
    unknown = ask("torch.version").state is not State.KNOWN or (not cuda and torch in _PYG_PAGES)
    if package and unknown and not _UNASKED & _tags(seen):
        return f"{_only(package)} {_OF_THIS_TORCH}"
    if not package or cuda not in ("cpu", *_PYG_PAGES.get(torch, "").split()) or torch not in _PYG_PAGES:
        return ""
    if "windows" in seen.get("system", ()) and cuda != "cpu" and torch > _PYG_LAST_WINDOWS:
        return ""
    page = f"https://data.pyg.org/whl/torch-{torch[0]}.{torch[1]}.0+{cuda}.html"
    return f"{_only(package)} {page}"


def _only(package: str) -> str:
    return f"--force-reinstall --no-deps --no-cache-dir --only-binary {package} {package} -f"


def _tags(seen: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*seen.values())


def _package(ask: Callable[[str], Fact]) -> str:
    for name in _NAMED_BY:
        module = as_text(ask(name)).replace("-", "_")
        package = torch_extensions.of_module(module) or module
        if package in _PYG or package == "dgl":
            return package
    return "dgl" if packages.of_dgl(ask) else ""


def _torch(ask: Callable[[str], Fact]) -> tuple[int, ...]:
    """The first two numbers of the torch that is there: an official release, and no vendor's build."""
    version = as_text(ask("torch.version")) or as_text(ask("match.library")).partition("_pytorch_")[2]
    return parse(version)[:2] if version[:1].isdecimal() and "a0" not in version else (0, 0)


def _cuda(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """The CUDA of that torch, as its wheels name it; "" where nothing says it."""
    if "macos" in seen.get("system", ()):
        return "cpu"
    if tag := as_text(ask("torch.version")).partition("+")[2]:
        return tag
    if cuda := as_text(ask("torch.cuda")):
        return "cu" + "".join(cuda.split(".")[:2])
    only = ask("torch.cpu_only")
    return "cpu" if only.state is State.KNOWN and only.value is True else ""


def _dgl(seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str:
    """For the torch that is there; with another where that is newer than DGL's last, or cannot be asked."""
    python = parse(as_text(ask("python.version")) or "0")[:2]
    if {"windows", "macos"} & seen.get("system", frozenset()):
        index = f" --extra-index-url {_DGL_INDEX}" if "windows" in seen.get("system", ()) else ""
        return "" if python >= (3, 12) else f"{_DGL_ELSEWHERE}{index}"
    if python >= (3, 13):
        return ""
    torch, cuda = _torch(ask), _cuda(seen, ask)
    if torch == (0, 0) and not _UNASKED & _tags(seen):
        return f"{_DGL_ALONE} {_DGL_OF_THIS_TORCH}"
    if _DGL_FIRST <= torch <= _DGL_LAST and cuda in _DGL_CUDA:
        return f"{_DGL_ALONE} https://data.dgl.ai/wheels/torch-{torch[0]}.{torch[1]}/{cuda}/repo.html"
    torch = torch if _DGL_FIRST <= torch <= _DGL_LAST else _DGL_LAST
    cuda = cuda if cuda in _DGL_CUDA else "cu121"
    release = f"{torch[0]}.{torch[1]}"
    return (
        f'-U "torch=={release}.0" dgl --extra-index-url https://download.pytorch.org/whl/{cuda} '
        f"-f https://data.dgl.ai/wheels/torch-{release}/{cuda}/repo.html"
    )
