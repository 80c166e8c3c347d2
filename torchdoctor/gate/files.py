"""Files that appear whole or not at all, written by a process that may be left behind when a disk hangs."""

from __future__ import annotations

import os
import tempfile
import time

WRITE_S = 3.0


class WriteError(Exception):
    """The file could not be written: which, and why."""


def replace_file(path: str, text: str, limit_s: float = WRITE_S) -> None:
    """Write beside the file, sync, and rename over it. Raises WriteError; blocks ``limit_s`` at most.

    A fork does it: a dead network disk then holds the fork, not us.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            _write(path, text)
            code = 0
        except OSError as error:
            os.write(writer, (error.strerror or str(error)).encode("utf-8", "replace")[:500])
        finally:
            os._exit(code)
    os.close(writer)
    try:
        deadline = time.monotonic() + limit_s
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.kill(child, 9)
                raise WriteError(f"{path}: not written within {limit_s:g} s: its disk hangs")
            time.sleep(0.005)
        if status != 0:
            why = os.read(reader, 500).decode("utf-8", "replace") or "the writing process died"
            raise WriteError(f"{path}: {why}")
    finally:
        os.close(reader)


def _write(path: str, text: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # the node exporter, and whoever acts on the verdict, run as other users
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
