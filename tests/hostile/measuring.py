"""What a run of the installed command costs: processor time and the largest resident size, children included."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 200 << 20
MOST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """How a command ended and what it took: ``seconds`` of processor time, ``peak`` in bytes of its own."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    peak: int

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    def held(self, *notes: str) -> None:
        """Fails unless it stayed within the bounds of every situation and said one of ``notes``, if any."""
        assert self.code >= 0, f"ended by signal {-self.code} after {self.seconds:.1f} s"
        assert self.code != 70, self.stderr[-2000:]
        assert "Traceback (most recent call last)" not in self.stderr, self.stderr[-2000:]
        assert self.seconds <= MOST_SECONDS, f"{self.seconds:.1f} s of work"
        assert self.peak <= MOST_BYTES, f"{self.peak >> 20} MiB at the peak"
        if notes:
            assert any(note in self.said for note in notes), self.said[:2000]


def measured(
    arguments: Sequence[str | bytes],
    cwd: Path,
    *,
    environment: Mapping[str, str | None] | None = None,
    stdin: bytes = b"",
    limit_s: float = 40.0,
) -> Run:
    """Run the installed command and measure it; killed after ``limit_s`` of the clock. None unsets a variable."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cwd.parent / "cache"), "COLUMNS": "100"}
    for name, value in (environment or {}).items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    command = [os.path.join(os.path.dirname(sys.executable), "torchdoctor"), *arguments]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=given, stdout=out, stderr=err)
        watch = threading.Timer(limit_s, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Run(
            process.returncode,
            out.read(1 << 20).decode("utf-8", "replace"),
            err.read(1 << 20).decode("utf-8", "replace"),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )
