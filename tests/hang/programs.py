"""Programs that hang, or only look so: in ``programs.cases``, each behind ``=== NAME``, here under that name.

Each prints ``ready`` when it is where it is to be looked at.
"""

from __future__ import annotations

from pathlib import Path

READY = "import sys, time, os\n\ndef ready():\n    print('ready', flush=True)\n"
_HELD = "\n" + Path(__file__).with_suffix(".cases").read_text(encoding="utf-8")
_PROGRAMS = dict(part.split("\n", 1) for part in _HELD.split("\n=== ")[1:])


def __getattr__(name: str) -> str:
    try:
        return f"\n{_PROGRAMS[name]}\n"
    except KeyError:
        raise AttributeError(name) from None
