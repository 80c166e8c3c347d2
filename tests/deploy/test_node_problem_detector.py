"""deploy/node-problem-detector/torchdoctor.json: its command runs, and its codes are the detector's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = json.loads(
    (ROOT / "deploy" / "node-problem-detector" / "torchdoctor.json").read_text(encoding="utf-8")
)


def test_it_has_what_a_custom_plugin_needs() -> None:
    """Keys and meanings of the detector's docs/custom_plugin_monitor.md."""
    assert CONFIG["plugin"] == "custom"
    assert CONFIG["pluginConfig"]["max_output_length"] >= 160  # else it cuts our reason
    (condition,) = CONFIG["conditions"]
    (rule,) = CONFIG["rules"]
    assert rule["type"] == "permanent"
    assert rule["condition"] == condition["type"]
    assert int(rule["timeout"][:-1]) <= int(CONFIG["pluginConfig"]["timeout"][:-1])
    assert int(rule["timeout"][:-1]) > 10  # the hard limit of the passive set
    assert rule["path"].startswith("/")


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--gpus", "16"], 1), (["--facts", "/nowhere"], 2)])
def test_its_command_ends_as_the_detector_reads_it(options: list[str], code: int, tmp_path: Path) -> None:
    """0 is no problem, 1 a problem, everything else unknown."""
    recording = [] if "--facts" in options else ["--facts", "tests/gate/machines/hgx-h100x8.json"]
    (rule,) = CONFIG["rules"]
    program = tmp_path / "torchdoctor"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m torchdoctor "$@"\n')
    program.chmod(0o755)
    argv = [str(ROOT / "deploy" / os.path.basename(rule["path"])), *rule["args"], *recording, *options]
    environ = {**os.environ, "TORCHDOCTOR": str(program)}
    ran = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == code, ran.stderr
    if code < 2:
        assert len(ran.stdout.splitlines()) == 1
        assert len(ran.stdout) <= 161
