"""Runs the programs, waits until they are where they should be, and ends them and their children again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hang.programs import READY


@contextlib.contextmanager
def running(
    program: str,
    *args: str,
    env: dict[str, str] | None = None,
    folder: Path | None = None,
    stdin: int = subprocess.PIPE,
    count: int = 1,
) -> Iterator[subprocess.Popen[str]]:
    """The program, once it has said that it is ready. Its whole group is killed at the end."""
    with tempfile.TemporaryDirectory() as own:
        path = Path(folder or own) / "train.py"
        path.write_text(READY + program)
        process = subprocess.Popen(
            [sys.executable, "-u", str(path), *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
        try:
            assert process.stdout is not None
            for _ in range(count):
                for line in process.stdout:
                    if line.strip() == "ready":
                        break
                else:
                    raise AssertionError(f"it ended before it was ready: {process.wait()}")
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """Kill the group that was started for this process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


@contextlib.contextmanager
def ranks(
    program: str, world: int, *args: str, started: int | None = None, wait_for: tuple[int, ...] = (0,)
) -> Iterator[list[int]]:
    """Several ranks of a job; those of ``wait_for`` must have said that they are ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "train.py"
        path.write_text(READY + program)
        processes = []
        for rank in range(world if started is None else started):
            env = {
                "RANK": str(rank),
                "WORLD_SIZE": str(world),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            }
            process = subprocess.Popen(
                [sys.executable,
                    "-u", str(path), *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                start_new_session=True, env={**os.environ, **env},
            )  # fmt: skip
            stack.callback(end, process)
            processes.append(process)
        for rank in wait_for:
            stream = processes[rank].stdout
            assert stream is not None
            assert any(line.strip() == "ready" for line in stream)
        yield [process.pid for process in processes]
