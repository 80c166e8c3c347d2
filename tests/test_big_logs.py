"""Big logs end to end: little memory, the failure in the middle is found, ``--each`` keeps files apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from planted_modules import loaded

ROOT = Path(__file__).resolve().parent.parent
RUN = """
import resource, subprocess, sys
command = [sys.executable, "-m", "torchdoctor", "explain", "--offline", "--format", "json", sys.argv[1]]
done = subprocess.run(command)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr)
sys.exit(done.returncode)
"""


@pytest.fixture(scope="module")
def logs() -> ModuleType:
    return loaded(ROOT / "benchmarks" / "big_logs.py")


def explained(path: Path) -> tuple[dict[str, object], int]:
    """The report, and the peak memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    return json.loads(done.stdout), int(done.stderr.split()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in KiB on Linux only")
def test_one_big_log(tmp_path: Path, logs: ModuleType) -> None:
    path = tmp_path / "job.log"
    logs.write_log(path, 120_000_000)
    report, peak = explained(path)
    assert [item["rule"] for item in report["diagnoses"]][:1] == ["cuda-oom-too-big"]  # type: ignore[attr-defined]
    assert report["first_failure"]["rank"] == 13  # type: ignore[index]
    line = report["diagnoses"][0]["evidence"][0]["line"]  # type: ignore[index]
    with path.open(encoding="utf-8") as file:
        text = next(text for number, text in enumerate(file, 1) if number == line)
    assert "torch.OutOfMemoryError: CUDA out of memory" in text
    assert peak < 100


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in KiB on Linux only")
def test_a_log_for_each_of_256_ranks(tmp_path: Path, logs: ModuleType) -> None:
    logs.write_folder(tmp_path, 150_000, 256)
    report, peak = explained(tmp_path)
    assert len(report["source"]) == 256  # type: ignore[arg-type]
    first = report["diagnoses"][0]["evidence"][0]  # type: ignore[index]
    assert first["file"].endswith("node001/attempt_0/5/stderr.log")
    assert peak < 150


def test_each_match_of_a_pattern_is_an_incident_of_its_own(tmp_path: Path) -> None:
    for name, text in (("rank10.log", "KeyError: 'b'"), ("rank9.log", "KeyError: 'a'")):
        (tmp_path / name).write_text(text + "\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torchdoctor",
            "explain",
            "--offline",
            "--each",
            "--format",
            "jsonl",
            "rank*.log",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert [json.loads(line)["source"] for line in done.stdout.splitlines()] == [
        ["rank9.log"],
        ["rank10.log"],
    ]
