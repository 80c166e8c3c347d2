"""A command that is told to end takes what it started with it, and says so by its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")

SLEEPS = """
import os, time
open({mark!r}, "w").write(str(os.getpid()))
time.sleep(100)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "words",
    [
        ["check", "--python", "env"],
        ["facts", "--python", "env"],
        ["globals", "train.py"],
        ["ddp", "train.py:factory"],
        ["check", "--target", "train.py"],
    ],
    ids=" ".join,
)
def test_nothing_is_left_running(words: list[str], number: signal.Signals, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    text = SLEEPS.format(mark=str(mark))
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    if "env" in words:
        import venv

        venv.create(tmp_path / "env", with_pip=False, symlinks=True)
        site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text(text, encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "torchdoctor", *words],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    pid = int(mark.read_text())
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (130, b"")
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)
    assert list(scratch.iterdir()) == []
