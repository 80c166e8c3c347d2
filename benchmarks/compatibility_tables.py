"""Make the tables of ``torchdoctor/probes/tables`` that follow from the metadata of wheels, by asking pip.

    python benchmarks/compatibility_tables.py     # writes torch.tsv and companions.tsv; minutes, network

Of each minor release of a package its newest wheel for Linux on x86_64 is taken. A Python is "early" for a
torch that has wheels for Windows, and none for this Python: torchvision and torchaudio come later.
The other tables are kept by hand, from the pages that their rows name.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[1] / "torchdoctor" / "probes" / "tables"
PYTHONS = tuple(f"3.{minor}" for minor in range(6, 16))
COMPANIONS = ("torchvision", "torchaudio", "xformers", "vllm", "bitsandbytes")
GLIBCS = ("_2_35", "_2_31", "_2_28", "_2_24", "_2_17", "2014", "1")
LINUX = (*(f"manylinux{glibc}_x86_64" for glibc in GLIBCS), "linux_x86_64")
WINDOWS = ("win_amd64",)
OLDEST = (1, 4)


def pip(*words: str, platforms: tuple[str, ...] = LINUX) -> str:
    options = [f"--platform={one}" for one in platforms] + ["--only-binary=:all:"]
    call = [sys.executable, "-m", "pip", *words, *options]
    # the constraints of this site are no part of what fits what
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(call, capture_output=True, text=True, check=False, env=environment).stdout


def releases(package: str, python: str, platforms: tuple[str, ...] = LINUX) -> tuple[str, ...]:
    """Final releases with a wheel for this Python, newest first."""
    # wheels for 3.6 ask for one of its later patches
    patch = ".15" if python == "3.6" else ""
    told = pip("index", "versions", package, f"--python-version={python}{patch}", platforms=platforms)
    found = re.search(r"Available versions: (.+)", told)
    return tuple(one for one in found[1].split(", ") if re.fullmatch(r"[\d.]+", one)) if found else ()


def newest_of_minors(versions: tuple[str, ...]) -> Iterator[str]:
    seen = set()
    for version in versions:
        # 0.0.27 after 0.0.26 is as much of a step as 2.6 after 2.5
        minor = key(version)[: 3 if version.startswith("0.0.") else 2]
        if minor not in seen:
            seen.add(minor)
            yield version


def metadata(package: str, version: str, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        text = pip(
            "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report=-",
            f"--python-version={python}", f"--target={folder}", f"{package}=={version}",
        )  # fmt: skip
    found: dict[str, Any] = json.loads(text)["install"][0]["metadata"] if text else {}
    return found


def pinned(needs: list[str], name: str) -> str:
    """The version that a requirement of this name (a pattern) asks for; "-" when there is none."""
    for need in needs:
        match = re.match(rf"(?:{name})(?:\[[^\]]*\])? *\(?((?:[=~<>!]=?)[^;)]+)\)?", need)
        if match and "extra ==" not in need:
            return match[1].strip().removeprefix("==")
    return "-"


def pythons_of(minor: tuple[int, ...], wheels: dict[str, tuple[str, ...]]) -> list[str]:
    return [name for name, found in wheels.items() if any(key(one)[:2] == minor for one in found)]


def torch_rows(
    wheels: dict[str, tuple[str, ...]], windows: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    every = sorted({one for found in wheels.values() for one in found}, key=key, reverse=True)
    for version in newest_of_minors(tuple(every)):
        if key(version) < OLDEST:
            continue
        minor = key(version)[:2]
        pythons, elsewhere = pythons_of(minor, wheels), pythons_of(minor, windows)
        early = [one for one in pythons if elsewhere and one not in elsewhere]
        ready = ",".join(one for one in pythons if one not in early)
        needs = metadata("torch", version, pythons[0]).get("requires_dist") or []
        cuda = pinned(needs, r"nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit")
        yield (
            version, ready, ",".join(early) or "-", ".".join(cuda.split(".")[:2]),
            pinned(needs, r"nvidia-cudnn-cu\d+"), pinned(needs, r"nvidia-nccl-cu\d+"),
            pinned(needs, "triton"),
        )  # fmt: skip


def companion_rows(package: str) -> Iterator[tuple[str, ...]]:
    found: dict[str, str] = {}
    for python in PYTHONS:
        for version in releases(package, python):
            found.setdefault(version, python)
    for version in newest_of_minors(tuple(sorted(found, key=key, reverse=True))):
        wish = pinned(metadata(package, version, found[version]).get("requires_dist") or [], "torch")
        if wish != "-":
            yield package, version, wish


def key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def write(name: str, columns: str, rows: list[tuple[str, ...]], source: str) -> None:
    today = time.strftime("%Y-%m-%d")
    lines = ["\t".join((*columns.split(), "source", "date"))]
    lines += ["\t".join((*row, source.format(*row), today)) for row in rows]
    (TABLES / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    wheels = {python: releases("torch", python) for python in PYTHONS}
    windows = {python: releases("torch", python, WINDOWS) for python in PYTHONS}
    rows = list(torch_rows({python: found for python, found in wheels.items() if found}, windows))
    write(
        "torch.tsv", "torch python early cuda cudnn nccl triton", rows, "https://pypi.org/project/torch/{0}/"
    )
    others = [row for package in COMPANIONS for row in companion_rows(package)]
    write("companions.tsv", "package release torch", others, "https://pypi.org/project/{0}/{1}/")


if __name__ == "__main__":
    main()
