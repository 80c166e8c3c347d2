"""The installed command, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT_S = 10.0


def run(
    arguments: Sequence[str | bytes],
    cwd: Path,
    *,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = b"",
    limit_s: float = 60.0,
) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own, in ``cwd``, with a cache of its own."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cwd.parent / "cache"), **(environment or {})}
    return subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "torchdoctor"), *arguments],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        timeout=limit_s,
        check=False,
    )
