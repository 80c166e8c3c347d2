"""The C++ runtime that the examined interpreter gets, and how new it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes.driver import cached_paths, library_path
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

_SONAME = "libstdc++.so.6"


def _own_path(context: Context) -> str | None:
    """conda's interpreters look into their own lib folder first; all others ask the loader."""
    if context.text("python.environment") == "conda":
        path = f"{context.text('python.prefix')}/lib/{_SONAME}"
        if context.machine.exists(path):
            return path
    return library_path(context, _SONAME)


def _newest(context: Context, path: str | None) -> FactValue:
    if path is None:
        return None
    marks = context.machine.marks(context.machine.real_path(path), "GLIBCXX_")
    return marks[-1] if marks else None


def _system_path(context: Context) -> str | None:
    return next(iter(cached_paths(context, _SONAME)), None)


def _look(context: Context) -> Iterator[Fact]:
    yield told("libstdcxx.path", partial(_own_path, context), "ld.so")
    yield told("libstdcxx.glibcxx", lambda: _newest(context, _own_path(context)), _SONAME)
    yield told("libstdcxx.system_glibcxx", lambda: _newest(context, _system_path(context)), _SONAME)


PROBES = (
    Probe(
        tuple(CATALOGUE["cxx_runtime"]),
        Cost.CHEAP,
        _look,
        needs=("python.environment", "python.prefix", "os.name"),
    ),
)
