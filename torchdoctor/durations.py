"""Lengths of time as people write them: ``90``, ``90s``, ``10m``, ``2h``."""

from __future__ import annotations

import re

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """The length in seconds. Raises ValueError, which says what is right, for anything else."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhd]?)", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is no length of time; expected 90, 90s, 10m or 2h")
    return float(found[1]) * _UNITS[found[2]]
