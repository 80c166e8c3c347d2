"""Which interpreter is meant when none is named: where our own environment has no torch, one that has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob

from torchdoctor.probes.interpreter import TARGET, choose, python_in
from torchdoctor.probes.machine import Command
from torchdoctor.probes.search_paths import program_on_path

_LIMIT_S = 10.0
_MOST = 12
HOW = "name another with --python PATH"


@dataclass(frozen=True, slots=True)
class Chosen:
    """``note`` says which interpreter was taken and why, where torch had to be looked for; else empty."""

    python: str
    note: str = ""


def find() -> Chosen:
    """The interpreter to examine. Starts each candidate once, for 10 s at most, where ours has no torch.

    An environment that is active is examined with or without torch, but for conda's base, which always is.
    """
    python, why, decided = choose()
    others = {python: why}
    for path, reason in _further(os.environ):
        others.setdefault(path, reason)
    having = [] if decided == "torch" else _with_torch(list(others)[:_MOST])
    if decided == "torch" or python in having or not having:
        looked = "" if decided or having else f"No interpreter with torch was found; examined {python}: {why}"
        return Chosen(python, looked and f"{looked}; {HOW}")
    if decided:
        found = ", ".join(f"{path} ({others[path]})" for path in having[:3])
        return Chosen(python, f"Examined {python}: {why}. torch is installed for {found}; {HOW}")
    taken = having[0]
    return Chosen(taken, f"Examined {taken}: {others[taken]}. {python} ({why}) has no torch; {HOW}")


def _further(environment: os._Environ[str]) -> Iterator[tuple[str, str]]:
    """Interpreters that a person may mean, likeliest first."""
    for name in ("python3", "python"):
        if found := program_on_path(name, environment.get("PATH", os.defpath)):
            yield found, "the first on PATH"
    for folder in (".venv", "venv"):
        place = os.path.abspath(folder)
        # as git does with a repository: what another user put here is not run
        if os.path.isfile(f"{place}/pyvenv.cfg") and _is_ours(place) and (found := python_in(place)):
            yield found, f"{folder} in this folder"
    for folder in _kernel_folders(environment):
        for path in sorted(glob(os.path.join(folder, "*", "kernel.json"))):
            if found := _of_kernel(path):
                yield found, f"the Jupyter kernel {os.path.basename(os.path.dirname(path))}"


def _is_ours(place: str) -> bool:
    return not hasattr(os, "geteuid") or os.stat(place).st_uid == os.geteuid()


def _kernel_folders(environment: os._Environ[str]) -> tuple[str, ...]:
    data = environment.get("JUPYTER_DATA_DIR") or os.path.expanduser("~/.local/share/jupyter")
    named = filter(os.path.isabs, environment.get("JUPYTER_PATH", "").split(os.pathsep))
    return tuple(f"{one}/kernels" for one in (*named, data, "/usr/local/share/jupyter", "/usr/share/jupyter"))


def _of_kernel(path: str) -> str:
    """The interpreter that a kernel starts; empty when it is none of Python, or cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            start = json.loads(stream.read(65536))["argv"][0]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    usable = isinstance(start, str) and os.path.isabs(start) and os.access(start, os.X_OK)
    return start if usable and os.path.basename(start).startswith("python") else ""


def _with_torch(paths: list[str]) -> list[str]:
    """Those in which ``import torch`` finds something; torch is not imported."""
    from torchdoctor.probes.spawn import Running

    started = [
        (path, Running(Command(path, (path, TARGET, "interpreter"), _LIMIT_S, True))) for path in paths
    ]
    return [
        path
        for path, running in started
        if any(
            line.get("name") == "torch.path" and line.get("state", "known") == "known"
            for line in running.finish().lines
        )
    ]
