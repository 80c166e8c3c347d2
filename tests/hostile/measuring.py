"""What a run of the installed command costs: processor time and its largest resident size."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from torchdoctor.workbench import pace

MOST_BYTES = 200 << 20
MOST_SECONDS = 10.0  # as the reference machine takes them


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
        if self.seconds > MOST_SECONDS:
            slower = pace.slower()
            assert self.seconds / slower <= MOST_SECONDS, (
                f"{self.seconds:.1f} s of work, {slower:.1f} x slower here"
            )
        assert self.peak <= MOST_BYTES, f"{self.peak >> 20} MiB at the peak"
        if notes:
            assert any(note in self.said for note in notes), self.said[:2000]


def situations(
    names: Iterable[str], *, new: Collection[str] | None = None, held: Collection[str] = ()
) -> list[Any]:
    """Parameters of a test, those marked that held already: all but ``new``, or those in ``held``."""
    return [
        pytest.param(
            name, id=f"{name[:20]!a}" if not name.isprintable() or len(name) > 40 else None,
            marks=[pytest.mark.held_before] if (name in held if new is None else name not in new) else [],
        )
        for name in names
    ]  # fmt: skip


# A process of its own starts the command: what is measured of a child begins with the size of who started it.
_LAUNCHER = """
import os, sys
child = os.fork()
if not child:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as told:
    print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=told)
"""


def measured(
    arguments: Sequence[str],
    cwd: Path,
    *,
    environment: Mapping[str, str | None] | None = None,
    stdin: bytes = b"",
    limit_s: float = 60.0,
) -> Run:
    """Run the installed command and measure it; killed after ``limit_s``. None unsets a variable."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cwd.parent / "cache"), "COLUMNS": "100"}
    for name, value in (environment or {}).items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    command = os.path.join(os.path.dirname(sys.executable), "torchdoctor")
    told = cwd.parent / "measured.txt"
    told.write_text(f"-9 {limit_s} 0")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(told), command, *arguments],
            cwd=cwd, env=env, stdin=given, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        code, seconds, peak = told.read_text().split()
        return Run(
            int(code),
            out.read(1 << 20).decode("utf-8", "replace"),
            err.read(1 << 20).decode("utf-8", "replace"),
            float(seconds),
            int(peak) * (1 if sys.platform == "darwin" else 1024),
        )
