"""The examined interpreter: which one it is, and what it says about itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from torchdoctor.model import Fact, Reason
from torchdoctor.probes.machine import Command, Outcome
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reported

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "target.py")
_NAMES = tuple(CATALOGUE["interpreter"])
LABEL = "interpreter"


def choose(environment: dict[str, str] | os._Environ[str] | None = None) -> tuple[str, str, str]:
    """The interpreter to examine when none is named, why it was chosen, and what decides it.

    The one that runs us when it was named on purpose (``python -m torchdoctor``) or has torch beside it;
    else the active environment's; else the first on PATH; else again the one that runs us. Decided by "torch"
    that is there, or by the "person", who named or activated it; empty: it is only the likeliest.
    """
    environment = os.environ if environment is None else environment
    own = sys.executable
    beside = any(os.path.isdir(os.path.join(one, "torch")) for one in sys.path if "site-packages" in one)
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return own, "it runs torchdoctor", "torch" if beside else "person"
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environment.get(variable, "")
        # a relative one leads to whatever lies in the current folder
        if os.path.isabs(prefix) and not _same(prefix, sys.prefix):
            python = python_in(prefix)
            if python:
                base = variable == "CONDA_PREFIX" and environment.get("CONDA_DEFAULT_ENV") == "base"
                return python, f"the active environment, {variable}", "" if base else "person"
    if beside:
        return own, "torch is installed beside torchdoctor", "torch"
    from torchdoctor.probes.search_paths import program_on_path

    for name in ("python3", "python"):
        python = program_on_path(name, environment.get("PATH", os.defpath))
        if python and not _same(os.path.dirname(os.path.dirname(python)), sys.prefix):
            return python, "the first on PATH", ""
    return own, "it runs torchdoctor", ""


def python_in(prefix: str) -> str:
    """The interpreter of an environment; empty when there is none that may be run."""
    for place in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        path = os.path.join(prefix, place)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def command(context: Context) -> Command:
    return Command(LABEL, (context.python, TARGET, "interpreter"), context.limits.interpreter_s, reports=True)


def _look(context: Context) -> Iterator[Fact]:
    if not context.machine.programs:
        yield from _in_files(context)
    outcome = context.machine.finish(command(context))
    found = reported(outcome, _NAMES, "interpreter")
    yield from found.values()
    if "python.path" in found:
        yield Fact.absent("python.start_error")
    else:
        yield from _start_error(context, outcome)
    reason, detail = failure(outcome)
    for name in _NAMES:
        if name not in found and name not in ("python.start_error", "python.version"):
            yield Fact.unknown(name, reason, "interpreter", detail)


def _in_files(context: Context) -> Iterator[Fact]:
    """What the files of a virtual or conda environment tell, without a word of its interpreter."""
    machine, prefix = context.machine, os.path.dirname(os.path.dirname(context.python))
    marks = {"venv": f"{prefix}/pyvenv.cfg", "conda": f"{prefix}/conda-meta"}
    kind = next((name for name, mark in marks.items() if machine.exists(mark)), "")
    folders = machine.names(f"{prefix}/lib", ("python3.*",)) if kind else ()
    if len(folders) != 1:  # of the system, or of several versions: only the interpreter knows its path
        return
    yield Fact.known("python.executable", context.python, marks[kind])
    yield Fact.known("python.prefix", prefix, marks[kind])
    yield Fact.known("python.environment", kind, marks[kind])
    library = f"{prefix}/lib/{folders[0]}"
    yield Fact.known("python.path", (library, f"{library}/site-packages"), marks[kind])


def _start_error(context: Context, outcome: Outcome) -> Iterator[Fact]:
    reason, detail = failure(outcome)
    version = Fact.unknown("python.version", reason, "interpreter", detail)
    if "SyntaxError" in outcome.stderr:
        # Older than 3.6: it cannot read our file, but it can say what it is.
        ask = Command("python-version", (context.python, "-V"), context.limits.tool_s)
        words = context.machine.finish(ask)
        name, _, number = (words.stdout + words.stderr).strip().partition(" ")
        if name == "Python" and number:
            version = Fact.known("python.version", number, "python -V")
            detail = f"Python {number} is older than 3.6, the oldest that can be examined"
    elif outcome.ok:
        detail = f"{context.python} ran and said nothing: is it a Python interpreter?"
    yield version
    if outcome.timed_out:  # a slow disk is no interpreter that does not run
        yield Fact.unknown("python.start_error", reason, "interpreter", detail)
    else:
        yield Fact.known("python.start_error", detail, "interpreter")


def missing(context: Context, names: tuple[str, ...]) -> Iterator[Fact]:
    """Facts that cannot be told because the interpreter did not run."""
    fact = context.ask("python.path")
    for name in names:
        yield Fact.unknown(name, fact.reason or Reason.NOT_ASKED, "interpreter", fact.detail)


PROBES = (Probe(_NAMES, Cost.SLOW, _look, command),)
