"""What fits what: driver and CUDA, torch and its companions, GPU code and GPUs. Tables with their sources."""

from __future__ import annotations

import re

Version = tuple[int, ...]

# CUDA release -> first Linux driver that supports all of it.
# Source: CUDA Toolkit release notes, table "CUDA Toolkit and Corresponding Driver Versions" (up to 13.2).
DRIVER_OF_CUDA: dict[Version, Version] = {
    (8, 0): (367, 48),
    (9, 0): (384, 81),
    (9, 1): (390, 46),
    (9, 2): (396, 26),
    (10, 0): (410, 48),
    (10, 1): (418, 39),
    (10, 2): (440, 33),
    (11, 0): (450, 36, 6),
    (11, 1): (455, 23),
    (11, 2): (460, 27, 3),
    (11, 3): (465, 19, 1),
    (11, 4): (470, 42, 1),
    (11, 5): (495, 29, 5),
    (11, 6): (510, 39, 1),
    (11, 7): (515, 43, 4),
    (11, 8): (520, 61, 5),
    (12, 0): (525, 60, 13),
    (12, 1): (530, 30, 2),
    (12, 2): (535, 54, 3),
    (12, 3): (545, 23, 6),
    (12, 4): (550, 54, 14),
    (12, 5): (555, 42, 2),
    (12, 6): (560, 28, 3),
    (12, 8): (570, 26),
    (12, 9): (575, 51, 3),
    (13, 0): (580, 65, 6),
    (13, 1): (590, 44, 1),
    (13, 2): (595, 45, 4),
}

# CUDA major version -> first Linux driver that runs every minor version of it, with a limited feature set.
# Source: the same notes, table "Minimum Required Driver Version for CUDA Minor Version Compatibility", and
# its note on 11.0, which was released with an earlier driver.
DRIVER_OF_MAJOR: dict[int, Version] = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}

# torch release -> torchvision release. Source: README of pytorch/vision up to 2.3; from then on the metadata
# of the torchvision wheels, which name one torch release.
TORCHVISION: dict[Version, Version] = {
    (1, 2): (0, 4),
    (1, 3): (0, 4),
    (1, 4): (0, 5),
    (1, 5): (0, 6),
    (1, 6): (0, 7),
    (1, 7): (0, 8),
    (1, 8): (0, 9),
    (1, 9): (0, 10),
    (1, 10): (0, 11),
    (1, 11): (0, 12),
    (1, 12): (0, 13),
    (1, 13): (0, 14),
    (2, 0): (0, 15),
    (2, 1): (0, 16),
    (2, 2): (0, 17),
    (2, 3): (0, 18),
    (2, 4): (0, 19),
    (2, 5): (0, 20),
    (2, 6): (0, 21),
    (2, 7): (0, 22),
    (2, 8): (0, 23),
    (2, 9): (0, 24),
    (2, 10): (0, 25),
    (2, 11): (0, 26),
    (2, 12): (0, 27),
    (2, 13): (0, 28),
    (2, 14): (0, 29),
}

# torchaudio up to 1.13 lags one major version behind; from 2.0 on it has torch's own number.
# Source: the compatibility matrix in the installation page of torchaudio 2.11.

# Packages built for torch's stable ABI: from which release on, and for which torch and all later ones.
# Sources: the same page of torchaudio; release notes of pytorch/vision 0.29.1.
STABLE_ABI: dict[str, tuple[Version, Version]] = {
    "torchaudio": ((2, 11), (2, 11)),
    "torchvision": ((0, 29, 1), (2, 14)),
}

# The first torch whose wheels are built for NumPy 2. Source: pytorch/pytorch issues 107302 and 132179.
NUMPY_2: Version = (2, 3)

# The first torch whose extension builds use a lock of the operating system (torch/utils/cpp_extension.py).
SAFE_LOCKS: Version = (2, 14)

# GPU code for these architectures runs only on themselves: they are of embedded boards, whose binaries do not
# mix with those of the cards of their generation. Source: DEVICE_REQUIREMENT in torch/cuda/__init__.py.
EMBEDDED: frozenset[int] = frozenset({53, 62, 72, 87, 101})


def parse(text: str) -> Version:
    """The numbers at the head of a version: (12, 4) of 12.4, (2, 5, 1) of 2.5.1+cu124. Raises ValueError."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    if match is None:
        raise ValueError(f"{text!r} is no version")
    return tuple(int(part) for part in match[0].split("."))


def is_release(text: str) -> bool:
    """Is it an official release? Builds of nightlies, vendors and checkouts follow no table."""
    return re.fullmatch(r"\d+(?:\.\d+)*(?:\.post\d+)?(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu))?", text) is not None


def cuda_of_driver(driver: Version) -> Version | None:
    """The highest CUDA release a Linux driver supports; None when it is older than the table.

    A driver newer than the table supports at least what the table ends with.
    """
    return max((cuda for cuda, least in DRIVER_OF_CUDA.items() if driver >= least), default=None)


def runs_minor(driver: Version, cuda: Version) -> bool:
    """Does the driver run this CUDA release by minor-version compatibility?"""
    least = DRIVER_OF_MAJOR.get(cuda[0])
    return least is not None and driver >= least


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
