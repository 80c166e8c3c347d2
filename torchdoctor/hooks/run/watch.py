"""What is seen of the command while it runs: its interpreter, and where its ranks write their own logs."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from collections.abc import Sequence

from torchdoctor.hang import procfs

MOST = 256  # processes, and logs
_FIRST_S, _LAST_S = 0.1, 5.0  # from one look to the next, twice as long each time
_LOOKS = 3  # at one process: it may open its log a little later
_AGAIN_S = 0.5  # after a look that met a new one, which may not have become its program yet
_SHEBANG = 512
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
# a pattern of Slurm's: %j, %t, %N, %3t
_SLURM = re.compile(r"%\d*[A-Za-z]")


class Watch:
    """The processes of the command, looked at now and then; reads /proc alone."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.began = time.time()
        self._argv = argv
        self._python = ""
        self._seen: dict[int, int] = {}
        self._logs: dict[str, None] = {}
        self._pause = _FIRST_S
        self._next = time.monotonic() + _FIRST_S

    def due(self) -> float:
        """In how many seconds it wants to look again."""
        return max(0.0, self._next - time.monotonic())

    def look(self, pid: int) -> None:
        """Look at the command and all that descends from it, those that were not seen before."""
        self._pause = min(self._pause * 2, _LAST_S)
        for one in procfs.descendants([pid], MOST):
            looks = self._seen.get(one, 0)
            if looks == 0:
                self._pause = min(self._pause, _AGAIN_S)
            if looks < _LOOKS:
                self._seen[one] = looks + 1
                self._meet(one)
        self._next = time.monotonic() + self._pause

    @property
    def python(self) -> str:
        """The interpreter of the command, else ""."""
        return self._python or interpreter_of(self._argv, os.environ.get("PATH", os.defpath))

    def logs(self) -> list[str]:
        """Files that ranks wrote into while the command ran, in place of its own output."""
        found = [*self._logs, *_of_slurm(self._argv)]
        return [path for path in dict.fromkeys(found) if self._is_fresh(path)][:MOST]

    def _meet(self, pid: int) -> None:
        try:
            process = procfs.read(pid)
        except procfs.Gone:
            return
        if not self._python:
            self._python = interpreter_of(process.command, process.variable("PATH"))
        places = [procfs.file_of(pid, 1), procfs.file_of(pid, 2), process.variable(_ERROR_FILE)]
        for path in places:
            if os.path.isabs(path) and not path.startswith("/dev/") and len(self._logs) < MOST:
                self._logs[path] = None

    def _is_fresh(self, path: str) -> bool:
        try:
            about = os.stat(path)
        except OSError:
            return False
        return os.path.isfile(path) and about.st_size > 0 and about.st_mtime >= self.began - 1


def interpreter_of(argv: Sequence[str], path: str) -> str:
    """The Python that a command line starts: its program, or that in the program's first line; else ""."""
    program = shutil.which(argv[0], path=path) or "" if argv else ""
    for _ in range(2):
        name = os.path.basename(program)
        if re.fullmatch(r"python[\d.]*(?:\.exe)?", name):
            return os.path.abspath(program)
        try:
            with open(program, "rb") as stream:
                head = stream.read(_SHEBANG).split(b"\n")[0]
        except (OSError, ValueError):
            return ""
        words = head[2:].decode("utf-8", "replace").split() if head.startswith(b"#!") else []
        if words and os.path.basename(words[0]) == "env":
            words = [shutil.which(word, path=path) or "" for word in words[1:] if word[:1] != "-"]
        program = words[0] if words else ""
    return ""


def _of_slurm(argv: Sequence[str]) -> list[str]:
    """The files that srun's tasks print into, where its options name them: they are no children of srun."""
    if not argv or os.path.basename(argv[0]) != "srun":
        return []
    found: list[str] = []
    for word, following in zip(argv[1:], [*argv[2:], ""], strict=True):
        if word == "--":
            break
        name, is_long, value = word.partition("=")
        if name in ("-o", "-e", "--output", "--error"):
            found += glob.glob(_SLURM.sub("*", value if is_long else following))
    return [os.path.abspath(path) for path in found]
