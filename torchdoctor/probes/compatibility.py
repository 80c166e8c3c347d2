"""What fits what: driver and CUDA, torch and its companions, GPU code and GPUs.

The tables lie in ``tables/``, each row with its source and the day on which it was looked up; a release that
none of them has is not known yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache

Version = tuple[int, ...]

# Packages built for torch's stable ABI: from which release on, and for which torch and all later ones.
# Sources: the same page of torchaudio; release notes of pytorch/vision 0.29.1.
STABLE_ABI: dict[str, tuple[Version, Version]] = {
    "torchaudio": ((2, 11), (2, 11)),
    "torchvision": ((0, 29, 1), (2, 14)),
}

# The first torch whose extension builds use a lock of the operating system (torch/utils/cpp_extension.py).
SAFE_LOCKS: Version = (2, 14)

# GPU code for these architectures runs only on themselves: they are of embedded boards, whose binaries do not
# mix with those of the cards of their generation. Source: DEVICE_REQUIREMENT in torch/cuda/__init__.py.
EMBEDDED: frozenset[int] = frozenset({53, 62, 72, 87, 101})


@cache
def table(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of ``tables/NAME.tsv`` by column; "-" stands for what there is not."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables", f"{name}.tsv")
    with open(path, encoding="utf-8") as stream:
        head, *rows = (line.rstrip("\n").split("\t") for line in stream)
    return tuple(dict(zip(head, row, strict=True)) for row in rows)


@cache
def _column(name: str, key: str, value: str) -> Mapping[Version, Version]:
    return {parse(row[key]): parse(row[value]) for row in table(name) if row[value] != "-"}


def parse(text: str) -> Version:
    """The numbers at the head of a version: (12, 4) of 12.4, (2, 5, 1) of 2.5.1+cu124. Raises ValueError."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    if match is None:
        raise ValueError(f"{text!r} is no version")
    return tuple(int(part) for part in match[0].split("."))


def is_release(text: str) -> bool:
    """Is it an official release? Builds of nightlies, vendors and checkouts follow no table."""
    return re.fullmatch(r"\d+(?:\.\d+)*(?:\.post\d+)?(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu))?", text) is not None


def cuda_of_driver(driver: Version, system: str = "linux") -> Version | None:
    """The highest CUDA release that a driver supports; None when it is older than the table.

    A driver newer than the table supports at least what the table ends with.
    """
    needed = _column("driver", "cuda", system)
    return max((cuda for cuda, least in needed.items() if driver >= least), default=None)


def runs_minor(driver: Version, cuda: Version, system: str = "linux") -> bool:
    """Does the driver run this CUDA release by minor-version compatibility?"""
    least = _column("driver_major", "cuda", system).get(cuda[:1])
    return least is not None and driver >= least


def vision_of(torch: Version) -> Version | None:
    """The torchvision that belongs to a torch release, by the pins of its wheels; None: not known yet."""
    return _visions().get(torch[:2])


@cache
def _visions() -> dict[Version, Version]:
    return {
        parse(row["torch"])[:2]: parse(row["release"])[:2]
        for row in table("companions")
        if row["package"] == "torchvision" and re.fullmatch(r"[\d.]+", row["torch"])
    }


def torch_for_numpy(numpy: Version) -> Version | None:
    """The first torch whose wheels are built for this major version of NumPy; None: any, or not known."""
    return _column("numpy", "numpy", "torch").get(numpy[:1])


def gcc_for_headers(torch: Version) -> Version | None:
    """The first gcc that knows the C++ standard of this torch's headers; None: before the table."""
    rows = _column("headers", "torch", "gcc")
    return rows.get(max((one for one in rows if one <= torch), default=()))


def compiler_below(cuda: Version, compiler: str) -> Version | None:
    """The first version of gcc or clang that nvcc of this CUDA refuses; None: not known."""
    return _column("compilers", "cuda", f"{compiler}_below").get(cuda[:2])


def audio_of(torch: Version) -> Version:
    """The torchaudio release that belongs to a torch release."""
    return (0, torch[1]) if torch[0] == 1 else torch[:2]


def covered_by(capability: str, architectures: tuple[str, ...]) -> str:
    """How the build's code covers a GPU: "binary", "ptx", or "" when it does not.

    Binary code for sm_XY runs on X.Y and later minors of X; sm_90a on 9.0 alone, sm_100f on later minors too;
    PTX (compute_XY) on everything later, once the driver has compiled it.
    Source: CUDA programming guide, "Application compatibility"; exceptions for embedded boards as in torch.
    """
    device = int(capability.replace(".", ""))
    by_ptx = False
    for name in architectures:
        match = re.fullmatch(r"(sm|compute)_(\d+)([af]?)", name)
        if match is None:
            continue
        kind, code, special = match[1], int(match[2]), match[3]
        if kind == "compute":
            by_ptx = by_ptx or (device == code if special == "a" else device >= code)
        elif device == code or (
            special != "a" and device // 10 == code // 10 and device > code and not {device, code} & EMBEDDED
        ):
            return "binary"
    return "ptx" if by_ptx else ""


def fits(specifier: str, version: str) -> bool | None:
    """Is the version what ``specifier`` asks for, patch releases not minded? None when it cannot be told.

    A wheel that pins torch==2.5.0 loads into 2.5.1: the ABI changes with the minor version.
    """
    match = re.fullmatch(r"(==|>=|~=|<|<=|>|!=)\s*([\w.+*]+)", specifier)
    if match is None:
        return None
    wanted, have = parse(match[2]), parse(version)
    if match[1] == "==":
        return wanted[:2] == have[:2]
    if match[1] == "~=":
        return have >= wanted and have[: len(wanted) - 1] == wanted[:-1]
    if match[1] == ">=":
        return have >= wanted
    return None


def supports_forward_compatibility(gpu: str) -> bool | None:
    """Does a GPU of this name take a forward-compatibility libcuda? None when the name does not decide.

    Source: NVIDIA's CUDA Compatibility guide, "Forward Compatibility": data-centre GPUs, and select servers
    with RTX cards.
    """
    if re.search(r"GeForce|TITAN|\bMX\d{3}\b", gpu):
        return False
    if re.search(r"RTX|Quadro", gpu):
        return None
    return True if re.search(r"\b(?:Tesla|GRID|G?[ABHKLMPTV]\d{1,3}[A-Z]?\b|GH200|GB\d{3})", gpu) else None
