"""Which machine and interpreter to look at: this one, another interpreter on it, or a recording."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdoctor.model import Fact, Reason, TorchdoctorError
from torchdoctor.probes.candidates import Chosen, find
from torchdoctor.probes.interpreter import choose, python_in
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.names import MODULES
from torchdoctor.probes.probe import Limits
from torchdoctor.probes.source import ProbeSource

if TYPE_CHECKING:
    from collections.abc import Iterator

# what only an interpreter tells of itself, and what is tried in it
_BY_INTERPRETER = ("interpreter", "torch_import", "torch_cuda", "deep")
# Facts whose programs take longest: to be started before anything else is done.
SLOW = ("torch.cuda_available", "python.path", "gpu.nvml_count")


class InterpreterError(TorchdoctorError):
    """An interpreter that is not there, or cannot be run."""


def pick(python: str | None) -> Chosen:
    """The interpreter that was named, or the one that is meant. Raises InterpreterError."""
    return Chosen(resolve(python)) if python else find()


def open_live(python: str, limits: Limits | None = None, *, deep: bool = False) -> ProbeSource:
    """This machine, with its slow programs already started. To be closed."""
    source = ProbeSource(python=python, limits=limits, deep=deep)
    source.start(SLOW)
    return source


def open_for_log(python: str | None, programs: bool, site: str = "") -> ProbeSource:
    """This machine as the place that a log comes from; nothing is started yet. To be closed.

    Without ``programs`` neither its Python nor a tool is run: facts come out of files alone. Where no
    ``python`` is named, ``site`` is the folder from which the log's torch came: of an environment that is not
    the active one, only the files of packages there are read, whatever may run.
    """
    chosen = python or choose()[0]
    source = ProbeSource(LiveMachine(programs=programs), chosen)
    inside = site.startswith(os.path.dirname(os.path.dirname(chosen)).rstrip(os.sep) + os.sep)
    if site and not python and not (programs and inside):
        source.know(() if inside else _untold(site))
        source.know(_of_site(site))
    return source


def _untold(site: str) -> Iterator[Fact]:
    detail = "the log names this environment, and its interpreter is not run"
    for name, module in MODULES.items():
        if module in _BY_INTERPRETER:
            yield Fact.unknown(name, Reason.NOT_ASKED, site, detail)


def _of_site(site: str) -> Iterator[Fact]:
    """What is known of the environment that a folder of packages belongs to, without its interpreter."""
    library = os.path.dirname(site)
    yield Fact.known("python.path", (library, site), site)
    yield Fact.known("python.prefix", os.path.dirname(os.path.dirname(library)), site)
    yield Fact.known("torch.path", os.path.join(site, "torch"), site)


def resolve(python: str) -> str:
    """The path of an interpreter given as a path, a folder of an environment, or a name on PATH."""
    if os.path.isdir(python):
        if found := python_in(python):
            return os.path.abspath(found)
        raise InterpreterError(f"{python}: a folder without an interpreter; expected bin/python in it")
    if os.path.dirname(python):
        if not os.path.exists(python):
            raise InterpreterError(f"{python}: no such file; name an interpreter, as /usr/bin/python3")
        if not os.access(python, os.X_OK):
            raise InterpreterError(f"{python}: not allowed to be run; name an interpreter")
        return os.path.abspath(python)
    from torchdoctor.probes.search_paths import program_on_path

    found = program_on_path(python)
    if not found:
        raise InterpreterError(f"{python}: not on PATH; name an interpreter, as /usr/bin/python3")
    return found
