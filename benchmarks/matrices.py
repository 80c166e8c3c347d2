"""Hostile inputs and broken environments as counts: the tests that hold each situation, run and counted."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MATRICES = {"hostile": "tests/hostile", "broken environments": "tests/probes/test_broken_environments.py"}


def matrices() -> dict[str, dict[str, dict[str, int]]]:
    """For each matrix and file of it: how many situations held, did not, and were not run here."""
    return {name: _counted(place) for name, place in MATRICES.items()}


def _counted(place: str) -> dict[str, dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "junit.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={told}",
            place,
        ]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        found: dict[str, Counter[str]] = {}
        for case in ElementTree.parse(told).iter("testcase"):
            kinds = {child.tag for child in case}
            how = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "held"
            found.setdefault(case.get("classname", "").rpartition(".")[2], Counter())[how] += 1
    return {file: dict(counts) for file, counts in sorted(found.items())}
