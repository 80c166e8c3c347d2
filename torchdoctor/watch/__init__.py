"""Who changes process-wide settings: in a child that runs the user's program, or in the user's own process.

``run`` and ``report_of`` look from outside; ``watch_globals`` is the context manager for a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdoctor.watch.report import merged, report_of
    from torchdoctor.watch.session import Watch, watch_globals
    from torchdoctor.watch.target import LIMIT_S, Run, Target, TargetError, parse, run

__all__ = [
    "LIMIT_S",
    "Run",
    "Target",
    "TargetError",
    "Watch",
    "merged",
    "parse",
    "report_of",
    "run",
    "watch_globals",
]

_HOMES = {"merged": "report", "report_of": "report", "Watch": "session", "watch_globals": "session"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'target')}"), name)
