"""How fast ``torchdoctor lint`` reads, and in how much memory: a folder, or the fixtures made into a package.

    python benchmarks/lint_pace.py [FOLDER]

Prints lines, CPU seconds per 100,000 lines and the peak of resident memory. The aim is 10 s and 200 MiB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from measured import torchdoctor

ROOT = Path(__file__).resolve().parent.parent
AIM_SECONDS, AIM_MIB = 10.0, 200.0


def package(folder: Path, lines: int = 100_000) -> None:
    """Files of about 600 lines, of what the checks look at and of what they do not."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "torchdoctor").rglob("*.py"))]
    spelled = (ROOT / "tests/lint/spellings.cases").read_text(encoding="utf-8").split("\n=== ")
    texts += [part.partition("\n")[2] for part in spelled]
    written = number = 0
    while written < lines:
        text = "import torch\n" + texts[number % len(texts)] + "\n" + texts[(number * 7 + 1) % len(texts)]
        (folder / f"m{number}.py").write_text(text, encoding="utf-8")
        written += text.count("\n")
        number += 1


def measure(folder: Path) -> tuple[int, float, float]:
    """Lines below a folder, CPU seconds of one run, and its peak of memory in MiB."""
    lines = sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))
    args = ("lint", "--advice", "--statistics", "--fail-on", "never", str(folder))
    spent = torchdoctor(*args, stdout=subprocess.DEVNULL)
    return lines, spent.cpu_s, spent.mib


def main() -> int:
    """Measure and compare with the aim; 1 where it is missed."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made)
        if len(sys.argv) < 2:
            package(folder)
        lines, seconds, mib = measure(folder)
    pace = seconds * 100_000 / lines
    print(f"{lines:,} lines, {seconds:.1f} s, {pace:.1f} s per 100,000 lines, {mib:.0f} MiB")
    return int(pace > AIM_SECONDS or mib > AIM_MIB)


if __name__ == "__main__":
    sys.exit(main())
