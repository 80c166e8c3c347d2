"""What the Prolog looks for in a verdict file is in the file of an unfit node; Slurm itself is not needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MACHINE = ROOT / "tests" / "gate" / "machines" / "hgx-h100x8.json"


def test_the_file_of_an_unfit_node_has_what_the_prolog_looks_for(tmp_path: Path) -> None:
    prolog = (ROOT / "deploy" / "slurm" / "prolog.sh").read_text()
    wanted = re.findall(r"grep -q '([^']+)' \"\$verdict\"", prolog)
    assert len(wanted) == 1
    verdict = tmp_path / "verdict.json"
    gate = [sys.executable, "-m", "torchdoctor", "gate", "--tier", "passive", "-o", str(verdict)]
    ran = subprocess.run(
        [*gate, "--gpus", "9", "--facts", str(MACHINE)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 10
    assert wanted[0] in verdict.read_text()
